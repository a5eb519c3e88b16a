"""Commands: what workflow code decided in one workflow task (``temporal.api.command.v1``, in snake_case).

Each command makes exactly one event (``RejectUpdate`` none), in order, directly behind ``WorkflowTaskCompleted``; so a
worker knows the event ids of what it asked for as soon as its completion is accepted. A command that cannot be carried
out fails the whole workflow task with a named cause, and none of its commands takes effect.

The records are in ``commands_*`` by subject; this is their union, and where everybody imports them from.
"""

from .commands_activity import RequestCancelActivityTask as RequestCancelActivityTask
from .commands_activity import ScheduleActivityTask as ScheduleActivityTask
from .commands_external import RequestCancelExternalWorkflowExecution as RequestCancelExternalWorkflowExecution
from .commands_external import SignalExternalWorkflowExecution as SignalExternalWorkflowExecution
from .commands_external import StartChildWorkflowExecution as StartChildWorkflowExecution
from .commands_timer import CancelTimer as CancelTimer
from .commands_timer import RecordMarker as RecordMarker
from .commands_timer import StartTimer as StartTimer
from .commands_update import AcceptUpdate as AcceptUpdate
from .commands_update import CompleteUpdate as CompleteUpdate
from .commands_update import RejectUpdate as RejectUpdate
from .commands_workflow import CancelWorkflowExecution as CancelWorkflowExecution
from .commands_workflow import CompleteWorkflowExecution as CompleteWorkflowExecution
from .commands_workflow import ContinueAsNewWorkflowExecution as ContinueAsNewWorkflowExecution
from .commands_workflow import FailWorkflowExecution as FailWorkflowExecution
from .commands_workflow import ModifyWorkflowProperties as ModifyWorkflowProperties
from .commands_workflow import UpsertWorkflowSearchAttributes as UpsertWorkflowSearchAttributes

Command = (
    ScheduleActivityTask
    | RequestCancelActivityTask
    | StartTimer
    | CancelTimer
    | CompleteWorkflowExecution
    | FailWorkflowExecution
    | CancelWorkflowExecution
    | RecordMarker
    | ContinueAsNewWorkflowExecution
    | StartChildWorkflowExecution
    | SignalExternalWorkflowExecution
    | RequestCancelExternalWorkflowExecution
    | UpsertWorkflowSearchAttributes
    | ModifyWorkflowProperties
    | AcceptUpdate
    | RejectUpdate
    | CompleteUpdate
)

CLOSE_COMMANDS = (
    CompleteWorkflowExecution,
    FailWorkflowExecution,
    CancelWorkflowExecution,
    ContinueAsNewWorkflowExecution,
)
"""At most one per workflow task, and it is the last command."""
