"""Makes what workers report fit the limits. A client is told to send less, but a worker's report ends something:
refusing it would only run the same activity, or workflow task, again and again (WC-26).

A result that is too large becomes a failure that is not retried; a failure keeps its type and loses what does not fit.
"""

import msgspec
from stepwell.api import requests as r
from stepwell.api.commands import Command, CompleteUpdate, FailWorkflowExecution, RejectUpdate
from stepwell.api.failures import (
    ApplicationFailureInfo,
    CanceledFailureInfo,
    Failure,
    FailureInfo,
    TimeoutFailureInfo,
)
from stepwell.api.limits import MAX_FAILURE_CAUSES, MAX_FAILURE_MESSAGE_BYTES, MAX_PAYLOAD_BYTES
from stepwell.api.payloads import Payloads, size_of
from stepwell.api.updates import UpdateOutcome

from ..history.retry import kept

TOO_LARGE = "PayloadTooLarge"
"""Failure type of a result above the limit."""

_CUT = " … (cut)"
_CUT_BYTES = len(_CUT.encode())


def limit_of(own: int | None) -> int:
    """``own``: of a namespace, where it has one."""
    return MAX_PAYLOAD_BYTES if own is None else min(own, MAX_PAYLOAD_BYTES)


def fit_outcomes(
    outcomes: tuple[r.ActivityOutcome, ...], limit: int = MAX_PAYLOAD_BYTES
) -> tuple[r.ActivityOutcome, ...]:
    """The same tuple when everything fits, which is the common case."""
    for outcome in outcomes:
        if _fit_outcome(outcome, limit) is not outcome:
            return tuple([_fit_outcome(one, limit) for one in outcomes])
    return outcomes


def fit_commands(commands: tuple[Command, ...], limit: int) -> tuple[Command, ...]:
    """Failures by which runs and updates end, within the limit of a namespace; others are refused with the task."""
    return tuple([_fit_command(command, limit) for command in commands])


def _fit_command(command: Command, limit: int) -> Command:
    match command:
        case FailWorkflowExecution() | RejectUpdate():
            failure = fit_failure(command.failure, limit)
            return command if failure is command.failure else msgspec.structs.replace(command, failure=failure)
        case CompleteUpdate(outcome=UpdateOutcome(failure=Failure() as given) as outcome):
            failure = fit_failure(given, limit)
            if failure is given:
                return command
            return msgspec.structs.replace(command, outcome=msgspec.structs.replace(outcome, failure=failure))
        case _:
            return command


def fit_failure(failure: Failure, limit: int = MAX_PAYLOAD_BYTES) -> Failure:
    """The same record when everything fits; else message, stack trace and details are cut and deep causes dropped.
    A limit of a namespace is that of the whole."""
    fitted = _fit(failure, limit, 1)
    return fitted if limit >= MAX_PAYLOAD_BYTES else kept(fitted, limit)


def _fit(failure: Failure, limit: int, depth: int) -> Failure:
    message, stack_trace = _cut(failure.message), _cut(failure.stack_trace)
    cause, info, encoded = failure.cause, failure.info, failure.encoded_attributes
    if cause is not None:
        cause = None if depth > MAX_FAILURE_CAUSES else _fit(cause, limit, depth + 1)
    if encoded is not None and payload_bytes((encoded,)) > limit:
        encoded = None
    lost = _details_too_large(failure, limit)
    if lost:
        info = _without_details(info)
        message = _cut(f"{failure.message} [details of {lost} bytes, above the limit of {limit}, were dropped]")
    if (
        message is failure.message
        and stack_trace is failure.stack_trace
        and cause is failure.cause
        and info is failure.info
        and encoded is failure.encoded_attributes
    ):
        return failure
    return msgspec.structs.replace(
        failure, message=message, stack_trace=stack_trace, cause=cause, info=info, encoded_attributes=encoded
    )


def too_large(what: str, size: int, limit: int = MAX_PAYLOAD_BYTES) -> Failure:
    """The failure that takes the place of a result above the limit."""
    return Failure(
        message=f"{what} has {size} bytes, above the limit of {limit}; "
        "store the data elsewhere (a file or object store) and return a reference"
        + (", or have the limit of the namespace raised" if limit < MAX_PAYLOAD_BYTES else ""),
        info=ApplicationFailureInfo(failure_type=TOO_LARGE, non_retryable=True),
    )


def _fit_outcome(outcome: r.ActivityOutcome, limit: int) -> r.ActivityOutcome:
    match outcome:
        case r.ActivityCompleted():
            size = payload_bytes(outcome.result)
            if size > limit:
                failure = too_large("activity result", size, limit)
                return r.ActivityFailed(task_token=outcome.task_token, failure=failure)
            return outcome
        case r.ActivityFailed():
            return _fit_failed(outcome, limit)
        case r.ActivityCanceled():
            if payload_bytes(outcome.details) > limit:
                return r.ActivityCanceled(task_token=outcome.task_token)
            return outcome
        case r.ActivityPending():
            return outcome


def _fit_failed(outcome: r.ActivityFailed, limit: int) -> r.ActivityFailed:
    failure = fit_failure(outcome.failure, limit)
    details = outcome.last_heartbeat_details
    if details and payload_bytes(details) > limit:
        details = ()
    if failure is outcome.failure and details is outcome.last_heartbeat_details:
        return outcome
    return msgspec.structs.replace(outcome, failure=failure, last_heartbeat_details=details)


def payload_bytes(payloads: Payloads) -> int:
    return size_of(payloads) if payloads else 0


def _details_too_large(failure: Failure, limit: int) -> int:
    """Size of the failure's own details when that is above the limit, else 0."""
    match failure.info:
        case TimeoutFailureInfo(last_heartbeat_details=details):
            size = payload_bytes(details)
        case ApplicationFailureInfo(details=details) | CanceledFailureInfo(details=details):
            size = payload_bytes(details)
        case _:
            return 0
    return size if size > limit else 0


def _without_details(info: FailureInfo | None) -> FailureInfo | None:
    match info:
        case TimeoutFailureInfo():
            return msgspec.structs.replace(info, last_heartbeat_details=())
        case ApplicationFailureInfo() | CanceledFailureInfo():
            return msgspec.structs.replace(info, details=())
        case _:
            return info


def _cut(text: str) -> str:
    """At most the limit in UTF-8 bytes, ending in a marker when something was cut; the same object when not."""
    if len(text) * 4 <= MAX_FAILURE_MESSAGE_BYTES:
        return text
    encoded = text.encode(errors="replace")
    if len(encoded) <= MAX_FAILURE_MESSAGE_BYTES:
        return text
    return encoded[: MAX_FAILURE_MESSAGE_BYTES - _CUT_BYTES].decode(errors="ignore") + _CUT
