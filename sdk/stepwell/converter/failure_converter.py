"""Exceptions to failure records and back (ER-01). Encoding never fails: whatever was raised, the caller gets a
failure (WC-24).

An exception of any class travels as its class name, message, stack and causes, never by rebuilding it from arguments.
Text is cut to ``limits.MAX_FAILURE_MESSAGE_BYTES``, chains of causes to ``limits.MAX_FAILURE_CAUSES``, lone
surrogates are written as escapes.
"""

import asyncio
import traceback
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from ..api import failures as wire
from ..api.enums import RetryState, TimeoutType
from ..api.failures import Failure
from ..api.limits import MAX_FAILURE_CAUSES, MAX_FAILURE_MESSAGE_BYTES
from ..api.payloads import Payload, Payloads
from ..common import RawValue
from ..exceptions import (
    ActivityError,
    ApplicationError,
    ApplicationErrorCategory,
    CancelledError,
    ChildWorkflowError,
    FailureError,
    ServerError,
    TerminatedError,
    TimeoutError,
)
from .errors import PayloadError
from .frames import frames_from_users_code
from .payload_converter import PayloadConverter

SOURCE = "stepwell-python"
ENCODED = "Encoded failure"
"""The message of a failure whose own is in its encoded attributes."""

_MESSAGE, _STACK_TRACE = "message", "stack_trace"
_CUT = " … [cut: {} bytes in all]"


class FailureConverter(ABC):
    """Exceptions to :class:`Failure` records and back. Must be deterministic."""

    default: ClassVar["FailureConverter"]

    @abstractmethod
    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter) -> Failure:
        """Must not raise for any exception."""

    @abstractmethod
    def from_failure(self, failure: Failure, payload_converter: PayloadConverter) -> BaseException: ...


class DefaultFailureConverter(FailureConverter):
    """The rules described in the module."""

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter) -> Failure:
        """The record of an exception with its chain of causes."""
        chain: list[BaseException] = []
        seen: set[int] = set()
        current: BaseException | None = exception
        while current is not None and id(current) not in seen and len(chain) < MAX_FAILURE_CAUSES:
            seen.add(id(current))
            chain.append(current)
            if isinstance(current, FailureError) and current.failure is not None:
                break
            current = _cause(current)
        failure: Failure | None = None
        for link in reversed(chain):
            failure = self._one(link, failure, payload_converter)
        assert failure is not None
        return failure

    def _one(self, exception: BaseException, cause: Failure | None, converter: PayloadConverter) -> Failure:
        if isinstance(exception, FailureError) and exception.failure is not None:
            return exception.failure
        return Failure(
            message=_message(exception),
            source=SOURCE,
            stack_trace=_stack(exception),
            cause=cause,
            info=_info(exception, converter),
        )

    def from_failure(self, failure: Failure, payload_converter: PayloadConverter) -> BaseException:
        """The exception, with its causes as ``__cause__``."""
        error = _exception(readable(failure, payload_converter), payload_converter)
        error._failure = failure
        if failure.cause is not None:
            error.__cause__ = self.from_failure(failure.cause, payload_converter)
        return error


class DefaultFailureConverterWithEncodedAttributes(DefaultFailureConverter):
    """Message and stack trace travel as a payload, so that a codec encrypts them (ER-20). Names of types and
    activities stay readable: retry policies match them.
    """

    def _one(self, exception: BaseException, cause: Failure | None, converter: PayloadConverter) -> Failure:
        failure = super()._one(exception, cause, converter)
        if isinstance(exception, FailureError) and exception.failure is not None:
            return failure  # as it came
        attributes = converter.to_payload({_MESSAGE: failure.message, _STACK_TRACE: failure.stack_trace})
        return msgspec.structs.replace(failure, message=ENCODED, stack_trace="", encoded_attributes=attributes)


FailureConverter.default = DefaultFailureConverter()


def readable(failure: Failure, converter: PayloadConverter) -> Failure:
    """The failure with the message and stack trace that its encoded attributes hold; as it is when it has none, or
    none that this converter understands. Causes are left as they are.
    """
    if failure.encoded_attributes is None:
        return failure
    try:
        found = converter.from_payload(failure.encoded_attributes, dict[str, str])
    except PayloadError:
        return failure
    return msgspec.structs.replace(
        failure,
        message=found.get(_MESSAGE, failure.message),
        stack_trace=found.get(_STACK_TRACE, ""),
        encoded_attributes=None,
    )


def cut(text: str, limit: int = MAX_FAILURE_MESSAGE_BYTES) -> str:
    """Text that UTF-8 can hold, at most ``limit`` bytes long; a marker says how long it was."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= limit:
        return data.decode()
    marker = _CUT.format(len(data))
    return data[: limit - len(marker.encode())].decode("utf-8", "ignore") + marker


def _cause(exception: BaseException) -> BaseException | None:
    if exception.__cause__ is not None:
        return exception.__cause__
    if isinstance(exception, BaseExceptionGroup):
        return exception.exceptions[0]
    return None if exception.__suppress_context__ else exception.__context__


def _text(exception: BaseException) -> str:
    try:
        return exception.message if isinstance(exception, FailureError) else str(exception)
    except Exception as error:  # a broken __str__ must not hide the failure
        return f"<str() of {type(exception).__name__} failed with {type(error).__name__}>"


def _message(exception: BaseException) -> str:
    text = _text(exception)
    if isinstance(exception, BaseExceptionGroup):
        text += "".join(f"\n  [{index}] {line}" for index, line in enumerate(_leaves(exception), 1))
    return cut(text)


def _leaves(group: BaseExceptionGroup[Any], depth: int = 0) -> list[str]:
    found: list[str] = []
    for inner in group.exceptions:
        if isinstance(inner, BaseExceptionGroup) and depth < MAX_FAILURE_CAUSES:
            found += _leaves(inner, depth + 1)
            continue
        line, cause, steps = f"{type(inner).__name__}: {_text(inner)}", _cause(inner), 0
        while cause is not None and steps < MAX_FAILURE_CAUSES:
            line, cause, steps = f"{line} <- {_type_of(cause)}: {_text(cause)}", _cause(cause), steps + 1
        found.append(line)
    return found


def _stack(exception: BaseException) -> str:
    if exception.__traceback__ is None:
        return ""
    try:
        return cut("".join(traceback.format_list(frames_from_users_code(exception.__traceback__))))
    except Exception as error:  # source files may be unreadable by now
        return f"<stack not available: {type(error).__name__}>"


def _type_of(exception: BaseException) -> str:
    if isinstance(exception, ApplicationError) and exception.type is not None:
        return exception.type
    return type(exception).__name__


def _details(values: Sequence[Any], converter: PayloadConverter) -> Payloads:
    encoded: list[Payload] = []
    for value in values:
        try:
            encoded.append(converter.to_payload(value))
        except Exception as error:  # the failure matters more than its details
            encoded.append(converter.to_payload(cut(f"<detail could not be encoded: {error}>")))
    return tuple(encoded)


def _info(exception: BaseException, converter: PayloadConverter) -> wire.FailureInfo:
    match exception:
        case ApplicationError():
            return wire.ApplicationFailureInfo(
                failure_type=cut(_type_of(exception))
                if exception.type or type(exception) is not ApplicationError
                else "",
                non_retryable=exception.non_retryable,
                details=_details(exception.details, converter),
                next_retry_delay=exception.next_retry_delay,
                category=exception.category,
            )
        case TimeoutError():
            return wire.TimeoutFailureInfo(
                timeout_type=exception.type or TimeoutType.START_TO_CLOSE,
                last_heartbeat_details=_details(exception.last_heartbeat_details, converter),
            )
        case CancelledError():
            return wire.CanceledFailureInfo(details=_details(exception.details, converter))
        case asyncio.CancelledError():
            return wire.CanceledFailureInfo()
        case TerminatedError():
            return wire.TerminatedFailureInfo()
        case ServerError():
            return wire.ServerFailureInfo(non_retryable=exception.non_retryable)
        case ActivityError() | ChildWorkflowError():
            return _wrapper_info(exception)
    return wire.ApplicationFailureInfo(failure_type=type(exception).__name__)


def _wrapper_info(exception: ActivityError | ChildWorkflowError) -> wire.FailureInfo:
    if isinstance(exception, ActivityError):
        return wire.ActivityFailureInfo(
            scheduled_event_id=exception.scheduled_event_id,
            started_event_id=exception.started_event_id,
            identity=exception.identity,
            activity_type=exception.activity_type,
            activity_id=exception.activity_id,
            retry_state=exception.retry_state or RetryState.IN_PROGRESS,
        )
    return wire.ChildWorkflowExecutionFailureInfo(
        namespace=exception.namespace,
        workflow_id=exception.workflow_id,
        run_id=exception.run_id,
        workflow_type=exception.workflow_type,
        initiated_event_id=exception.initiated_event_id,
        started_event_id=exception.started_event_id,
        retry_state=exception.retry_state or RetryState.IN_PROGRESS,
    )


def _values(payloads: Payloads, converter: PayloadConverter) -> list[Any]:
    values: list[Any] = []
    for payload in payloads:
        try:
            values.append(converter.from_payload(payload))
        except PayloadError:
            values.append(RawValue(payload))
    return values


def _exception(failure: Failure, converter: PayloadConverter) -> FailureError:
    info = failure.info
    match info:
        case wire.ApplicationFailureInfo():
            category = info.category
            return ApplicationError(
                failure.message,
                *_values(info.details, converter),
                type=info.failure_type or None,
                non_retryable=info.non_retryable,
                next_retry_delay=info.next_retry_delay,
                category=ApplicationErrorCategory.BENIGN
                if category == "BENIGN"
                else ApplicationErrorCategory.UNSPECIFIED,
                failure=failure,
            )
        case wire.TimeoutFailureInfo():
            details = _values(info.last_heartbeat_details, converter)
            return TimeoutError(
                failure.message, type=info.timeout_type, last_heartbeat_details=details, failure=failure
            )
        case wire.CanceledFailureInfo():
            return CancelledError(failure.message or "Cancelled", *_values(info.details, converter), failure=failure)
        case wire.TerminatedFailureInfo():
            return TerminatedError(failure.message or "Terminated", failure=failure)
        case wire.ServerFailureInfo():
            return ServerError(failure.message, non_retryable=info.non_retryable, failure=failure)
        case wire.ActivityFailureInfo() | wire.ChildWorkflowExecutionFailureInfo():
            return _wrapper(failure, info)
    return FailureError(failure.message, failure=failure)


def _wrapper(failure: Failure, info: wire.ActivityFailureInfo | wire.ChildWorkflowExecutionFailureInfo) -> FailureError:
    if isinstance(info, wire.ActivityFailureInfo):
        return ActivityError(
            failure.message or "Activity task failed",
            scheduled_event_id=info.scheduled_event_id,
            started_event_id=info.started_event_id,
            identity=info.identity,
            activity_type=info.activity_type,
            activity_id=info.activity_id,
            retry_state=info.retry_state,
            failure=failure,
        )
    return ChildWorkflowError(
        failure.message or "Child workflow failed",
        namespace=info.namespace,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        workflow_type=info.workflow_type,
        initiated_event_id=info.initiated_event_id,
        started_event_id=info.started_event_id,
        retry_state=info.retry_state,
        failure=failure,
    )
