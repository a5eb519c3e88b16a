"""Commands: what workflow code decided in one workflow task (``temporal.api.command.v1``, in snake_case).

Each command makes exactly one event, in order, directly behind ``WorkflowTaskCompleted``; so a worker knows the
event ids of what it asked for as soon as its completion is accepted. A command that cannot be carried out fails
the whole workflow task with a named cause, and none of its commands takes effect.
"""

from datetime import timedelta

from ._struct import Tagged
from .common import Headers, RetryPolicy
from .failures import Failure
from .payloads import Payload, Payloads


class ScheduleActivityTask(Tagged, frozen=True, kw_only=True):
    """Makes ``ActivityTaskScheduled``. ``activity_id`` is unique among the run's pending activities."""

    activity_id: str
    activity_type: str
    task_queue: str
    headers: Headers = {}
    input: Payloads = ()
    schedule_to_close_timeout: timedelta | None = None
    schedule_to_start_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None
    heartbeat_timeout: timedelta | None = None
    retry_policy: RetryPolicy | None = None
    request_eager_execution: bool = True


class RequestCancelActivityTask(Tagged, frozen=True, kw_only=True):
    """Makes ``ActivityTaskCancelRequested``. Only for a pending activity without an earlier request."""

    scheduled_event_id: int


class StartTimer(Tagged, frozen=True, kw_only=True):
    """Makes ``TimerStarted``. ``timer_id`` is unique among the run's pending timers; the timeout is above zero."""

    timer_id: str
    start_to_fire_timeout: timedelta


class CancelTimer(Tagged, frozen=True, kw_only=True):
    """Makes ``TimerCanceled``. Only for a pending timer."""

    timer_id: str


class CompleteWorkflowExecution(Tagged, frozen=True, kw_only=True):
    result: Payloads = ()


class FailWorkflowExecution(Tagged, frozen=True, kw_only=True):
    failure: Failure


class CancelWorkflowExecution(Tagged, frozen=True, kw_only=True):
    details: Payloads = ()


class RecordMarker(Tagged, frozen=True, kw_only=True):
    marker_name: str
    details: dict[str, Payload] = {}
    failure: Failure | None = None


Command = (
    ScheduleActivityTask
    | RequestCancelActivityTask
    | StartTimer
    | CancelTimer
    | CompleteWorkflowExecution
    | FailWorkflowExecution
    | CancelWorkflowExecution
    | RecordMarker
)

CLOSE_COMMANDS = (CompleteWorkflowExecution, FailWorkflowExecution, CancelWorkflowExecution)
"""At most one per workflow task, and it is the last command."""
