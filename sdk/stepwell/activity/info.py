"""What a running activity can know about itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..common import Priority, RetryPolicy


@dataclass(frozen=True, kw_only=True)
class Info:
    """The attempt that is running. Times are UTC; timeouts are None where none was set."""

    activity_id: str
    activity_type: str
    attempt: int
    """Counts from 1."""
    scheduled_time: datetime
    """When the workflow asked for the activity."""
    current_attempt_scheduled_time: datetime
    started_time: datetime
    heartbeat_details: Sequence[Any] = ()
    """The last progress that an earlier attempt reported, decoded without types (AC-07)."""
    heartbeat_timeout: timedelta | None = None
    schedule_to_close_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None
    retry_policy: RetryPolicy | None = None
    task_queue: str
    task_token: bytes
    workflow_id: str
    workflow_namespace: str
    workflow_run_id: str
    workflow_type: str
    is_local: bool = False
    priority: Priority = Priority.default
    """As it counted in the task queue."""
    activity_run_id: str = ""
    """Of a stand-alone activity (AC-28); then there is no workflow, and its id, run and type are empty."""

    @property
    def namespace(self) -> str:
        return self.workflow_namespace

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this activity and for no other activity; hand it to outside services (AC-34).

        It names the run as well, since a later run of the same workflow id numbers its activities from 1 again.
        """
        if self.activity_run_id:
            return f"activity/{self.activity_id}/{self.activity_run_id}"
        return f"{self.workflow_id}/{self.workflow_run_id}/{self.activity_id}"

    def logger_details(self) -> dict[str, Any]:
        """What log records of the activity carry."""
        alone = {"activity_run_id": self.activity_run_id} if self.activity_run_id else {}
        return {
            **alone,
            "activity_id": self.activity_id,
            "activity_type": self.activity_type,
            "attempt": self.attempt,
            "namespace": self.workflow_namespace,
            "task_queue": self.task_queue,
            "workflow_id": self.workflow_id,
            "workflow_run_id": self.workflow_run_id,
            "workflow_type": self.workflow_type,
        }


@dataclass(frozen=True, kw_only=True)
class ActivityCancellationDetails:
    """Why an activity was asked to stop; several may hold."""

    not_found: bool = False
    """The run is closed, or the attempt is no longer the current one."""
    cancel_requested: bool = False
    paused: bool = False
    """Somebody who operates the workflow paused the activity: what ends now is tried again when it is unpaused."""
    reset: bool = False
    """Somebody began the activity anew: its next attempt is the first."""
    timed_out: bool = False
    worker_shutdown: bool = False
