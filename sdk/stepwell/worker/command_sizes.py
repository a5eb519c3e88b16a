"""What commands weigh, and the limits that the engine sets on it: one function for each command that has payloads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..api import commands as c
from ..api.enums import WorkflowTaskFailedCause
from ..api.failures import Failure
from ..api.limits import MAX_PAYLOAD_BYTES, MAX_TRANSITION_BYTES, WARN_PAYLOAD_BYTES
from ..api.payloads import Payload, size_of
from ..converter.failure_size import failure_size
from ..converter.large_payloads import warn_large
from ..replay.errors import WorkflowTaskError


def check_sizes(commands: Sequence[c.Command]) -> None:
    """Raises :class:`WorkflowTaskError` for what the engine would refuse, so that it shows as a failed task (WC-26)."""
    total = 0
    for command in commands:
        size = SIZES[type(command)](command)
        if size > WARN_PAYLOAD_BYTES:
            if size > MAX_PAYLOAD_BYTES:
                raise _too_large(f"{_text(command)} has {size} bytes, the limit is {MAX_PAYLOAD_BYTES}")
            warn_large(_text(command), size)
        total += size
    if total > MAX_TRANSITION_BYTES:
        raise _too_large(
            f"the {len(commands)} commands of one workflow task have {total} bytes, the limit is {MAX_TRANSITION_BYTES}"
        )


def _too_large(what: str) -> WorkflowTaskError:
    message = f"[payloads too large] {what}; store the data elsewhere and pass where it is"
    return WorkflowTaskError(WorkflowTaskFailedCause.PAYLOADS_TOO_LARGE, Failure(message=message))


def _text(command: c.Command) -> str:  # noqa: C901, PLR0912 - a table
    """What its payloads are, for people."""
    match command:
        case c.ScheduleActivityTask():
            return f"input of activity {command.activity_type!r} ({command.activity_id})"
        case c.CompleteWorkflowExecution():
            return "the workflow's result"
        case c.FailWorkflowExecution():
            return "the workflow's failure"
        case c.CancelWorkflowExecution():
            return "details of the workflow's cancellation"
        case c.RecordMarker():
            return f"marker {command.marker_name!r}"
        case c.ContinueAsNewWorkflowExecution():
            return "input of the run that continues as new"
        case c.StartChildWorkflowExecution():
            return f"input of child workflow {command.workflow_id!r}"
        case c.SignalExternalWorkflowExecution():
            return f"input of signal {command.signal_name!r} to {command.execution.workflow_id!r}"
        case c.UpsertWorkflowSearchAttributes():
            return "search attributes"
        case c.ModifyWorkflowProperties():
            return "memo"
        case c.RejectUpdate():
            return f"the rejection of update {command.update_id!r}"
        case c.CompleteUpdate():
            return f"the outcome of update {command.update_id!r}"
        case _:
            return type(command).__name__


def _activity(command: c.ScheduleActivityTask) -> int:
    return size_of(command.input)


def _completed(command: c.CompleteWorkflowExecution) -> int:
    return size_of(command.result)


def _failed(command: c.FailWorkflowExecution) -> int:
    return failure_size(command.failure)


def _canceled(command: c.CancelWorkflowExecution) -> int:
    return size_of(command.details)


def _marker(command: c.RecordMarker) -> int:
    return _of(command.details) + failure_size(command.failure)


def _continued(command: c.ContinueAsNewWorkflowExecution) -> int:
    known = _of(command.headers) + _of(command.memo or {}) + _of(command.search_attributes or {})
    return size_of(command.input) + known


def _child(command: c.StartChildWorkflowExecution) -> int:
    known = _of(command.headers) + _of(command.memo) + _of(command.search_attributes)
    return size_of(command.input) + known


def _signal(command: c.SignalExternalWorkflowExecution) -> int:
    return size_of(command.input) + _of(command.headers)


def _search_attributes(command: c.UpsertWorkflowSearchAttributes) -> int:
    return _of(command.search_attributes)


def _memo(command: c.ModifyWorkflowProperties) -> int:
    return _of(command.upserted_memo)


def _rejected(command: c.RejectUpdate) -> int:
    return failure_size(command.failure)


def _ended_update(command: c.CompleteUpdate) -> int:
    outcome = command.outcome
    return size_of(outcome.success) if outcome.failure is None else failure_size(outcome.failure)


def _of(values: Mapping[str, Payload]) -> int:
    return size_of(tuple(values.values()))


def _nothing(_: c.Command) -> int:
    return 0


SIZES: dict[type, Callable[[Any], int]] = {
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
