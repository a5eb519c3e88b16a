"""Commands of one workflow task: carried out in order, one event each, or none of them at all."""

from collections.abc import Callable, Sequence
from typing import Any

from stepwell.api import limits
from stepwell.api.commands import (
    CLOSE_COMMANDS,
    AcceptUpdate,
    CancelTimer,
    CancelWorkflowExecution,
    Command,
    CompleteUpdate,
    CompleteWorkflowExecution,
    ContinueAsNewWorkflowExecution,
    FailWorkflowExecution,
    ModifyWorkflowProperties,
    RecordMarker,
    RejectUpdate,
    RequestCancelActivityTask,
    RequestCancelExternalWorkflowExecution,
    ScheduleActivityTask,
    SignalExternalWorkflowExecution,
    StartChildWorkflowExecution,
    StartTimer,
    UpsertWorkflowSearchAttributes,
)
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.api.events import MarkerRecorded

from ..builder import TransitionBuilder
from ..run_limits import RunLimits
from . import attributes, child, command_activity, command_close, external, inbox, timer, update
from .bad_command import BadCommand, check_id, check_metadata, check_size, failure_size, payload_size
from .carrying import Carrying


def closes(commands: Sequence[Command]) -> bool:
    return bool(commands) and type(commands[-1]) in CLOSE_COMMANDS


def check_all(commands: Sequence[Command]) -> None:
    """What can be said of the commands as a whole. Raises BadCommand."""
    if len(commands) > limits.MAX_COMMANDS_PER_TASK:
        raise BadCommand(
            WorkflowTaskFailedCause.COMMANDS_LIMIT_EXCEEDED,
            f"the workflow task has {len(commands)} commands; at most {limits.MAX_COMMANDS_PER_TASK} are taken. "
            "Start the work in several batches.",
        )
    for command in commands[:-1]:
        if isinstance(command, CLOSE_COMMANDS):
            raise BadCommand(
                WorkflowTaskFailedCause.UNHANDLED_COMMAND,
                f"{type(command).__name__} is followed by other commands; a command that closes the run is the last.",
            )


def check_each(commands: Sequence[Command], allowed: RunLimits) -> None:
    """By the limit of the namespace, where it has a lower one. Raises BadCommand."""
    if allowed.payload_bytes >= limits.MAX_PAYLOAD_BYTES:
        return
    for command in commands:
        size = _size(command)
        if size > allowed.payload_bytes:
            raise BadCommand(
                WorkflowTaskFailedCause.PAYLOADS_TOO_LARGE,
                f"{type(command).__name__} has {size} bytes; here at most {allowed.payload_bytes} are taken. "
                "Keep large data outside and pass a reference to it, or have the limit of the namespace raised.",
            )


def carry_out(draft: TransitionBuilder, commands: Sequence[Command], task: Carrying) -> None:
    """Records one event per command. Raises BadCommand: then the draft is worth nothing."""
    state = draft.state
    size = state.history_size
    for command in commands:
        if isinstance(command, CLOSE_COMMANDS):
            inbox.flush_noted(draft)
        COMMANDS[type(command)](draft, command, task)
    # Events are larger than the payloads that the limit counts, so most tasks need no counting
    if state.history_size - size > limits.MAX_TRANSITION_BYTES:
        _check_total(commands)


def _check_total(commands: Sequence[Command]) -> None:
    """Counted as the limit of one payload is, and as the SDK counts it: bytes of payloads, not of what stores them."""
    total = sum(_size(command) for command in commands)
    if total > limits.MAX_TRANSITION_BYTES:
        raise BadCommand(
            WorkflowTaskFailedCause.PAYLOADS_TOO_LARGE,
            f"the {len(commands)} commands of the workflow task come to {total} bytes; at most "
            f"{limits.MAX_TRANSITION_BYTES} are taken at once. Pass references to large data, or start the work in "
            "several batches.",
        )


def _size(command: Command) -> int:
    size = SIZES.get(type(command))
    return 0 if size is None else size(command)


def _record_marker(draft: TransitionBuilder, command: RecordMarker, task: Carrying) -> None:
    check_id(WorkflowTaskFailedCause.BAD_RECORD_MARKER_ATTRIBUTES, "marker_name", command.marker_name)
    if command.details or command.several or command.headers:
        check_size("the details of the marker", _details_size(command))
    if command.failure is not None:
        check_size("the failure of the marker", failure_size(command.failure))
    draft.record(
        MarkerRecorded(
            marker_name=command.marker_name,
            details=command.details,
            workflow_task_completed_event_id=task.completed_event_id,
            failure=command.failure,
            several=command.several,
            headers=command.headers,
        ),
        user_metadata=check_metadata(f"marker {command.marker_name!r}", command.user_metadata),
    )


def _details_size(command: RecordMarker) -> int:
    size = sum(map(payload_size, command.details.values())) + sum(map(payload_size, command.headers.values()))
    return size + sum(payload_size(payload) for payloads in command.several.values() for payload in payloads)


def _marker_size(command: RecordMarker) -> int:
    size = _details_size(command)
    return size if command.failure is None else size + failure_size(command.failure)


CarryOut = Callable[[TransitionBuilder, Any, Carrying], None]

COMMANDS: dict[type, CarryOut] = {
    ScheduleActivityTask: lambda draft, command, task: command_activity.schedule(
        draft, command, task.completed_event_id, task.leasing
    ),
    RequestCancelActivityTask: lambda draft, command, task: command_activity.request_cancel(
        draft, command, task.completed_event_id
    ),
    StartTimer: lambda draft, command, task: timer.start(draft, command, task.completed_event_id),
    CancelTimer: lambda draft, command, task: timer.cancel(draft, command, task.completed_event_id, task.identity),
    CompleteWorkflowExecution: command_close.complete,
    FailWorkflowExecution: command_close.fail,
    CancelWorkflowExecution: command_close.cancel,
    ContinueAsNewWorkflowExecution: command_close.continue_as_new,
    RecordMarker: _record_marker,
    StartChildWorkflowExecution: lambda draft, command, task: child.start(draft, command, task.completed_event_id),
    SignalExternalWorkflowExecution: lambda draft, command, task: external.signal(
        draft, command, task.completed_event_id
    ),
    RequestCancelExternalWorkflowExecution: lambda draft, command, task: external.cancel(
        draft, command, task.completed_event_id
    ),
    UpsertWorkflowSearchAttributes: attributes.upsert_search_attributes,
    ModifyWorkflowProperties: attributes.modify_memo,
    AcceptUpdate: update.accept,
    RejectUpdate: update.reject,
    CompleteUpdate: update.complete,
}
"""Complete: a test compares it with the union of commands."""

SIZES: dict[type, Callable[[Any], int]] = {
    ScheduleActivityTask: lambda command: (
        sum(map(payload_size, command.input)) + sum(map(payload_size, command.headers.values()))
    ),
    CompleteWorkflowExecution: lambda command: sum(map(payload_size, command.result)),
    CancelWorkflowExecution: lambda command: sum(map(payload_size, command.details)),
    FailWorkflowExecution: lambda command: failure_size(command.failure),
    ContinueAsNewWorkflowExecution: command_close.continued_size,
    RecordMarker: _marker_size,
    UpsertWorkflowSearchAttributes: attributes.search_attributes_size,
    ModifyWorkflowProperties: attributes.memo_size,
    SignalExternalWorkflowExecution: external.signal_size,
    RejectUpdate: lambda command: failure_size(command.failure),
    CompleteUpdate: update.outcome_size,
    StartChildWorkflowExecution: child.start_size,
}
"""Of commands that carry payloads."""
