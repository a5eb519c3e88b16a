"""Whether and when an activity is tried again (AC-09 to AC-12, ER-02), and the shapes of its last failure (WC-06)."""

import math
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
from stepwell.api import limits
from stepwell.api.common import RetryPolicy
from stepwell.api.enums import RetryState, TimeoutType
from stepwell.api.failures import (
    ApplicationFailureInfo,
    CanceledFailureInfo,
    Failure,
    ServerFailureInfo,
    TerminatedFailureInfo,
    TimeoutFailureInfo,
)
from stepwell.api.payloads import Payloads

DEFAULT_MAXIMUM_FACTOR = 100
"""Without a maximum interval, the cap is this many initial intervals (AC-09)."""

_TIMEOUT_NAMES = {
    TimeoutType.START_TO_CLOSE: ("TemporalTimeout:StartToClose", "StepwellTimeout:StartToClose"),
    TimeoutType.HEARTBEAT: ("TemporalTimeout:Heartbeat", "StepwellTimeout:Heartbeat"),
}
"""What a non-retryable list may call them (AC-10); the other two are never retried."""

_encode = msgspec.json.Encoder().encode
_CUT = " [cut]"


class Retry(NamedTuple):
    """Try again, not before ``time``; None is at once."""

    time: datetime | None


def backoff(policy: RetryPolicy, attempt: int) -> timedelta:
    """Wait behind the failure of ``attempt`` (1 is the first): initial x coefficient^(attempt-1), capped.

    Never zero for a positive initial interval, never negative, never shorter than the one before (WC-05).
    """
    initial = policy.initial_interval
    maximum = policy.maximum_interval if policy.maximum_interval is not None else initial * DEFAULT_MAXIMUM_FACTOR
    try:
        factor = policy.backoff_coefficient ** (attempt - 1)
    except OverflowError:
        return maximum
    # compared in seconds: the product itself may be more than a timedelta can hold
    if initial.total_seconds() * factor >= maximum.total_seconds():
        return maximum
    return initial * factor


def problem_of(policy: RetryPolicy) -> str:
    """What is wrong with it, as a sentence without its end; empty when nothing is."""
    if not timedelta(0) < policy.initial_interval <= limits.MAX_DURATION:
        return f"initial_interval is {policy.initial_interval}; it must be above zero and at most ten years"
    if not (math.isfinite(policy.backoff_coefficient) and policy.backoff_coefficient >= 1):
        return f"backoff_coefficient is {policy.backoff_coefficient}; it must be at least 1 and finite"
    if policy.maximum_interval is not None and policy.maximum_interval < policy.initial_interval:
        return (
            f"maximum_interval is {policy.maximum_interval}; it must not be below initial_interval "
            f"({policy.initial_interval})"
        )
    if policy.maximum_attempts < 0:
        return f"maximum_attempts is {policy.maximum_attempts}; it must be 0 (unlimited) or more"
    return _problem_of_types(policy.non_retryable_error_types)


def _problem_of_types(names: tuple[str, ...]) -> str:
    if len(names) > limits.MAX_NON_RETRYABLE_TYPES:
        return (
            f"non_retryable_error_types has {len(names)} names; at most {limits.MAX_NON_RETRYABLE_TYPES} are taken. "
            "Fail with ApplicationError(non_retryable=True) instead where the error is raised"
        )
    for name in names:
        if len(name) > limits.MAX_NON_RETRYABLE_TYPE_LENGTH:
            return (
                f"non_retryable_error_types has a name of {len(name)} characters, {name[:40]!r} and so on; at most "
                f"{limits.MAX_NON_RETRYABLE_TYPE_LENGTH} are taken"
            )
    return ""


def is_retryable(policy: RetryPolicy, failure: Failure) -> bool:
    """Exact match of type names; cancelled and terminated never retry (AC-10, AC-11)."""
    info = failure.info
    match info:
        case ApplicationFailureInfo():
            return not info.non_retryable and info.failure_type not in policy.non_retryable_error_types
        case TimeoutFailureInfo():
            names = _TIMEOUT_NAMES.get(info.timeout_type)
            return names is not None and not any(name in policy.non_retryable_error_types for name in names)
        case ServerFailureInfo():
            return not info.non_retryable
        case CanceledFailureInfo() | TerminatedFailureInfo():
            return False
        case _:
            return True


def decide(
    policy: RetryPolicy,
    attempt: int,
    failure: Failure,
    *,
    now: datetime,
    expires: datetime | None,
    cancel_requested: bool = False,
    at_once: bool = False,
) -> Retry | RetryState:
    """Another attempt, or why there is none (ER-02).

    ``expires``: end of schedule-to-close; a retry that cannot start before it is not made (AC-06), which is
    ``RetryState.TIMEOUT``. ``at_once``: the attempt was ended by no fault of its own, so there is no backoff (WC-32).
    """
    if cancel_requested:
        return RetryState.CANCEL_REQUESTED
    if not is_retryable(policy, failure):
        return RetryState.NON_RETRYABLE_FAILURE
    if policy.maximum_attempts and attempt >= policy.maximum_attempts:
        return RetryState.MAXIMUM_ATTEMPTS_REACHED
    delay = timedelta(0) if at_once else _delay(policy, attempt, failure)
    time = now + delay
    if expires is not None and time >= expires:
        return RetryState.TIMEOUT
    return Retry(time if delay else None)


def _delay(policy: RetryPolicy, attempt: int, failure: Failure) -> timedelta:
    """The failure's own wish comes first, once (AC-12)."""
    info = failure.info
    if isinstance(info, ApplicationFailureInfo) and info.next_retry_delay is not None:
        return min(max(info.next_retry_delay, timedelta(0)), limits.MAX_DURATION)
    return backoff(policy, attempt)


def timeout_failure(
    timeout_type: TimeoutType, message: str, cause: Failure | None, heartbeat_details: Payloads = ()
) -> Failure:
    """A timeout; ``cause`` is the last real failure, which a workflow may branch on (WC-06)."""
    info = TimeoutFailureInfo(timeout_type=timeout_type, last_heartbeat_details=heartbeat_details)
    return Failure(message=message, cause=cause, info=info)


def overall_deadline(cause: Failure | None, heartbeat_details: Payloads = (), *, early: bool = False) -> Failure:
    """How schedule-to-close ends an activity, in the one shape for both ways: struck, or no room for a retry."""
    message = "schedule-to-close timeout: the activity's overall deadline has passed"
    if early:
        message = "schedule-to-close timeout: the next attempt would start after the activity's overall deadline"
    return timeout_failure(TimeoutType.SCHEDULE_TO_CLOSE, message, cause, heartbeat_details)


def oversize(result: Payloads) -> Failure | None:
    """What an attempt whose result is over the limit fails with: tried again, it would be no smaller (WC-26)."""
    size = 0
    for payload in result:
        size += len(payload.data)
    if size <= limits.MAX_PAYLOAD_BYTES:
        return None
    return Failure(
        message=f"the activity's result has {size} bytes; at most {limits.MAX_PAYLOAD_BYTES} are taken. "
        "Keep large data outside and return a reference to it.",
        info=ApplicationFailureInfo(failure_type="PayloadTooLarge", non_retryable=True),
    )


def kept(failure: Failure, limit: int = limits.MAX_PENDING_FAILURE_BYTES) -> Failure:
    """The failure as it is kept with a pending activity: within so many bytes (AC-36).

    What is too large loses its stack trace and causes, then its details, encoded attributes, and the end of its
    message; the type stays.
    """
    if len(_encode(failure)) <= limit:
        return failure
    info = failure.info
    short = msgspec.structs.replace(failure, stack_trace="", cause=None)
    if len(_encode(short)) <= limit:
        return short
    if isinstance(info, ApplicationFailureInfo):
        info = msgspec.structs.replace(info, details=())
    elif isinstance(info, TimeoutFailureInfo):
        info = msgspec.structs.replace(info, last_heartbeat_details=())
    elif isinstance(info, CanceledFailureInfo):
        info = CanceledFailureInfo()
    # JSON may take six bytes for one character, so a sixth of the limit always fits
    message = failure.message.encode(errors="replace")[: limit // 8].decode(errors="ignore") + _CUT
    return msgspec.structs.replace(short, info=info, message=message, encoded_attributes=None)
