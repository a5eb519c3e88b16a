"""Events that this release cannot give to workflow code: they fail the workflow task, since a run that went on without
them would decide other things than the history says. Whoever teaches replay one of them takes its line away here.
"""

from collections.abc import Callable
from typing import Any

from ..api import events as ev
from ..exceptions import StepwellError
from .main import MainFunction
from .runtime import WorkflowRuntime


def _refuse(_runtime: WorkflowRuntime, _main: MainFunction, job: Any) -> None:
    raise StepwellError(
        f"the history has a {type(job).__name__} event, which this release of the worker cannot replay; run the "
        "workflow on a newer release"
    )


REFUSED_JOBS: dict[type, Callable[[WorkflowRuntime, MainFunction, Any], None]] = dict.fromkeys(
    (
        ev.StartChildWorkflowExecutionFailed,
        ev.ChildWorkflowExecutionStarted,
        ev.ChildWorkflowExecutionCompleted,
        ev.ChildWorkflowExecutionFailed,
        ev.ChildWorkflowExecutionCanceled,
        ev.ChildWorkflowExecutionTimedOut,
        ev.ChildWorkflowExecutionTerminated,
        ev.ExternalWorkflowExecutionSignaled,
        ev.SignalExternalWorkflowExecutionFailed,
        ev.ExternalWorkflowExecutionCancelRequested,
        ev.RequestCancelExternalWorkflowExecutionFailed,
    ),
    _refuse,
)
