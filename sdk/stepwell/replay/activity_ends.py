"""How activities end for workflow code: from recorded events, and from a worker that has run them itself."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ..api import events as ev
from ..api.enums import RetryState
from ..api.failures import Failure
from ..api.payloads import Payloads
from ..exceptions import ActivityError
from .machines.activity import AwaitedActivity

if TYPE_CHECKING:
    from .main import MainFunction
    from .runtime import WorkflowRuntime


class ActivityEnd(msgspec.Struct, frozen=True, gc=False):
    """How a leased activity ended, for ``WorkflowRun.run_step``. Exactly what the engine will record."""

    scheduled_event_id: int
    result: Payloads = ()
    failure: Failure | None = None
    canceled: bool = False
    identity: str = ""
    retry_state: RetryState = RetryState.NON_RETRYABLE_FAILURE


def end_activity(runtime: "WorkflowRuntime", machine: AwaitedActivity, end: ActivityEnd, started_event_id: int) -> None:
    """Hand the end to who waits for the activity."""
    if end.canceled:
        machine.canceled()
    elif end.failure is None:
        machine.completed(end.result)
    else:
        machine.failed(_error(runtime, machine, end, end.failure, started_event_id))
    machine.release()


def _error(
    runtime: "WorkflowRuntime", machine: AwaitedActivity, end: ActivityEnd, failure: Failure, started_event_id: int
) -> ActivityError:
    cause = runtime.converter.from_failure(failure)
    error = ActivityError(
        f"activity {machine.activity_type!r} failed",
        scheduled_event_id=end.scheduled_event_id,
        started_event_id=started_event_id,
        identity=end.identity,
        activity_type=machine.activity_type,
        activity_id=machine.activity_id,
        retry_state=end.retry_state,
    )
    error.__cause__ = cause
    return error


def _recorded(runtime: "WorkflowRuntime", end: ActivityEnd, started_event_id: int) -> None:
    machine = runtime.activities.pop(end.scheduled_event_id, None)
    if machine is not None:
        machine.end_is_recorded()
        end_activity(runtime, machine, end, started_event_id)


def _completed(runtime: "WorkflowRuntime", _: "MainFunction", job: ev.ActivityTaskCompleted) -> None:
    _recorded(runtime, ActivityEnd(job.scheduled_event_id, job.result), job.started_event_id)


def _failed(runtime: "WorkflowRuntime", _: "MainFunction", job: ev.ActivityTaskFailed) -> None:
    end = ActivityEnd(job.scheduled_event_id, failure=job.failure, identity=job.identity, retry_state=job.retry_state)
    _recorded(runtime, end, job.started_event_id)


def _timed_out(runtime: "WorkflowRuntime", _: "MainFunction", job: ev.ActivityTaskTimedOut) -> None:
    end = ActivityEnd(job.scheduled_event_id, failure=job.failure, retry_state=job.retry_state)
    _recorded(runtime, end, job.started_event_id)


def _canceled(runtime: "WorkflowRuntime", _: "MainFunction", job: ev.ActivityTaskCanceled) -> None:
    _recorded(runtime, ActivityEnd(job.scheduled_event_id, canceled=True), job.started_event_id)


ACTIVITY_JOBS: dict[type, Callable[["WorkflowRuntime", "MainFunction", Any], None]] = {
    ev.ActivityTaskCompleted: _completed,
    ev.ActivityTaskFailed: _failed,
    ev.ActivityTaskTimedOut: _timed_out,
    ev.ActivityTaskCanceled: _canceled,
}
