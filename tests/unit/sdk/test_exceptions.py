"""Errors of the SDK keep what they carry, also through pickle (process-pool activities)."""

import asyncio
import pickle
from datetime import timedelta

import pytest
from stepwell.common import RetryPolicy
from stepwell.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    FailureError,
    RetryState,
    TimeoutError,
    TimeoutType,
    is_cancelled_exception,
)


def wrapper(cause: BaseException | None = None) -> ActivityError:
    error = ActivityError(
        "failed",
        scheduled_event_id=1,
        started_event_id=2,
        identity="w",
        activity_type="A",
        activity_id="1",
        retry_state=RetryState.TIMEOUT,
    )
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        ApplicationError("no", 1, [2], type="T", non_retryable=True, next_retry_delay=timedelta(seconds=1)),
        TimeoutError("late", type=TimeoutType.HEARTBEAT, last_heartbeat_details=[1]),
        CancelledError("stop", "detail"),
        wrapper(ApplicationError("inner", type="Inner")),
    ],
)
def test_pickle(error: FailureError) -> None:
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert (str(back), back.message, back.args) == (str(error), error.message, error.args)
    assert {**back.__dict__} == {**error.__dict__}
    assert str(back.cause) == str(error.cause)


def test_cancellation_in_all_its_forms() -> None:
    assert is_cancelled_exception(asyncio.CancelledError())
    assert is_cancelled_exception(CancelledError())
    assert is_cancelled_exception(wrapper(CancelledError()))
    assert not is_cancelled_exception(wrapper(ApplicationError("x")))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial_interval": timedelta(0)}, "initial_interval must be above zero"),
        ({"backoff_coefficient": 0.5}, "backoff_coefficient must be at least 1"),
        ({"maximum_interval": timedelta(milliseconds=1)}, "must not be below initial_interval"),
        ({"maximum_attempts": -1}, "must be 0 .* or more"),
        ({"non_retryable_error_types": "ValueError"}, "put the name into a list"),
    ],
)
def test_retry_policies_are_checked(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RetryPolicy(**options)  # type: ignore[arg-type]


def test_retry_policies_survive_the_wire() -> None:
    policy = RetryPolicy(maximum_attempts=3, non_retryable_error_types=("X",))
    assert RetryPolicy.from_record(policy.to_record()) == policy
