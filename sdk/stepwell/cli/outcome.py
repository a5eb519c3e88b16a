"""How a workflow ended, and what that prints and exits with."""

from dataclasses import dataclass
from typing import Any

import click

from ..api.common import WorkflowExecution
from ..api.enums import WorkflowExecutionStatus
from ..api.events import (
    HistoryEvent,
    WorkflowExecutionCanceled,
    WorkflowExecutionCompleted,
    WorkflowExecutionFailed,
    WorkflowExecutionTerminated,
    WorkflowExecutionTimedOut,
)
from ..api.failures import Failure
from ..api.payloads import Payloads
from .connection import Target
from .inputs import value_of
from .output import print_json
from .text import failure_tree, payloads_text, safe, value_text
from .troubles import WorkflowFailed


@dataclass(frozen=True, slots=True)
class End:
    execution: WorkflowExecution
    status: WorkflowExecutionStatus
    result: Payloads = ()
    details: Payloads = ()
    failure: Failure | None = None
    reason: str = ""


def end_of(execution: WorkflowExecution, event: HistoryEvent) -> End:
    """What the close event of ``execution`` says."""
    match event.attributes:
        case WorkflowExecutionCompleted(result=result):
            return End(execution, WorkflowExecutionStatus.COMPLETED, result=result)
        case WorkflowExecutionFailed(failure=failure):
            return End(execution, WorkflowExecutionStatus.FAILED, failure=failure)
        case WorkflowExecutionTimedOut():
            return End(execution, WorkflowExecutionStatus.TIMED_OUT)
        case WorkflowExecutionCanceled(details=details):
            return End(execution, WorkflowExecutionStatus.CANCELED, details=details)
        case WorkflowExecutionTerminated(reason=reason, details=details):
            return End(execution, WorkflowExecutionStatus.TERMINATED, details=details, reason=reason)
        case other:
            raise ValueError(f"{type(other).__name__} closes no workflow")


def print_end(end: End, target: Target) -> None:
    """The result on standard output; raises :class:`WorkflowFailed` when there is none."""
    if target.as_json:
        print_json(_as_json(end))
    elif end.status is WorkflowExecutionStatus.COMPLETED:
        for payload in end.result:
            click.echo(value_text(payload))
        if not end.result:
            click.echo("null")
    if end.status is not WorkflowExecutionStatus.COMPLETED:
        raise WorkflowFailed(_sentence(end))


def _as_json(end: End) -> dict[str, Any]:
    said: dict[str, Any] = {
        "workflow_id": end.execution.workflow_id,
        "run_id": end.execution.run_id,
        "status": end.status,
    }
    if end.status is WorkflowExecutionStatus.COMPLETED:
        values = [value_of(payload) for payload in end.result]
        said["result"] = values if len(values) > 1 else values[0] if values else None
    if end.details:
        said["details"] = [value_of(payload) for payload in end.details]
    if end.failure is not None:
        said["failure"] = end.failure
    if end.reason:
        said["reason"] = end.reason
    return said


def _sentence(end: End) -> str:
    words = f"workflow {safe(end.execution.workflow_id)} ended {end.status}"
    if end.reason:
        words += f": {safe(end.reason)}"
    if end.details:
        words += f" ({payloads_text(end.details)})"
    if end.failure is not None:
        words += f"\n{failure_tree(end.failure)}"
    return words
