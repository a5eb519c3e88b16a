"""What user code raises and catches: the failure taxonomy (ER-01), each with its chain of causes.

An exception raised in an activity or a workflow crosses processes as a ``Failure`` record and comes back as one of
these. A :class:`FailureError` that leaves workflow code fails the workflow; any other exception fails only the workflow
task, which is tried again until the code is fixed (ER-03).
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any

from .api.enums import RetryState, TimeoutType
from .api.failures import Failure

__all__ = [
    "ActivityAlreadyStartedError",
    "ActivityError",
    "ApplicationError",
    "ApplicationErrorCategory",
    "CancelledError",
    "ChildWorkflowError",
    "FailureError",
    "RetryState",
    "ServerError",
    "StepwellError",
    "TerminatedError",
    "TimeoutError",
    "TimeoutType",
    "WorkflowAlreadyStartedError",
    "is_cancelled_exception",
]


class StepwellError(Exception):
    """Base of all errors of this package."""

    @property
    def cause(self) -> BaseException | None:
        """The error behind this one, ``__cause__``."""
        return self.__cause__

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled by state, since constructors have arguments that ``args`` does not keep (process-pool activities)."""
        return _restored, (type(self), self.args, self.__dict__, self.__cause__)


def _restored(
    kind: type[BaseException], args: tuple[Any, ...], state: dict[str, Any], cause: BaseException | None
) -> BaseException:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    error.__cause__ = cause
    return error


class ApplicationErrorCategory(StrEnum):
    """How loudly a failure is reported (AC-13)."""

    UNSPECIFIED = ""
    BENIGN = "BENIGN"
    """Expected: logged at debug level, not counted as an error."""


class FailureError(StepwellError):
    """A failure that is kept with a history; leaving workflow code, it fails the workflow."""

    def __init__(self, message: str, *, failure: Failure | None = None) -> None:
        super().__init__(message)
        self._message = message
        self._failure = failure

    @property
    def message(self) -> str:
        return self._message

    @property
    def failure(self) -> Failure | None:
        """The record this error was decoded from; None for one raised here."""
        return self._failure

    def __str__(self) -> str:
        return self._message


class ApplicationError(FailureError):
    """Raised by user code; also what any other exception of an activity comes back as, with its class name as
    ``type``.
    """

    def __init__(
        self,
        message: str,
        *details: Any,
        type: str | None = None,
        non_retryable: bool = False,
        next_retry_delay: timedelta | None = None,
        category: ApplicationErrorCategory = ApplicationErrorCategory.UNSPECIFIED,
        failure: Failure | None = None,
    ) -> None:
        super().__init__(message, failure=failure)
        self._details = details
        self._type = type
        self._non_retryable = non_retryable
        self._next_retry_delay = next_retry_delay
        self._category = category

    @property
    def details(self) -> Sequence[Any]:
        """Values that travel with the failure."""
        return self._details

    @property
    def type(self) -> str | None:
        """Name that retry policies match exactly (AC-10)."""
        return self._type

    @property
    def non_retryable(self) -> bool:
        """True when it must not be tried again (AC-11)."""
        return self._non_retryable

    @property
    def next_retry_delay(self) -> timedelta | None:
        """Overrides the wait before the next attempt, once (AC-12)."""
        return self._next_retry_delay

    @property
    def category(self) -> ApplicationErrorCategory:
        return self._category

    def __str__(self) -> str:
        return f"{self._type}: {self._message}" if self._type else self._message


class CancelledError(FailureError):
    """A cancellation that was recorded: the cause of a cancelled activity's error, or of a cancelled workflow's."""

    def __init__(self, message: str = "Cancelled", *details: Any, failure: Failure | None = None) -> None:
        super().__init__(message, failure=failure)
        self._details = details

    @property
    def details(self) -> Sequence[Any]:
        return self._details


class TerminatedError(FailureError):
    """The workflow was terminated (CH-13)."""

    def __init__(self, message: str = "Terminated", *details: Any, failure: Failure | None = None) -> None:
        super().__init__(message, failure=failure)
        self._details = details

    @property
    def details(self) -> Sequence[Any]:
        return self._details


class TimeoutError(FailureError):
    """An activity or workflow ran out of time; ``type`` says which limit."""

    def __init__(
        self,
        message: str,
        *,
        type: TimeoutType | None,
        last_heartbeat_details: Sequence[Any] = (),
        failure: Failure | None = None,
    ) -> None:
        super().__init__(message, failure=failure)
        self._type = type
        self._last_heartbeat_details = last_heartbeat_details

    @property
    def type(self) -> TimeoutType | None:
        return self._type

    @property
    def last_heartbeat_details(self) -> Sequence[Any]:
        return self._last_heartbeat_details


class ServerError(FailureError):
    """The engine failed."""

    def __init__(self, message: str, *, non_retryable: bool = False, failure: Failure | None = None) -> None:
        super().__init__(message, failure=failure)
        self._non_retryable = non_retryable

    @property
    def non_retryable(self) -> bool:
        return self._non_retryable


class ActivityError(FailureError):
    """An activity failed for good; ``cause`` is why: an ApplicationError, TimeoutError or CancelledError."""

    def __init__(
        self,
        message: str,
        *,
        scheduled_event_id: int,
        started_event_id: int,
        identity: str,
        activity_type: str,
        activity_id: str,
        retry_state: RetryState | None,
        failure: Failure | None = None,
    ) -> None:
        super().__init__(message, failure=failure)
        self.scheduled_event_id = scheduled_event_id
        self.started_event_id = started_event_id
        self.identity = identity
        self.activity_type = activity_type
        self.activity_id = activity_id
        self.retry_state = retry_state


class ChildWorkflowError(FailureError):
    """A child workflow failed for good; ``cause`` is why."""

    def __init__(
        self,
        message: str,
        *,
        namespace: str,
        workflow_id: str,
        run_id: str,
        workflow_type: str,
        initiated_event_id: int,
        started_event_id: int,
        retry_state: RetryState | None,
        failure: Failure | None = None,
    ) -> None:
        super().__init__(message, failure=failure)
        self.namespace = namespace
        self.workflow_id = workflow_id
        self.run_id = run_id
        self.workflow_type = workflow_type
        self.initiated_event_id = initiated_event_id
        self.started_event_id = started_event_id
        self.retry_state = retry_state


class SessionFailedError(ApplicationError):
    """A session could not begin, or broke: its worker is gone or shuts down, or its time is over (AC-29)."""

    def __init__(self, message: str) -> None:
        super().__init__(message, type="SessionFailedError")


class WorkflowAlreadyStartedError(FailureError):
    """A start was refused, since the id is taken and the policies do not allow another run."""

    def __init__(self, workflow_id: str, workflow_type: str, *, run_id: str | None = None, message: str = "") -> None:
        super().__init__(
            message
            or f"Workflow {workflow_id!r} is already started{f' (run {run_id})' if run_id else ''}. Use another id, or "
            "another id_conflict_policy (when that run is open) or id_reuse_policy (when it is closed)"
        )
        self.workflow_id = workflow_id
        self.workflow_type = workflow_type
        self.run_id = run_id


class ActivityAlreadyStartedError(FailureError):
    """A start of a stand-alone activity was refused: the id is taken, and the policies do not allow another run."""

    def __init__(self, activity_id: str, activity_type: str, *, run_id: str | None = None) -> None:
        super().__init__(
            f"Activity {activity_id!r} is already started{f' (run {run_id})' if run_id else ''}. Use another id, or "
            "another id_conflict_policy (when that run is open) or id_reuse_policy (when it is closed)"
        )
        self.activity_id = activity_id
        self.activity_type = activity_type
        self.run_id = run_id


def is_cancelled_exception(error: BaseException) -> bool:
    """True for a cancellation in any of its forms: of a task, of an activity, of a child workflow."""
    return isinstance(error, asyncio.CancelledError | CancelledError) or (
        isinstance(error, ActivityError | ChildWorkflowError) and isinstance(error.cause, CancelledError)
    )
