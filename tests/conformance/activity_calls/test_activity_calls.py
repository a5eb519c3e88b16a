"""AC-01, AC-34, PM-01, DA-01: activities are scheduled by commands, and their results come back typed."""

from tests.conformance.activity_calls.workflow import ACTIVITIES, Order, fan_out, named, sequence, typed
from tests.support.conformance import Feature

WORKFLOWS = (sequence, fan_out, typed, named)


async def test_one_after_the_other(feature: Feature) -> None:
    async with feature.worker(WORKFLOWS, ACTIVITIES):
        handle = await feature.start(sequence, 5)
        assert await handle.result() == 20


async def test_many_at_once_in_one_task(feature: Feature) -> None:
    """Which of them end together is the workers' business; that all are scheduled by one task is ours."""
    async with feature.worker(WORKFLOWS, ACTIVITIES):
        handle = await feature.start(fan_out, [1, 2, 3])
        assert await handle.result() == [2, 4, 6]


async def test_records_stay_records(feature: Feature) -> None:
    async with feature.worker(WORKFLOWS, ACTIVITIES):
        handle = await feature.start(typed, Order(7, ["ham", "egg"]))
        assert await handle.result() == Order(7, ["ham"])


async def test_an_id_of_the_caller(feature: Feature) -> None:
    async with feature.worker(WORKFLOWS, ACTIVITIES):
        handle = await feature.start(named)
        assert await handle.result() == ["my-step", handle.id, 1]
