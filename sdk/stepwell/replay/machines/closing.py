"""The end of a run, matched by kind alone: Complete, Fail, Cancel, or the next run of the chain."""

from ...api import commands, events
from ...api.commands import Command
from ...api.events import EventAttributes
from .command import Ask

_EVENTS: dict[type, type] = {
    commands.CompleteWorkflowExecution: events.WorkflowExecutionCompleted,
    commands.FailWorkflowExecution: events.WorkflowExecutionFailed,
    commands.CancelWorkflowExecution: events.WorkflowExecutionCanceled,
    commands.ContinueAsNewWorkflowExecution: events.WorkflowExecutionContinuedAsNew,
}

CloseCommand = (
    commands.CompleteWorkflowExecution
    | commands.FailWorkflowExecution
    | commands.CancelWorkflowExecution
    | commands.ContinueAsNewWorkflowExecution
)


class Closing(Ask):
    """The last command of a run."""

    __slots__ = ("_command",)

    def __init__(self, command: CloseCommand) -> None:
        self._command = command

    def command(self) -> Command:
        return self._command

    def matches(self, recorded: EventAttributes) -> bool:
        return type(recorded) is _EVENTS[type(self._command)]

    def describe(self) -> str:
        name = type(self._command).__name__
        if isinstance(self._command, commands.FailWorkflowExecution):
            return f"{name} ({self._command.failure.message[:200]})"
        return name
