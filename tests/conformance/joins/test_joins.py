"""PM-07, PM-08, PM-14: the tools of asyncio, with a recorded order and with cancellations that are commands."""

from tests.conformance.joins.workflow import fails, first_come, one_fails, too_slow
from tests.support.conformance import Feature

WORKFLOWS = (too_slow, one_fails, first_come)


async def test_a_timeout_around_an_activity_cancels_it(feature: Feature) -> None:
    async with feature.worker(WORKFLOWS, [fails]):
        handle = await feature.start(too_slow)
        assert await handle.result() == "too slow"


async def test_a_failure_in_a_group_cancels_the_others(feature: Feature) -> None:
    async with feature.worker(WORKFLOWS, [fails]):
        handle = await feature.start(one_fails)
        assert await handle.result() == "1 failed"


async def test_as_completed_keeps_the_recorded_order(feature: Feature) -> None:
    handle = await feature.start(first_come)
    async with feature.worker(WORKFLOWS, [fails]):
        await feature.idle(handle)
        await handle.signal("b")
        await feature.idle(handle)
    await handle.signal("a")
    await handle.signal("c")
    async with feature.worker(WORKFLOWS, [fails]):
        assert await handle.result() == ["b", "a", "c"]
