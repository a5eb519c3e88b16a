"""TM-01, TM-02, TM-10, PM-13: durable timers, started and taken back by ordinary waits."""

import pytest

from tests.conformance.timers.workflow import Waits, sleeps, takes_back, wakes_in_order
from tests.support.conformance import Feature


async def test_a_timer_fires_no_earlier_than_due(feature: Feature) -> None:
    async with feature.worker([sleeps]):
        handle = await feature.start(sleeps, 0.03)
        assert await handle.result() == "on time"


@pytest.mark.parametrize("seconds", [0, -1.5])
async def test_no_time_is_no_timer(feature: Feature, seconds: float) -> None:
    async with feature.worker([sleeps]):
        handle = await feature.start(sleeps, seconds, name=str(seconds))
        assert await handle.result() == "on time"


@pytest.mark.embedded
async def test_timers_fire_in_the_order_of_their_times(feature: Feature) -> None:
    async with feature.worker([wakes_in_order]):
        handle = await feature.start(wakes_in_order, [0.5, 0.1, 0.3])
        assert await handle.result() == [0.1, 0.3, 0.5]


async def test_a_timer_that_is_not_needed_is_canceled(feature: Feature) -> None:
    async with feature.worker([takes_back]):
        handle = await feature.start(takes_back)
        await feature.idle(handle)
        await handle.signal("enough")
        await feature.idle(handle)
        await handle.signal("end")
        assert await handle.result() == "ended"


async def test_a_condition_times_out(feature: Feature) -> None:
    async with feature.worker([Waits]):
        handle = await feature.start(Waits.run, 0.03)
        assert await handle.result() == "timed out"


async def test_a_condition_in_time_cancels_its_timer(feature: Feature) -> None:
    async with feature.worker([Waits]):
        handle = await feature.start(Waits.run, 3600)
        await feature.idle(handle)
        await handle.signal(Waits.be_ready)
        assert await handle.result() == "ready"
