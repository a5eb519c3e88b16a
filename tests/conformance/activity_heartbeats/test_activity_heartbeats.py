"""AC-07, AC-08: silence ends an attempt, what it said last reaches the next one."""

from datetime import timedelta

import pytest
from stepwell.client import WorkflowFailureError
from stepwell.common import TimeoutType
from stepwell.exceptions import ActivityError, TimeoutError

from tests.conformance.activity_heartbeats.workflow import ACTIVITIES, calls
from tests.support.conformance import Feature

AT_ONCE = timedelta(0)


async def test_silence_is_tried_again_with_the_last_details(feature: Feature) -> None:
    async with feature.worker([calls], ACTIVITIES, graceful_shutdown_timeout=AT_ONCE):
        handle = await feature.start(calls, "falls_silent", [], 0.3, 0)
        assert await handle.result() == [2, "page", 7]


async def test_silence_of_the_last_attempt(feature: Feature) -> None:
    async with feature.worker([calls], ACTIVITIES, graceful_shutdown_timeout=AT_ONCE):
        handle = await feature.start(calls, "falls_silent", [], 0.3, 1)
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    error = failed.value.cause
    assert isinstance(error, ActivityError) and isinstance(error.cause, TimeoutError)
    assert error.cause.type is TimeoutType.HEARTBEAT
    assert list(error.cause.last_heartbeat_details) == ["page", 7]


async def test_what_was_held_back_goes_out_with_the_failure(feature: Feature) -> None:
    """Heartbeats are throttled to 0.8 of the timeout: four of the five were not sent."""
    async with feature.worker([calls], ACTIVITIES):
        handle = await feature.start(calls, "fails_between_heartbeats", [], 30.0, 0)
        assert await handle.result() == [2, 5]


async def test_beating_keeps_an_attempt_alive(feature: Feature) -> None:
    """Twice its heartbeat timeout; sent every 50 ms, for machines that are busy."""
    async with feature.worker([calls], ACTIVITIES, max_heartbeat_throttle_interval=timedelta(seconds=0.05)):
        handle = await feature.start(calls, "keeps_beating", [2.0], 1.0, 0)
        assert await handle.result() == 1
