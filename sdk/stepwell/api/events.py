"""History events: the facts of a run, in the field's model (``temporal.api.history.v1``, in snake_case).

A history is a list of :class:`HistoryEvent` with ids 1, 2, 3, …; what a reader has been shown never changes.
"""

from datetime import datetime, timedelta

import msgspec

from ._struct import Tagged
from .common import Headers, Memo, RetryPolicy, SdkMetadata
from .enums import RetryState, TimeoutType, WorkflowTaskFailedCause
from .failures import Failure
from .payloads import Payload, Payloads


class WorkflowExecutionStarted(Tagged, frozen=True, kw_only=True):
    workflow_type: str
    task_queue: str
    input: Payloads = ()
    workflow_execution_timeout: timedelta | None = None
    workflow_run_timeout: timedelta | None = None
    workflow_task_timeout: timedelta
    original_execution_run_id: str
    """The run's own id; seeds the workflow's randomness (PM-10)."""
    first_execution_run_id: str
    identity: str = ""
    retry_policy: RetryPolicy | None = None
    attempt: int = 1
    workflow_execution_expiration_time: datetime | None = None
    memo: Memo = {}
    search_attributes: Memo = {}
    headers: Headers = {}
    request_id: str = ""
    workflow_id: str


class WorkflowExecutionCompleted(Tagged, frozen=True, kw_only=True):
    result: Payloads = ()
    workflow_task_completed_event_id: int


class WorkflowExecutionFailed(Tagged, frozen=True, kw_only=True):
    failure: Failure
    retry_state: RetryState = RetryState.RETRY_POLICY_NOT_SET
    workflow_task_completed_event_id: int


class WorkflowExecutionTimedOut(Tagged, frozen=True, kw_only=True):
    retry_state: RetryState = RetryState.TIMEOUT


class WorkflowExecutionCanceled(Tagged, frozen=True, kw_only=True):
    workflow_task_completed_event_id: int
    details: Payloads = ()


class WorkflowExecutionTerminated(Tagged, frozen=True, kw_only=True):
    reason: str = ""
    details: Payloads = ()
    identity: str = ""


class WorkflowExecutionCancelRequested(Tagged, frozen=True, kw_only=True):
    cause: str = ""
    """The caller's reason (CH-10)."""
    identity: str = ""
    request_id: str = ""


class WorkflowExecutionSignaled(Tagged, frozen=True, kw_only=True):
    signal_name: str
    input: Payloads = ()
    identity: str = ""
    headers: Headers = {}
    request_id: str = ""


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


class ActivityTaskScheduled(Tagged, frozen=True, kw_only=True):
    activity_id: str
    activity_type: str
    task_queue: str
    headers: Headers = {}
    input: Payloads = ()
    schedule_to_close_timeout: timedelta | None = None
    schedule_to_start_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None
    heartbeat_timeout: timedelta | None = None
    workflow_task_completed_event_id: int
    retry_policy: RetryPolicy


class ActivityTaskStarted(Tagged, frozen=True, kw_only=True):
    """Written with the event that ends the activity (rule 8); ``attempt`` is the last one."""

    scheduled_event_id: int
    identity: str = ""
    request_id: str = ""
    attempt: int = 1
    last_failure: Failure | None = None
    started_time: datetime | None = None
    """When attempt ``attempt`` was handed to its worker; the event's own time is that of the end. None in histories
    written before there was this field."""


class ActivityTaskCompleted(Tagged, frozen=True, kw_only=True):
    result: Payloads = ()
    scheduled_event_id: int
    started_event_id: int
    identity: str = ""


class ActivityTaskFailed(Tagged, frozen=True, kw_only=True):
    failure: Failure
    scheduled_event_id: int
    started_event_id: int
    identity: str = ""
    retry_state: RetryState


class ActivityTaskTimedOut(Tagged, frozen=True, kw_only=True):
    """``failure`` is a timeout failure whose cause is the last real failure, if there was one (WC-06)."""

    failure: Failure
    scheduled_event_id: int
    started_event_id: int = 0
    """0 when no attempt was ever started."""
    retry_state: RetryState


class ActivityTaskCancelRequested(Tagged, frozen=True, kw_only=True):
    scheduled_event_id: int
    workflow_task_completed_event_id: int


class ActivityTaskCanceled(Tagged, frozen=True, kw_only=True):
    details: Payloads = ()
    latest_cancel_requested_event_id: int
    scheduled_event_id: int
    started_event_id: int = 0
    """0 when it was canceled before any attempt started."""
    identity: str = ""


class TimerStarted(Tagged, frozen=True, kw_only=True):
    timer_id: str
    start_to_fire_timeout: timedelta
    workflow_task_completed_event_id: int


class TimerFired(Tagged, frozen=True, kw_only=True):
    timer_id: str
    started_event_id: int


class TimerCanceled(Tagged, frozen=True, kw_only=True):
    timer_id: str
    started_event_id: int
    workflow_task_completed_event_id: int
    identity: str = ""


class MarkerRecorded(Tagged, frozen=True, kw_only=True):
    marker_name: str
    details: dict[str, Payload] = {}
    workflow_task_completed_event_id: int
    failure: Failure | None = None


EventAttributes = (
    WorkflowExecutionStarted
    | WorkflowExecutionCompleted
    | WorkflowExecutionFailed
    | WorkflowExecutionTimedOut
    | WorkflowExecutionCanceled
    | WorkflowExecutionTerminated
    | WorkflowExecutionCancelRequested
    | WorkflowExecutionSignaled
    | WorkflowTaskScheduled
    | WorkflowTaskStarted
    | WorkflowTaskCompleted
    | WorkflowTaskTimedOut
    | WorkflowTaskFailed
    | ActivityTaskScheduled
    | ActivityTaskStarted
    | ActivityTaskCompleted
    | ActivityTaskFailed
    | ActivityTaskTimedOut
    | ActivityTaskCancelRequested
    | ActivityTaskCanceled
    | TimerStarted
    | TimerFired
    | TimerCanceled
    | MarkerRecorded
)

CLOSE_EVENTS = (
    WorkflowExecutionCompleted,
    WorkflowExecutionFailed,
    WorkflowExecutionTimedOut,
    WorkflowExecutionCanceled,
    WorkflowExecutionTerminated,
)


class HistoryEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One fact. ``attributes.type`` names it; ``event_time`` is UTC and never runs backwards in a run."""

    event_id: int
    event_time: datetime
    attributes: EventAttributes

    @property
    def event_type(self) -> str:
        return type(self.attributes).__name__
