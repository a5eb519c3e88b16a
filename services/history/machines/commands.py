"""Commands of one workflow task: carried out in order, one event each, or none of them at all."""

from collections.abc import Sequence
from typing import assert_never

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
from stepwell.api.events import (
    MarkerRecorded,
    WorkflowExecutionCanceled,
    WorkflowExecutionCompleted,
    WorkflowExecutionFailed,
)

from ..builder import TransitionBuilder
from . import closing, command_activity, external, timer
from .bad_command import BadCommand, check_id, check_payloads, check_size, failure_size, payload_size
from .command_activity import Leasing


def closes(commands: Sequence[Command]) -> bool:
    return bool(commands) and isinstance(commands[-1], CLOSE_COMMANDS)


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


def carry_out(
    draft: TransitionBuilder, commands: Sequence[Command], completed_event_id: int, leasing: Leasing, identity: str
) -> None:
    """Records one event per command. Raises BadCommand: then the draft is worth nothing."""
    size = draft.state.history_size
    for command in commands:
        _carry_out(draft, command, completed_event_id, leasing, identity)
    # Events are larger than the payloads that the limit counts, so most tasks need no counting
    if draft.state.history_size - size > limits.MAX_TRANSITION_BYTES:
        _check_total(commands)


def _check_total(commands: Sequence[Command]) -> None:
    """Counted as the limit of one payload is, and as the SDK counts it: bytes of payloads, not of what stores them."""
    total = sum(map(_size, commands))
    if total > limits.MAX_TRANSITION_BYTES:
        raise BadCommand(
            WorkflowTaskFailedCause.PAYLOADS_TOO_LARGE,
            f"the {len(commands)} commands of the workflow task come to {total} bytes; at most "
            f"{limits.MAX_TRANSITION_BYTES} are taken at once. Pass references to large data, or start the work in "
            "several batches.",
        )


def _size(command: Command) -> int:
    match command:
        case ScheduleActivityTask():
            return sum(map(payload_size, command.input)) + sum(map(payload_size, command.headers.values()))
        case SignalExternalWorkflowExecution():
            return external.signal_size(command)
        case CompleteWorkflowExecution():
            return sum(map(payload_size, command.result))
        case CancelWorkflowExecution():
            return sum(map(payload_size, command.details))
        case FailWorkflowExecution():
            return failure_size(command.failure)
        case RecordMarker():
            size = sum(map(payload_size, command.details.values()))
            return size if command.failure is None else size + failure_size(command.failure)
        case RequestCancelActivityTask() | StartTimer() | CancelTimer():
            return 0
        case (
            ContinueAsNewWorkflowExecution()
            | StartChildWorkflowExecution()
            | RequestCancelExternalWorkflowExecution()
            | UpsertWorkflowSearchAttributes()
            | ModifyWorkflowProperties()
            | AcceptUpdate()
            | RejectUpdate()
            | CompleteUpdate()
        ):
            return 0  # refused by name
        case _:
            assert_never(command)


def _carry_out(
    draft: TransitionBuilder, command: Command, completed_event_id: int, leasing: Leasing, identity: str
) -> None:
    match command:
        case ScheduleActivityTask():
            command_activity.schedule(draft, command, completed_event_id, leasing)
        case RequestCancelActivityTask():
            command_activity.request_cancel(draft, command, completed_event_id)
        case StartTimer():
            timer.start(draft, command, completed_event_id)
        case CancelTimer():
            timer.cancel(draft, command, completed_event_id, identity)
        case SignalExternalWorkflowExecution():
            external.signal(draft, command, completed_event_id)
        case CompleteWorkflowExecution() | FailWorkflowExecution() | CancelWorkflowExecution():
            _close(draft, command, completed_event_id)
        case RecordMarker():
            _record_marker(draft, command, completed_event_id)
        case (
            ContinueAsNewWorkflowExecution()
            | StartChildWorkflowExecution()
            | RequestCancelExternalWorkflowExecution()
            | UpsertWorkflowSearchAttributes()
            | ModifyWorkflowProperties()
            | AcceptUpdate()
            | RejectUpdate()
            | CompleteUpdate()
        ):
            raise BadCommand(
                WorkflowTaskFailedCause.FEATURE_DISABLED,
                f"this server does not carry out {type(command).__name__} yet; take it out of the workflow, or run it "
                "on a newer server.",
            )
        case _:
            assert_never(command)


def _close(
    draft: TransitionBuilder,
    command: CompleteWorkflowExecution | FailWorkflowExecution | CancelWorkflowExecution,
    completed_event_id: int,
) -> None:
    match command:
        case CompleteWorkflowExecution():
            check_payloads("the result of the workflow", command.result)
            closing.close(
                draft,
                WorkflowExecutionCompleted(result=command.result, workflow_task_completed_event_id=completed_event_id),
            )
        case FailWorkflowExecution():
            check_size("the failure of the workflow", failure_size(command.failure))
            closing.close(
                draft,
                WorkflowExecutionFailed(failure=command.failure, workflow_task_completed_event_id=completed_event_id),
            )
        case CancelWorkflowExecution():
            check_payloads("the details of the cancellation", command.details)
            closing.close(
                draft,
                WorkflowExecutionCanceled(details=command.details, workflow_task_completed_event_id=completed_event_id),
            )


def _record_marker(draft: TransitionBuilder, command: RecordMarker, completed_event_id: int) -> None:
    check_id(WorkflowTaskFailedCause.BAD_RECORD_MARKER_ATTRIBUTES, "marker_name", command.marker_name)
    if command.details:
        check_size("the details of the marker", sum(map(payload_size, command.details.values())))
    if command.failure is not None:
        check_size("the failure of the marker", failure_size(command.failure))
    draft.record(
        MarkerRecorded(
            marker_name=command.marker_name,
            details=command.details,
            workflow_task_completed_event_id=completed_event_id,
            failure=command.failure,
        )
    )
