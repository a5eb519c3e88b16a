"""When a local activity is tried again (AC-09 to AC-12)."""

from datetime import timedelta

import pytest
from stepwell.api.common import RetryPolicy
from stepwell.api.enums import RetryState, TimeoutType
from stepwell.api.failures import ApplicationFailureInfo, CanceledFailureInfo, Failure, TimeoutFailureInfo
from stepwell.worker.local_retry import backoff, next_attempt

SECOND = timedelta(seconds=1)
PLAIN = Failure(message="x", info=ApplicationFailureInfo(failure_type="Plain"))


def of(**info: object) -> Failure:
    return Failure(message="x", info=ApplicationFailureInfo(**info))  # type: ignore[arg-type]


def late(kind: TimeoutType) -> Failure:
    return Failure(message="late", info=TimeoutFailureInfo(timeout_type=kind))


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 1), (2, 2), (3, 4), (7, 64), (8, 100), (5_000, 100)])
def test_backoff_grows_to_its_cap(attempt: int, seconds: int) -> None:
    assert backoff(RetryPolicy(), attempt) == seconds * SECOND


def test_a_maximum_of_ones_own() -> None:
    assert backoff(RetryPolicy(maximum_interval=3 * SECOND), 3) == 3 * SECOND


@pytest.mark.parametrize(
    ("failure", "policy", "left", "expected"),
    [
        (PLAIN, RetryPolicy(), None, SECOND),
        (Failure(message="no info"), RetryPolicy(), None, SECOND),
        (PLAIN, RetryPolicy(maximum_attempts=1), None, RetryState.MAXIMUM_ATTEMPTS_REACHED),
        (PLAIN, RetryPolicy(non_retryable_error_types=("Plain",)), None, RetryState.NON_RETRYABLE_FAILURE),
        (of(non_retryable=True), RetryPolicy(), None, RetryState.NON_RETRYABLE_FAILURE),
        (of(next_retry_delay=7 * SECOND), RetryPolicy(), None, 7 * SECOND),
        (of(next_retry_delay=-SECOND), RetryPolicy(), None, timedelta(0)),
        (PLAIN, RetryPolicy(), SECOND, RetryState.TIMEOUT),
        (PLAIN, RetryPolicy(), 2 * SECOND, SECOND),
        (Failure(message="c", info=CanceledFailureInfo()), RetryPolicy(), None, RetryState.NON_RETRYABLE_FAILURE),
        (late(TimeoutType.START_TO_CLOSE), RetryPolicy(), None, SECOND),
        (late(TimeoutType.SCHEDULE_TO_START), RetryPolicy(), None, RetryState.NON_RETRYABLE_FAILURE),
        (late(TimeoutType.SCHEDULE_TO_CLOSE), RetryPolicy(), None, RetryState.NON_RETRYABLE_FAILURE),
        (
            late(TimeoutType.START_TO_CLOSE),
            RetryPolicy(non_retryable_error_types=("StepwellTimeout:StartToClose",)),
            None,
            RetryState.NON_RETRYABLE_FAILURE,
        ),
    ],
)
def test_another_attempt_or_why_not(
    failure: Failure, policy: RetryPolicy, left: timedelta | None, expected: timedelta | RetryState
) -> None:
    assert next_attempt(policy, 1, failure, left) == expected
