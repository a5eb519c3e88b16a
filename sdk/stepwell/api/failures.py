"""The failure taxonomy (ER-01): plain data that survives JSON, processes and languages."""

from datetime import timedelta

from ._struct import Record, Tagged
from .enums import RetryState, TimeoutType
from .payloads import Payload, Payloads


class ApplicationFailureInfo(Tagged, frozen=True, kw_only=True):
    """Raised by user code. ``failure_type`` is matched exactly by non-retryable lists (AC-10)."""

    failure_type: str = ""
    non_retryable: bool = False
    details: Payloads = ()
    next_retry_delay: timedelta | None = None
    category: str = ""


class TimeoutFailureInfo(Tagged, frozen=True, kw_only=True):
    timeout_type: TimeoutType
    last_heartbeat_details: Payloads = ()


class CanceledFailureInfo(Tagged, frozen=True, kw_only=True):
    details: Payloads = ()


class TerminatedFailureInfo(Tagged, frozen=True, kw_only=True):
    pass


class ServerFailureInfo(Tagged, frozen=True, kw_only=True):
    non_retryable: bool = False


class ActivityFailureInfo(Tagged, frozen=True, kw_only=True):
    """Wraps the failure of an activity in the workflow; the real failure is the ``cause``."""

    scheduled_event_id: int
    started_event_id: int = 0
    identity: str = ""
    activity_type: str
    activity_id: str
    retry_state: RetryState = RetryState.IN_PROGRESS


class ChildWorkflowExecutionFailureInfo(Tagged, frozen=True, kw_only=True):
    namespace: str = ""
    workflow_id: str
    run_id: str = ""
    workflow_type: str
    initiated_event_id: int
    started_event_id: int = 0
    retry_state: RetryState = RetryState.IN_PROGRESS


FailureInfo = (
    ApplicationFailureInfo
    | TimeoutFailureInfo
    | CanceledFailureInfo
    | TerminatedFailureInfo
    | ServerFailureInfo
    | ActivityFailureInfo
    | ChildWorkflowExecutionFailureInfo
)


class Failure(Record, frozen=True, kw_only=True):
    """One failure and its chain of causes. ``source`` names the SDK that made it, empty for the server."""

    message: str = ""
    source: str = ""
    stack_trace: str = ""
    cause: "Failure | None" = None
    info: FailureInfo | None = None
    encoded_attributes: Payload | None = None
    """Message and stack trace, when they are not to be read by who has no codec (ER-20); ``message`` says so then."""
