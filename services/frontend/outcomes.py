"""Makes what workers report fit the limits. A client is told to send less, but a worker's report ends something:
refusing it would only run the same activity, or workflow task, again and again (WC-26).

A result that is too large becomes a failure that is not retried; a failure keeps its type and loses what does not fit.
"""

import msgspec
from stepwell.api import requests as r
from stepwell.api.failures import (
    ApplicationFailureInfo,
    CanceledFailureInfo,
    Failure,
    FailureInfo,
    TimeoutFailureInfo,
)
from stepwell.api.limits import MAX_FAILURE_CAUSES, MAX_FAILURE_MESSAGE_BYTES, MAX_PAYLOAD_BYTES
from stepwell.api.payloads import Payloads, size_of

TOO_LARGE = "PayloadTooLarge"
"""Failure type of a result above the limit."""

_CUT = " … (cut)"
_CUT_BYTES = len(_CUT.encode())


def fit_outcomes(outcomes: tuple[r.ActivityOutcome, ...]) -> tuple[r.ActivityOutcome, ...]:
    """The same tuple when everything fits, which is the common case."""
    for outcome in outcomes:
        if _fit_outcome(outcome) is not outcome:
            return tuple(map(_fit_outcome, outcomes))
    return outcomes


def fit_failure(failure: Failure, depth: int = 1) -> Failure:
    """The same record when everything fits; else message, stack trace and details are cut and deep causes dropped."""
    message, stack_trace = _cut(failure.message), _cut(failure.stack_trace)
    cause, info, encoded = failure.cause, failure.info, failure.encoded_attributes
    if cause is not None:
        cause = None if depth > MAX_FAILURE_CAUSES else fit_failure(cause, depth + 1)
    if encoded is not None and payload_bytes((encoded,)) > MAX_PAYLOAD_BYTES:
        encoded = None
    lost = _details_too_large(failure)
    if lost:
        info = _without_details(info)
        message = _cut(
            f"{failure.message} [details of {lost} bytes, above the limit of {MAX_PAYLOAD_BYTES}, were dropped]"
        )
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


def too_large(what: str, size: int) -> Failure:
    """The failure that takes the place of a result above the limit."""
    return Failure(
        message=f"{what} has {size} bytes, above the limit of {MAX_PAYLOAD_BYTES}; "
        "store the data elsewhere (a file or object store) and return a reference",
        info=ApplicationFailureInfo(failure_type=TOO_LARGE, non_retryable=True),
    )


def _fit_outcome(outcome: r.ActivityOutcome) -> r.ActivityOutcome:
    match outcome:
        case r.ActivityCompleted():
            size = payload_bytes(outcome.result)
            if size > MAX_PAYLOAD_BYTES:
                return r.ActivityFailed(task_token=outcome.task_token, failure=too_large("activity result", size))
            return outcome
        case r.ActivityFailed():
            return _fit_failed(outcome)
        case r.ActivityCanceled():
            if payload_bytes(outcome.details) > MAX_PAYLOAD_BYTES:
                return r.ActivityCanceled(task_token=outcome.task_token)
            return outcome
        case r.ActivityPending():
            return outcome


def _fit_failed(outcome: r.ActivityFailed) -> r.ActivityFailed:
    failure = fit_failure(outcome.failure)
    details = outcome.last_heartbeat_details
    if details and payload_bytes(details) > MAX_PAYLOAD_BYTES:
        details = ()
    if failure is outcome.failure and details is outcome.last_heartbeat_details:
        return outcome
    return msgspec.structs.replace(outcome, failure=failure, last_heartbeat_details=details)


def payload_bytes(payloads: Payloads) -> int:
    return size_of(payloads) if payloads else 0


def _details_too_large(failure: Failure) -> int:
    """Size of the failure's own details when that is above the limit, else 0."""
    match failure.info:
        case TimeoutFailureInfo(last_heartbeat_details=details):
            size = payload_bytes(details)
        case ApplicationFailureInfo(details=details) | CanceledFailureInfo(details=details):
            size = payload_bytes(details)
        case _:
            return 0
    return size if size > MAX_PAYLOAD_BYTES else 0


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
