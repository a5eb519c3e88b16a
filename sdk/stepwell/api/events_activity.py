"""Events of activities."""

from datetime import datetime, timedelta

from ._struct import Tagged
from .common import Headers, Priority, RetryPolicy
from .enums import RetryState
from .failures import Failure
from .payloads import Payloads


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
    priority: Priority | None = None
    """As it counts: with what was taken from the workflow's."""


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
