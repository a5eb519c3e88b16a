"""How replay says that a workflow task cannot be completed, and the errors that workflow code sees from it."""

from ..api.commands import ContinueAsNewWorkflowExecution
from ..api.enums import WorkflowTaskFailedCause
from ..api.failures import Failure
from ..exceptions import StepwellError


class WorkflowTaskError(StepwellError):
    """The workflow task fails: it is answered with RespondWorkflowTaskFailed and tried again; the run stays open."""

    def __init__(self, cause: WorkflowTaskFailedCause, failure: Failure) -> None:
        super().__init__(f"{cause}: {failure.message}")
        self.failed_cause = cause
        self.failure = failure


class NondeterminismError(StepwellError):
    """The workflow code does not do what its history says it did (VE-19)."""


class ReadOnlyContextError(StepwellError):
    """A query handler tried to change something (PM-22)."""


class UnansweredQueryError(StepwellError, ValueError):
    """There is nothing that could answer the query, or its answer cannot be sent."""


class NotInWorkflowError(StepwellError, RuntimeError):
    """A function of ``stepwell.workflow`` was called outside of workflow code."""


class ForbiddenInWorkflowError(StepwellError, RuntimeError):
    """Workflow code did something that replay cannot repeat; the message names the call to use instead (PM-24)."""


class Evicted(BaseException):
    """Stops code that still runs while its run is taken out of the cache; never seen by anyone."""


class ContinueAsNewError(BaseException):
    """Ends the run and begins the next one; raised by ``workflow.continue_as_new``. Not to be caught."""

    def __init__(self, command: ContinueAsNewWorkflowExecution) -> None:
        super().__init__("the workflow continues as new")
        self.command = command
