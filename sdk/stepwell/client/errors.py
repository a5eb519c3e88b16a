"""What a client raises."""

from ..activity.info import ActivityCancellationDetails
from ..api.enums import WorkflowExecutionStatus
from ..api.errors import ApiError
from ..exceptions import StepwellError


class RPCError(StepwellError):
    """The engine refused a call or could not be reached. ``cause`` is the ``stepwell.api.errors`` exception."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(error.message)
        self.__cause__ = error
        self.message = error.message
        self.code = error.code
        """Stable name of the refusal, such as ``NOT_FOUND`` or ``UNAVAILABLE``."""
        self.retryable = error.retryable
        """True when the same call may succeed later."""
        self.details = error.details


class WorkflowFailureError(StepwellError):
    """The workflow did not complete. ``cause`` says how it ended: an ApplicationError, ActivityError, CancelledError,
    TerminatedError or TimeoutError of ``stepwell.exceptions``."""

    def __init__(self, *, cause: BaseException) -> None:
        super().__init__(f"Workflow execution failed: {cause}")
        self.__cause__ = cause


class ActivityFailureError(StepwellError):
    """A stand-alone activity did not complete. ``cause`` says how it ended: an ApplicationError, CancelledError,
    TerminatedError or TimeoutError of ``stepwell.exceptions``."""

    def __init__(self, *, cause: BaseException) -> None:
        super().__init__(f"Activity execution failed: {cause}")
        self.__cause__ = cause


class AsyncActivityCancelledError(StepwellError):
    """The activity is to stop: raised by a heartbeat of :class:`AsyncActivityHandle`. ``details`` says why; answer with
    ``report_cancellation``, or end it otherwise."""

    def __init__(self, details: ActivityCancellationDetails | None = None) -> None:
        super().__init__("Activity cancelled")
        self.details = details


class WorkflowContinuedAsNewError(StepwellError):
    """The run has no result: it continued as new, as run ``new_execution_run_id``."""

    def __init__(self, new_execution_run_id: str) -> None:
        super().__init__(f"Workflow execution continued as new, as run {new_execution_run_id}")
        self.new_execution_run_id = new_execution_run_id


class WorkflowUpdateFailedError(StepwellError):
    """The update was rejected, its handler failed, or its workflow ended first. ``cause`` says which: an
    ApplicationError or another exception of ``stepwell.exceptions``."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"Workflow update failed: {cause}")
        self.__cause__ = cause


class WorkflowUpdateRPCTimeoutOrCancelledError(StepwellError):
    """``rpc_timeout`` ended before the update came so far. The update itself goes on."""


class WorkflowQueryFailedError(StepwellError):
    """The workflow's query handler failed, or there is no such query."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class WorkflowQueryRejectedError(StepwellError):
    """The query was not made, since the run's status is one that the reject condition excludes (MS-21)."""

    def __init__(self, status: WorkflowExecutionStatus | None) -> None:
        super().__init__(f"Query rejected, status: {status}")
        self.status = status


class ScheduleAlreadyRunningError(StepwellError):
    """There is a schedule of this id."""

    def __init__(self, id: str) -> None:
        super().__init__(f"Schedule {id!r} is there already. Update it (ScheduleHandle.update), or use another id")
        self.id = id
