"""Events of workflow tasks."""

from datetime import timedelta

from ._struct import Tagged
from .common import SdkMetadata
from .enums import SuggestContinueAsNewReason, TimeoutType, WorkflowTaskFailedCause
from .failures import Failure


class WorkflowTaskScheduled(Tagged, frozen=True, kw_only=True):
    task_queue: str
    start_to_close_timeout: timedelta
    attempt: int = 1


class WorkflowTaskStarted(Tagged, frozen=True, kw_only=True):
    """Its event time is the workflow's time (``workflow.now``) during the task."""

    scheduled_event_id: int
    identity: str = ""
    request_id: str = ""
    history_size_bytes: int = 0
    suggest_continue_as_new: bool = False
    suggest_continue_as_new_reasons: tuple[SuggestContinueAsNewReason, ...] = ()


class WorkflowTaskCompleted(Tagged, frozen=True, kw_only=True):
    scheduled_event_id: int
    started_event_id: int
    identity: str = ""
    binary_checksum: str = ""
    """The worker's build id."""
    sdk_metadata: SdkMetadata | None = None


class WorkflowTaskTimedOut(Tagged, frozen=True, kw_only=True):
    scheduled_event_id: int
    started_event_id: int = 0
    timeout_type: TimeoutType


class WorkflowTaskFailed(Tagged, frozen=True, kw_only=True):
    scheduled_event_id: int
    started_event_id: int
    cause: WorkflowTaskFailedCause
    failure: Failure | None = None
    identity: str = ""
    base_run_id: str = ""
    """For cause RESET_WORKFLOW: the run that recorded what stands before this event."""
    new_run_id: str = ""
    """For cause RESET_WORKFLOW: the run that goes on from here."""
    principal: str = ""
    """For cause RESET_WORKFLOW: whose verified credentials asked for it (MT-10)."""
