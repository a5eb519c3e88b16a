"""How children and what was asked of other workflows end for workflow code: from recorded events."""

from collections.abc import Callable
from typing import Any

from ..api import events as ev
from ..api.enums import StartChildWorkflowExecutionFailedCause, TimeoutType
from ..exceptions import (
    ApplicationError,
    CancelledError,
    FailureError,
    TerminatedError,
    TimeoutError,
    WorkflowAlreadyStartedError,
)
from .machines.external import ITSELF, NOT_ALLOWED, means_itself
from .main import MainFunction
from .runtime import WorkflowRuntime


def _child_started(runtime: WorkflowRuntime, _: MainFunction, job: ev.ChildWorkflowExecutionStarted) -> None:
    child = runtime.children.get(job.initiated_event_id)
    if child is not None:
        child.started(job.workflow_execution.run_id, job.workflow_type)


def _child_not_started(runtime: WorkflowRuntime, _: MainFunction, job: ev.StartChildWorkflowExecutionFailed) -> None:
    child = runtime.children.pop(job.initiated_event_id, None)
    if child is None:
        return
    error: FailureError
    if job.cause is StartChildWorkflowExecutionFailedCause.WORKFLOW_NOT_FOUND:
        why = ITSELF if means_itself(runtime, job.workflow_id, job.namespace) else "there is no such workflow"
        error = ApplicationError(
            f"workflow {job.workflow_id!r} cannot be waited for: {why}",
            type="ExternalWorkflowExecutionNotFound",
        )
    elif job.cause is StartChildWorkflowExecutionFailedCause.WORKFLOW_ALREADY_EXISTS:
        error = WorkflowAlreadyStartedError(job.workflow_id, job.workflow_type)
    else:
        not_allowed = job.cause is StartChildWorkflowExecutionFailedCause.NAMESPACE_NOT_ALLOWED
        what = "cannot be waited for" if child.starting.watch_only else "was not started"
        who = "workflow" if child.starting.watch_only else "child workflow"
        why = f"{NOT_ALLOWED}, or it is deprecated" if not_allowed else job.cause.value
        error = ApplicationError(f"{who} {job.workflow_id!r} {what}: {why}", type=job.cause.value)
    child.not_started(error)


def _child_completed(runtime: WorkflowRuntime, _: MainFunction, job: ev.ChildWorkflowExecutionCompleted) -> None:
    child = runtime.children.pop(job.initiated_event_id, None)
    if child is not None:
        child.completed(job.result)


def _child_failed(runtime: WorkflowRuntime, _: MainFunction, job: ev.ChildWorkflowExecutionFailed) -> None:
    child = runtime.children.pop(job.initiated_event_id, None)
    if child is not None:
        cause = runtime.converter.from_failure(job.failure)
        child.failed("failed", cause, job.retry_state, job.started_event_id)


def _child_canceled(runtime: WorkflowRuntime, _: MainFunction, job: ev.ChildWorkflowExecutionCanceled) -> None:
    child = runtime.children.pop(job.initiated_event_id, None)
    if child is not None:
        details = runtime.payload_converter.from_payloads(job.details) if job.details else []
        child.failed("was cancelled", CancelledError("Cancelled", *details), None, job.started_event_id)


def _child_timed_out(runtime: WorkflowRuntime, _: MainFunction, job: ev.ChildWorkflowExecutionTimedOut) -> None:
    child = runtime.children.pop(job.initiated_event_id, None)
    if child is not None:
        cause = TimeoutError("child workflow timed out", type=TimeoutType.START_TO_CLOSE)
        child.failed("timed out", cause, job.retry_state, job.started_event_id)


def _child_terminated(runtime: WorkflowRuntime, _: MainFunction, job: ev.ChildWorkflowExecutionTerminated) -> None:
    child = runtime.children.pop(job.initiated_event_id, None)
    if child is not None:
        child.failed("was terminated", TerminatedError(), None, job.started_event_id)


def _delivered(
    runtime: WorkflowRuntime,
    _: MainFunction,
    job: ev.ExternalWorkflowExecutionSignaled | ev.ExternalWorkflowExecutionCancelRequested,
) -> None:
    asked = runtime.external.pop(job.initiated_event_id, None)
    if asked is not None:
        asked.delivered()


def _refused(
    runtime: WorkflowRuntime,
    _: MainFunction,
    job: ev.SignalExternalWorkflowExecutionFailed | ev.RequestCancelExternalWorkflowExecutionFailed,
) -> None:
    asked = runtime.external.pop(job.initiated_event_id, None)
    if asked is not None:
        asked.refused(job.cause.value)


EXTERNAL_JOBS: dict[type, Callable[[WorkflowRuntime, MainFunction, Any], None]] = {
    ev.ChildWorkflowExecutionStarted: _child_started,
    ev.StartChildWorkflowExecutionFailed: _child_not_started,
    ev.ChildWorkflowExecutionCompleted: _child_completed,
    ev.ChildWorkflowExecutionFailed: _child_failed,
    ev.ChildWorkflowExecutionCanceled: _child_canceled,
    ev.ChildWorkflowExecutionTimedOut: _child_timed_out,
    ev.ChildWorkflowExecutionTerminated: _child_terminated,
    ev.ExternalWorkflowExecutionSignaled: _delivered,
    ev.ExternalWorkflowExecutionCancelRequested: _delivered,
    ev.SignalExternalWorkflowExecutionFailed: _refused,
    ev.RequestCancelExternalWorkflowExecutionFailed: _refused,
}
