"""Backoff that never overflows, what is retried, and the shapes of last failures."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stepwell.api import limits
from stepwell.api.codec import encode_json
from stepwell.api.common import RetryPolicy
from stepwell.api.enums import RetryState, TimeoutType
from stepwell.api.failures import (
    ActivityFailureInfo,
    ApplicationFailureInfo,
    CanceledFailureInfo,
    Failure,
    ServerFailureInfo,
    TerminatedFailureInfo,
    TimeoutFailureInfo,
)
from stepwell.api.payloads import Payload

from stepwell_server.history import retry
from stepwell_server.history.retry import Retry, backoff, decide, is_retryable, kept, problem_of
from tests.support.history_run import T0, declined, payload, seconds

DEFAULT = RetryPolicy()


def test_default_waits_double_up_to_a_hundred_times_the_first():
    waits = [backoff(DEFAULT, attempt).total_seconds() for attempt in (1, 2, 3, 7, 8, 9, 10_000)]
    assert waits == [1, 2, 4, 64, 100, 100, 100]


def test_field_case_waits_of_wc05_b():
    policy = RetryPolicy(initial_interval=seconds(0.2), maximum_interval=timedelta(hours=1))
    assert [backoff(policy, n).total_seconds() for n in (1, 2, 3)] == [0.2, 0.4, 0.8]
    assert backoff(policy, 400) == timedelta(hours=1)


@given(
    initial=st.timedeltas(min_value=timedelta(microseconds=1), max_value=limits.MAX_DURATION),
    coefficient=st.floats(1, 1e300),
    longer=st.one_of(st.none(), st.floats(1, 1000)),
    attempt=st.integers(1, 2**63),
)
def test_a_wait_is_positive_capped_and_never_shorter_than_the_one_before(initial, coefficient, longer, attempt):
    maximum = None if longer is None else initial * longer
    policy = RetryPolicy(initial_interval=initial, backoff_coefficient=coefficient, maximum_interval=maximum)
    first, second = backoff(policy, attempt), backoff(policy, attempt + 1)
    assert timedelta(0) < first <= second <= (maximum or initial * 100)


@pytest.mark.parametrize(
    ("failure", "retryable"),
    [
        (declined(), True),
        (declined(non_retryable=True), False),
        (Failure(message="no info"), True),
        (Failure(info=ApplicationFailureInfo(failure_type="Fatal")), False),
        (Failure(info=ApplicationFailureInfo(failure_type="FatalError")), True),
        (Failure(info=CanceledFailureInfo()), False),
        (Failure(info=TerminatedFailureInfo()), False),
        (Failure(info=ServerFailureInfo()), True),
        (Failure(info=ServerFailureInfo(non_retryable=True)), False),
        (Failure(info=TimeoutFailureInfo(timeout_type=TimeoutType.START_TO_CLOSE)), True),
        (Failure(info=TimeoutFailureInfo(timeout_type=TimeoutType.HEARTBEAT)), False),
        (Failure(info=TimeoutFailureInfo(timeout_type=TimeoutType.SCHEDULE_TO_START)), False),
        (Failure(info=TimeoutFailureInfo(timeout_type=TimeoutType.SCHEDULE_TO_CLOSE)), False),
        (Failure(info=ActivityFailureInfo(scheduled_event_id=5, activity_type="a", activity_id="1")), True),
    ],
)
def test_types_match_exactly(failure, retryable):
    policy = RetryPolicy(non_retryable_error_types=("Fatal", "TemporalTimeout:Heartbeat"))
    assert is_retryable(policy, failure) is retryable


def test_the_list_of_types_has_a_limit():
    assert not problem_of(RetryPolicy(non_retryable_error_types=("E" * 1_000,) * 100))
    many = problem_of(RetryPolicy(non_retryable_error_types=("E",) * 101))
    assert "non_retryable_error_types has 101 names; at most 100" in many
    long = problem_of(RetryPolicy(non_retryable_error_types=("E" * 1_001,)))
    assert "a name of 1001 characters" in long and "at most 1000" in long and len(long) < 200


def test_decisions_in_their_order():
    policy = RetryPolicy(maximum_attempts=2)
    expires = T0 + seconds(10)
    assert decide(policy, 1, declined(), now=T0, expires=expires) == Retry(T0 + seconds(1))
    assert decide(policy, 1, declined(), now=T0, expires=None, at_once=True) == Retry(None)
    assert decide(policy, 1, declined(), now=T0, expires=T0 + seconds(1)) is RetryState.TIMEOUT
    assert decide(policy, 2, declined(), now=T0, expires=T0) is RetryState.MAXIMUM_ATTEMPTS_REACHED
    fatal = declined(non_retryable=True)
    assert decide(policy, 2, fatal, now=T0, expires=T0) is RetryState.NON_RETRYABLE_FAILURE
    assert decide(policy, 2, fatal, now=T0, expires=T0, cancel_requested=True) is RetryState.CANCEL_REQUESTED


@pytest.mark.parametrize(("wish", "wait"), [(7, 7), (0, 0), (-3, 0), (10**9, limits.MAX_DURATION.total_seconds())])
def test_the_failures_own_delay_comes_first(wish, wait):
    decision = decide(DEFAULT, 5, declined(next_retry_delay=seconds(wish)), now=T0, expires=None)
    assert decision == Retry(T0 + seconds(wait) if wait else None)


def test_both_ways_of_the_overall_deadline_have_one_shape():
    struck, early = retry.overall_deadline(declined()), retry.overall_deadline(declined(), early=True)
    assert struck.info == early.info == TimeoutFailureInfo(timeout_type=TimeoutType.SCHEDULE_TO_CLOSE)
    assert struck.cause == early.cause == declined()
    assert "next attempt would start after" in early.message and struck.message != early.message


def test_an_oversized_result_fails_for_good():
    assert retry.oversize(payload("x" * 100)) is None
    assert retry.oversize((Payload(data=b"x" * limits.MAX_PAYLOAD_BYTES),)) is None
    failure = retry.oversize((Payload(data=b"x" * (limits.MAX_PAYLOAD_BYTES + 1)),))
    assert failure is not None and not is_retryable(DEFAULT, failure)
    assert str(limits.MAX_PAYLOAD_BYTES) in failure.message


LARGE = (Payload(data=b"x" * 5000),)


@pytest.mark.parametrize(
    "failure",
    [
        Failure(message="m", stack_trace="s" * 5000, cause=declined(), info=declined().info),
        declined(details=LARGE),
        Failure(message="é\U0001f600\x01" * 3000, info=ApplicationFailureInfo(failure_type="Declined")),
        Failure(message="t", info=TimeoutFailureInfo(timeout_type=TimeoutType.HEARTBEAT, last_heartbeat_details=LARGE)),
        Failure(message="c", info=CanceledFailureInfo(details=LARGE)),
        Failure(message="s" * 5000, info=ServerFailureInfo()),
        Failure(message="Encoded failure", info=ServerFailureInfo(), encoded_attributes=LARGE[0]),
    ],
)
def test_a_kept_failure_fits_and_keeps_its_type(failure):
    short = kept(failure)
    assert len(encode_json(short)) <= limits.MAX_PENDING_FAILURE_BYTES
    assert type(short.info) is type(failure.info)
    if isinstance(short.info, ApplicationFailureInfo):
        assert short.info.failure_type == "Declined"
    assert short.message[:1] == failure.message[:1]


def test_a_small_failure_is_kept_whole():
    assert kept(declined()) == declined()
