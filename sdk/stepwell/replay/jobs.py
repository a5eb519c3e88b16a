"""What each job of an activation does to the run, one function for each kind of event; see ``activation``.

Subjects with more than a line have their functions in files of their own and a line in the table here.
"""

from collections.abc import Callable
from typing import Any

from ..api import events as ev
from ..api.updates import UpdateRequest
from .activity_ends import ACTIVITY_JOBS
from .external_ends import EXTERNAL_JOBS
from .main import MainFunction
from .runtime import WorkflowRuntime


def _started(_runtime: WorkflowRuntime, _main: MainFunction, _job: ev.WorkflowExecutionStarted) -> None:
    """Taken before all others, since there is no code to run without it."""


def _signaled(runtime: WorkflowRuntime, _: MainFunction, job: ev.WorkflowExecutionSignaled) -> None:
    runtime.handlers.deliver(job)


def _cancel_requested(_: WorkflowRuntime, main: MainFunction, job: ev.WorkflowExecutionCancelRequested) -> None:
    main.cancel(job.cause)


def _timer_fired(runtime: WorkflowRuntime, _: MainFunction, job: ev.TimerFired) -> None:
    runtime.timer_fired(job.timer_id)


def _update(runtime: WorkflowRuntime, _: MainFunction, job: UpdateRequest) -> None:
    runtime.updates.deliver(job)


def _carried(runtime: WorkflowRuntime, _: MainFunction, job: ev.WorkflowExecutionUpdateAdmitted) -> None:
    """Not delivered here: it comes with the workflow task that answers it."""
    runtime.updates.carried[job.request.meta.update_id] = job.request


JOBS: dict[type, Callable[[WorkflowRuntime, MainFunction, Any], None]] = {
    ev.WorkflowExecutionStarted: _started,
    ev.WorkflowExecutionSignaled: _signaled,
    ev.WorkflowExecutionCancelRequested: _cancel_requested,
    ev.TimerFired: _timer_fired,
    ev.WorkflowExecutionUpdateAdmitted: _carried,
    UpdateRequest: _update,
    **ACTIVITY_JOBS,
    **EXTERNAL_JOBS,
}
"""Complete: every event is here, or of a command, or says nothing to workflow code; a test compares. Updates come with
their workflow task and not as events."""
