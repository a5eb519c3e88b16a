"""Whether and when a local activity is tried again: the rules that the engine has for all others (AC-09 to AC-12)."""

from datetime import timedelta

from ..api.common import RetryPolicy
from ..api.enums import RetryState, TimeoutType
from ..api.failures import (
    ApplicationFailureInfo,
    CanceledFailureInfo,
    Failure,
    TerminatedFailureInfo,
    TimeoutFailureInfo,
)
from ..api.limits import MAX_DURATION

_DEFAULT_MAXIMUM_FACTOR = 100
_START_TO_CLOSE_NAMES = ("TemporalTimeout:StartToClose", "StepwellTimeout:StartToClose")
_ZERO = timedelta(0)


def next_attempt(
    policy: RetryPolicy, attempt: int, failure: Failure, time_left: timedelta | None
) -> timedelta | RetryState:
    """The wait before the next attempt, or why there is none. ``time_left``: of schedule-to-close."""
    if not _is_retryable(policy, failure):
        return RetryState.NON_RETRYABLE_FAILURE
    if policy.maximum_attempts and attempt >= policy.maximum_attempts:
        return RetryState.MAXIMUM_ATTEMPTS_REACHED
    info = failure.info
    if isinstance(info, ApplicationFailureInfo) and info.next_retry_delay is not None:
        wait = min(max(info.next_retry_delay, _ZERO), MAX_DURATION)
    else:
        wait = backoff(policy, attempt)
    return RetryState.TIMEOUT if time_left is not None and wait >= time_left else wait


def backoff(policy: RetryPolicy, attempt: int) -> timedelta:
    """Wait behind the failure of ``attempt``: initial x coefficient^(attempt-1), capped (WC-05)."""
    initial = policy.initial_interval
    maximum = policy.maximum_interval if policy.maximum_interval is not None else initial * _DEFAULT_MAXIMUM_FACTOR
    try:
        factor = policy.backoff_coefficient ** (attempt - 1)
    except OverflowError:
        return maximum
    # compared in seconds: the product itself may be more than a timedelta can hold
    if initial.total_seconds() * factor >= maximum.total_seconds():
        return maximum
    return initial * factor


def _is_retryable(policy: RetryPolicy, failure: Failure) -> bool:
    info = failure.info
    match info:
        case ApplicationFailureInfo():
            return not info.non_retryable and info.failure_type not in policy.non_retryable_error_types
        case TimeoutFailureInfo():
            named = any(name in policy.non_retryable_error_types for name in _START_TO_CLOSE_NAMES)
            return info.timeout_type is TimeoutType.START_TO_CLOSE and not named
        case CanceledFailureInfo() | TerminatedFailureInfo():
            return False
        case _:
            return True
