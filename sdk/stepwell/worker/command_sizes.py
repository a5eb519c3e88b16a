"""What commands weigh, and the limits that the engine sets on it: one function for each command that has payloads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..api import commands as c
from ..api.enums import WorkflowTaskFailedCause
from ..api.failures import Failure
from ..api.limits import MAX_PAYLOAD_BYTES, MAX_TRANSITION_BYTES
from ..api.payloads import Payload, size_of
from ..converter.failure_size import failure_size
from ..converter.large_payloads import warn_large
from ..replay.errors import WorkflowTaskError

Sized = tuple[int, str]
"""Bytes of a command's payloads, and what they are, for people."""


def check_sizes(commands: Sequence[c.Command]) -> None:
    """Raises :class:`WorkflowTaskError` for what the engine would refuse, so that it shows as a failed task (WC-26)."""
    total = 0
    for command in commands:
        size, what = SIZES[type(command)](command)
        if size > MAX_PAYLOAD_BYTES:
            raise _too_large(f"{what} has {size} bytes, the limit is {MAX_PAYLOAD_BYTES}")
        warn_large(what, size)
        total += size
    if total > MAX_TRANSITION_BYTES:
        raise _too_large(
            f"the {len(commands)} commands of one workflow task have {total} bytes, the limit is {MAX_TRANSITION_BYTES}"
        )


def _too_large(what: str) -> WorkflowTaskError:
    message = f"[payloads too large] {what}; store the data elsewhere and pass where it is"
    return WorkflowTaskError(WorkflowTaskFailedCause.PAYLOADS_TOO_LARGE, Failure(message=message))


def _activity(command: c.ScheduleActivityTask) -> Sized:
    return size_of(command.input), f"input of activity {command.activity_type!r} ({command.activity_id})"


def _completed(command: c.CompleteWorkflowExecution) -> Sized:
    return size_of(command.result), "the workflow's result"


def _failed(command: c.FailWorkflowExecution) -> Sized:
    return failure_size(command.failure), "the workflow's failure"


def _canceled(command: c.CancelWorkflowExecution) -> Sized:
    return size_of(command.details), "details of the workflow's cancellation"


def _marker(command: c.RecordMarker) -> Sized:
    size = size_of(tuple(command.details.values())) + failure_size(command.failure)
    return size, f"marker {command.marker_name!r}"


def _continued(command: c.ContinueAsNewWorkflowExecution) -> Sized:
    known = _of(command.headers) + _of(command.memo or {}) + _of(command.search_attributes or {})
    return size_of(command.input) + known, "input of the run that continues as new"


def _child(command: c.StartChildWorkflowExecution) -> Sized:
    known = _of(command.headers) + _of(command.memo) + _of(command.search_attributes)
    return size_of(command.input) + known, f"input of child workflow {command.workflow_id!r}"


def _signal(command: c.SignalExternalWorkflowExecution) -> Sized:
    size = size_of(command.input) + _of(command.headers)
    return size, f"input of signal {command.signal_name!r} to {command.execution.workflow_id!r}"


def _search_attributes(command: c.UpsertWorkflowSearchAttributes) -> Sized:
    return _of(command.search_attributes), "search attributes"


def _memo(command: c.ModifyWorkflowProperties) -> Sized:
    return _of(command.upserted_memo), "memo"


def _rejected(command: c.RejectUpdate) -> Sized:
    return failure_size(command.failure), f"the rejection of update {command.update_id!r}"


def _ended_update(command: c.CompleteUpdate) -> Sized:
    outcome = command.outcome
    size = size_of(outcome.success) if outcome.failure is None else failure_size(outcome.failure)
    return size, f"the outcome of update {command.update_id!r}"


def _of(values: Mapping[str, Payload]) -> int:
    return size_of(tuple(values.values()))


def _nothing(_: c.Command) -> Sized:
    return 0, ""


SIZES: dict[type, Callable[[Any], Sized]] = {
    c.AcceptUpdate: _nothing,
    c.CancelTimer: _nothing,
    c.CancelWorkflowExecution: _canceled,
    c.CompleteUpdate: _ended_update,
    c.CompleteWorkflowExecution: _completed,
    c.ContinueAsNewWorkflowExecution: _continued,
    c.FailWorkflowExecution: _failed,
    c.ModifyWorkflowProperties: _memo,
    c.RecordMarker: _marker,
    c.RejectUpdate: _rejected,
    c.RequestCancelActivityTask: _nothing,
    c.RequestCancelExternalWorkflowExecution: _nothing,
    c.ScheduleActivityTask: _activity,
    c.SignalExternalWorkflowExecution: _signal,
    c.StartChildWorkflowExecution: _child,
    c.StartTimer: _nothing,
    c.UpsertWorkflowSearchAttributes: _search_attributes,
}
"""Complete: a test compares it with the union of commands."""
