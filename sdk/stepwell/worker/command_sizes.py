"""What commands weigh, and the limits that the engine sets on it: one function for each command that has payloads."""

from collections.abc import Callable, Sequence
from typing import Any

from ..api import commands as c
from ..api.enums import WorkflowTaskFailedCause
from ..api.failures import Failure
from ..api.limits import MAX_PAYLOAD_BYTES, MAX_TRANSITION_BYTES
from ..api.payloads import size_of
from ..replay.errors import WorkflowTaskError
from .failure_size import failure_size

Sized = tuple[int, str]
"""Bytes of a command's payloads, and what they are, for people."""


def check_sizes(commands: Sequence[c.Command]) -> None:
    """Raises :class:`WorkflowTaskError` for what the engine would refuse, so that it shows as a failed task (WC-26)."""
    total = 0
    for command in commands:
        size, what = SIZES[type(command)](command)
        if size > MAX_PAYLOAD_BYTES:
            raise _too_large(f"{what} has {size} bytes, the limit is {MAX_PAYLOAD_BYTES}")
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
    return size_of(tuple(command.details.values())), f"marker {command.marker_name!r}"


def _nothing(_: c.Command) -> Sized:
    return 0, ""


SIZES: dict[type, Callable[[Any], Sized]] = {
    c.CancelTimer: _nothing,
    c.CancelWorkflowExecution: _canceled,
    c.CompleteWorkflowExecution: _completed,
    c.FailWorkflowExecution: _failed,
    c.RecordMarker: _marker,
    c.RequestCancelActivityTask: _nothing,
    c.ScheduleActivityTask: _activity,
    c.StartTimer: _nothing,
}
"""Complete: a test compares it with the union of commands."""
