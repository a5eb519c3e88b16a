"""Errors of the API: one class per code, each saying whether the same call may succeed later."""

from typing import ClassVar

from ._struct import Record


class ErrorBody(Record, frozen=True, kw_only=True):
    """JSON body of every answer that is not a success."""

    code: str
    message: str
    retryable: bool = False
    details: dict[str, str] = {}


class ApiError(Exception):
    """Base of all refusals. ``str(error)`` is a sentence for people: field, limit, way out."""

    code: ClassVar[str] = "INTERNAL"
    http_status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, **details: str) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def body(self) -> ErrorBody:
        return ErrorBody(code=self.code, message=self.message, retryable=self.retryable, details=self.details)


class InvalidArgument(ApiError):
    """The request itself is wrong; nothing was written. ``details["field"]`` names the field."""

    code, http_status = "INVALID_ARGUMENT", 400


class PayloadTooLarge(InvalidArgument):
    code, http_status = "PAYLOAD_TOO_LARGE", 413


class Unauthenticated(ApiError):
    code, http_status = "UNAUTHENTICATED", 401


class PermissionDenied(ApiError):
    code, http_status = "PERMISSION_DENIED", 403


class NotFound(ApiError):
    """No such workflow, run, activity or route; also a task token that is no longer current (AC-22)."""

    code, http_status = "NOT_FOUND", 404


class WorkflowExecutionClosed(NotFound):
    """The run is known and closed; ``details["status"]`` says how."""

    code, http_status = "WORKFLOW_EXECUTION_CLOSED", 404


class WorkflowExecutionAlreadyStarted(ApiError):
    """``details["run_id"]`` is the run that holds the id."""

    code, http_status = "WORKFLOW_EXECUTION_ALREADY_STARTED", 409


class ActivityAlreadyStarted(ApiError):
    """Of a stand-alone activity. ``details["run_id"]`` is the run that holds the id."""

    code, http_status = "ACTIVITY_ALREADY_STARTED", 409


class WorkflowExecutionClosing(ApiError):
    """The run is about to close and takes no more messages (MS-06); retry after a moment."""

    code, http_status, retryable = "WORKFLOW_EXECUTION_CLOSING", 409, True


class FailedPrecondition(ApiError):
    """The state of the run does not allow the call, such as a query that nobody serves (MS-23)."""

    code, http_status = "FAILED_PRECONDITION", 412


class NamespaceNotFound(NotFound):
    """No namespace of this name is registered."""

    code = "NAMESPACE_NOT_FOUND"


class NamespaceAlreadyExists(ApiError):
    """The name is taken."""

    code, http_status = "NAMESPACE_ALREADY_EXISTS", 409


class ScheduleAlreadyExists(ApiError):
    """There is a schedule of this id."""

    code, http_status = "SCHEDULE_ALREADY_EXISTS", 409


class ConflictTokenMismatch(FailedPrecondition):
    """Somebody else's update came between (LC-41): describe, change that, and update with its token."""

    code, http_status = "CONFLICT_TOKEN_MISMATCH", 412


class QueryFailed(ApiError):
    """The workflow's query handler failed, or there is no such handler."""

    code, http_status = "QUERY_FAILED", 422


class QueryRejected(ApiError):
    """``details["status"]`` is the run's status, which the caller's reject condition excluded (MS-21)."""

    code, http_status = "QUERY_REJECTED", 422


class ResourceExhausted(ApiError):
    """Over a rate or size that recovers with time. ``details["cause"]`` names it, ``details["scope"]`` says whose limit
    it was, and ``details["retry_after"]`` in how many seconds to call again, where that is known (MT-05)."""

    code, http_status, retryable = "RESOURCE_EXHAUSTED", 429, True


class DeadlineExceeded(ApiError):
    """The server's wait ended without an answer; what was asked for may still happen."""

    code, http_status, retryable = "DEADLINE_EXCEEDED", 504, True


class Unavailable(ApiError):
    """The engine cannot serve now (stopping, storage full or out of reach); nothing acknowledged is lost."""

    code, http_status, retryable = "UNAVAILABLE", 503, True


class Unimplemented(ApiError):
    code, http_status = "UNIMPLEMENTED", 501


class Internal(ApiError):
    """A fault of the engine; the log of the server has the details."""


ERRORS: tuple[type[ApiError], ...] = (
    InvalidArgument,
    PayloadTooLarge,
    Unauthenticated,
    PermissionDenied,
    NotFound,
    NamespaceNotFound,
    NamespaceAlreadyExists,
    WorkflowExecutionClosed,
    WorkflowExecutionAlreadyStarted,
    ActivityAlreadyStarted,
    WorkflowExecutionClosing,
    FailedPrecondition,
    ScheduleAlreadyExists,
    ConflictTokenMismatch,
    QueryFailed,
    QueryRejected,
    ResourceExhausted,
    DeadlineExceeded,
    Unavailable,
    Unimplemented,
    Internal,
)


def error_from(body: ErrorBody) -> ApiError:
    """The exception for a decoded error body; an unknown code becomes the base class, with its message."""
    for error in ERRORS:
        if error.code == body.code:
            return error(body.message, **body.details)
    return ApiError(f"{body.code}: {body.message}", **body.details)


def retry_after(error: ApiError) -> float:
    """Seconds for which the refusal asks to be left alone; 0 where it says nothing."""
    if not isinstance(error, ResourceExhausted):
        return 0.0
    try:
        return max(0.0, float(error.details.get("retry_after", "0")))
    except ValueError:
        return 0.0
