"""GW-20: priority is 1 to 5 and lower first, fairness counts dispatches, the last poller sets the rate, and a rate
limit turns eager dispatch off (TQ-08, TQ-12, TQ-13, AC-23)."""

import asyncio
from datetime import timedelta

import pytest
from stepwell.api import operations as op
from stepwell.api import requests as r
from stepwell.api.enums import PendingActivityState
from stepwell.api.events import ActivityTaskScheduled

from tests.conformance.priorities.workflow import TENANT, Inner, ManyTenants, Outer, note, said
from tests.support.cases import attributes, events_of
from tests.support.conformance import BY_HAND, Feature

WAITS = PendingActivityState.SCHEDULED


async def _next(feature: Feature, queue: str, most: int, limit: float | None = None) -> list[str]:
    """Names of what a worker is handed, without any wait of its own."""
    poll = r.PollActivityTaskRequest(
        task_queue=queue, worker=BY_HAND, maximum_tasks=most, timeout=timedelta(0), max_tasks_per_second=limit
    )
    tasks = (await feature.client.transport.call(op.POLL_ACTIVITY_TASK, poll)).tasks
    return [feature.client.data_converter.payload_converter.from_payloads(task.input)[0] for task in tasks]


async def test_activities_and_children_inherit_what_they_leave_open(feature: Feature) -> None:
    async with feature.worker([Outer, Inner], [note]):
        handle = await feature.start(Outer.run, feature.id_of("inner"), priority=TENANT)
        assert await handle.result() == {
            "own": said(TENANT),
            "inherits": said(TENANT),
            "says": [1, "other", 2.5],
            "child": [4, "tenant", 0.5],
        }


@pytest.mark.embedded
async def test_lower_goes_first_and_keys_take_turns(feature: Feature) -> None:
    queue = feature.id_of("elsewhere")
    names = [f"big-3-{number}" for number in range(6)] + ["small-3-0", "small-3-1", "any-5-0", "any-1-0"]
    async with feature.worker([ManyTenants]):
        handle = await feature.start(ManyTenants.run, queue, names)
        await feature.idle(handle)
    taken = await _next(feature, queue, 10)
    assert (taken[0], taken[-1]) == ("any-1-0", "any-5-0")
    tenants = [name.split("-")[0] for name in taken[1:-1]]
    assert sorted(tenants[:4]) == ["big", "big", "small", "small"], "as many of one as of the other"
    assert tenants[4:] == ["big"] * 4
    assert [name for name in taken if name.startswith("big")] == names[:6]
    await handle.terminate()


@pytest.mark.embedded
async def test_the_last_poller_sets_the_rate(feature: Feature) -> None:
    queue = feature.id_of("elsewhere")
    names = [f"any-3-{number}" for number in range(5)]
    async with feature.worker([ManyTenants]):
        handle = await feature.start(ManyTenants.run, queue, names)
        await feature.idle(handle)
    assert await _next(feature, queue, 10, limit=0.001) == names[:1]
    assert await _next(feature, queue, 10) == []
    async with feature.worker([], [note], task_queue=queue, max_task_queue_activities_per_second=1000):
        async with asyncio.timeout(20):
            while any(one.state is WAITS for one in (await handle.describe()).pending_activities):
                await asyncio.sleep(0.02)
    await handle.terminate()


async def test_a_rate_limit_turns_eager_dispatch_off(feature: Feature) -> None:
    """What goes past the queue goes past its limit: the activity waits for the token like any other."""
    assert await _next(feature, feature.task_queue, 1, limit=0.001) == []
    async with feature.worker([Outer, Inner], [note], max_concurrent_activities=5):
        handle = await feature.start(Outer.run, feature.id_of("inner"))
        async with asyncio.timeout(20):
            while len(attributes(await events_of(handle), ActivityTaskScheduled)) < 2:
                await asyncio.sleep(0.02)
        await feature.idle(handle)
        (waits,) = (await handle.describe()).pending_activities
        assert waits.activity_id == "2" and waits.state is WAITS, "the first had the only token there was"
        await _next(feature, feature.task_queue, 1, limit=1000.0)
        await handle.terminate()
