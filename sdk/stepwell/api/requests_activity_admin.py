"""What those who operate workflows do to pending activities (AC-25, AC-26).

Each request names one activity by ``activity_id`` or all pending ones of a type by ``activity_type``, of one run: the
open one without ``run_id``.
"""

from datetime import timedelta

from ._struct import Record
from .common import WorkflowExecution


class PauseActivityRequest(Record, frozen=True, kw_only=True):
    """No further attempt begins. One that runs may end, and hears of it by its heartbeat."""

    namespace: str = "default"
    execution: WorkflowExecution
    activity_id: str = ""
    activity_type: str = ""
    identity: str = ""
    reason: str = ""


class UnpauseActivityRequest(Record, frozen=True, kw_only=True):
    """What waits may start at once, or at a random time within ``jitter``."""

    namespace: str = "default"
    execution: WorkflowExecution
    activity_id: str = ""
    activity_type: str = ""
    identity: str = ""
    reset_attempts: bool = False
    reset_heartbeat: bool = False
    jitter: timedelta | None = None


class ResetActivityRequest(Record, frozen=True, kw_only=True):
    """The next attempt is the first, at once, or at a random time within ``jitter``; a pause ends."""

    namespace: str = "default"
    execution: WorkflowExecution
    activity_id: str = ""
    activity_type: str = ""
    identity: str = ""
    keep_paused: bool = False
    reset_heartbeat: bool = False
    restore_original_options: bool = False
    jitter: timedelta | None = None


class ActivityOptionsChange(Record, frozen=True, kw_only=True):
    """What is left out stays as it is; ``restore_original`` begins with what the workflow asked for."""

    task_queue: str = ""
    schedule_to_close_timeout: timedelta | None = None
    schedule_to_start_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None
    heartbeat_timeout: timedelta | None = None
    retry_initial_interval: timedelta | None = None
    retry_backoff_coefficient: float | None = None
    retry_maximum_interval: timedelta | None = None
    retry_maximum_attempts: int | None = None
    restore_original: bool = False


class UpdateActivityOptionsRequest(Record, frozen=True, kw_only=True):
    namespace: str = "default"
    execution: WorkflowExecution
    activity_id: str = ""
    activity_type: str = ""
    identity: str = ""
    options: ActivityOptionsChange


class ActivitiesChangedResponse(Record, frozen=True, kw_only=True):
    """``activity_ids`` are as was asked for, now or already; what ended meanwhile is not among them."""

    activity_ids: tuple[str, ...] = ()
