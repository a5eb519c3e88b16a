"""AC-03 to AC-06: each timeout, what it counts, whether it is tried again, and what is filled in."""

from datetime import timedelta

import pytest
from stepwell.client import WorkflowFailureError
from stepwell.common import RetryState, TimeoutType
from stepwell.exceptions import ActivityError, ApplicationError, TimeoutError

from tests.conformance.activity_timeouts.workflow import NOBODY, calls, fails, hangs
from tests.support.conformance import Feature


async def timed_out(
    feature: Feature, name: str, args: list[int], seconds: dict[str, float], attempts: int = 0, queue: str = ""
) -> tuple[RetryState | None, TimeoutError]:
    async with feature.worker([calls], [hangs, fails], graceful_shutdown_timeout=timedelta(0)):
        handle = await feature.start(calls, name, args, seconds, attempts, queue or None)
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    error = failed.value.cause
    assert isinstance(error, ActivityError) and isinstance(error.cause, TimeoutError)
    return error.retry_state, error.cause


async def test_start_to_close_is_tried_again(feature: Feature) -> None:
    async with feature.worker([calls], [hangs], graceful_shutdown_timeout=timedelta(0)):
        handle = await feature.start(calls, "hangs", [1], {"start_to_close": 0.3}, 0, None)
        assert await handle.result() == 2


async def test_start_to_close_counts_as_an_attempt(feature: Feature) -> None:
    state, error = await timed_out(feature, "hangs", [9], {"start_to_close": 0.1}, attempts=2)
    assert state is RetryState.MAXIMUM_ATTEMPTS_REACHED
    assert error.type is TimeoutType.START_TO_CLOSE


async def test_schedule_to_start_is_final(feature: Feature) -> None:
    """Another attempt would wait in the same queue."""
    seconds = {"schedule_to_start": 0.05, "start_to_close": 30.0}
    state, error = await timed_out(feature, "hangs", [0], seconds, queue=NOBODY)
    assert state is RetryState.TIMEOUT
    assert error.type is TimeoutType.SCHEDULE_TO_START


async def test_schedule_to_close_ends_a_running_attempt(feature: Feature) -> None:
    state, error = await timed_out(feature, "hangs", [9], {"schedule_to_close": 0.4})
    assert state is RetryState.TIMEOUT
    assert error.type is TimeoutType.SCHEDULE_TO_CLOSE and error.cause is None


async def test_schedule_to_close_keeps_the_last_failure(feature: Feature) -> None:
    """Waits of 10, 20, 40, … ms: the sixth or so would not fit, and the activity ends early, with its real reason."""
    state, error = await timed_out(feature, "fails", [], {"schedule_to_close": 0.5})
    assert state is RetryState.TIMEOUT
    assert error.type is TimeoutType.SCHEDULE_TO_CLOSE
    assert isinstance(error.cause, ApplicationError) and error.cause.type == "Declined"


async def test_schedule_to_close_is_schedule_to_start_of_what_nobody_takes(feature: Feature) -> None:
    """A missing schedule-to-start takes schedule-to-close, and which of the two it was then says why."""
    state, error = await timed_out(feature, "hangs", [0], {"schedule_to_close": 0.05}, queue=NOBODY)
    assert error.type is TimeoutType.SCHEDULE_TO_START
    assert state is RetryState.TIMEOUT


@pytest.mark.parametrize("given", ["start_to_close", "schedule_to_close", "both"])
async def test_missing_timeouts_are_filled_in(feature: Feature, given: str) -> None:
    """A run of 60 s caps all of them; a heartbeat timeout is cut to the attempt's."""
    seconds: dict[str, float] = {"heartbeat": 50}
    if given in ("start_to_close", "both"):
        seconds["start_to_close"] = 20
    if given in ("schedule_to_close", "both"):
        seconds["schedule_to_close"] = 40 if given == "schedule_to_close" else 400
    async with feature.worker([calls], [hangs]):
        handle = await feature.start(
            calls, "hangs", [0], seconds, 0, None, name=given, run_timeout=timedelta(seconds=60)
        )
        assert await handle.result() == 1
