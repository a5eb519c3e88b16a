"""AC-24: activities inside the workflow task, of which the history has a marker each."""

import asyncio
from datetime import timedelta

import pytest
from stepwell.workflow import ActivityCancellationType

from tests.conformance.local_activities.workflow import Cancels, Tools, mixes, persists, sums, times_out
from tests.support.conformance import Feature

KEPT_ALIVE = timedelta(milliseconds=250)
"""A task timeout so short that a local activity outlives it."""


async def test_all_of_them_are_one_workflow_task(feature: Feature) -> None:
    tools = Tools()
    async with feature.worker([sums], tools.activities):
        handle = await feature.start(sums, [1, 2])
        assert await handle.result() == [4, 5, "DONE"]
    assert len(tools.calls) == 4


async def test_beside_activities_of_the_queue(feature: Feature) -> None:
    tools = Tools()
    async with feature.worker([mixes], tools.activities):
        handle = await feature.start(mixes)
        assert await handle.result() == [4, 2, 6, 7]
    assert len(tools.calls) == 4


async def test_tried_again_in_process(feature: Feature) -> None:
    tools = Tools()
    async with feature.worker([persists], tools.activities):
        handle = await feature.start(persists, 2, 60.0, 0)
        assert await handle.result() == 3
    assert tools.calls == ["flaky 1", "flaky 2", "flaky 3"]


async def test_tried_again_behind_a_timer(feature: Feature) -> None:
    tools = Tools()
    async with feature.worker([persists], tools.activities):
        handle = await feature.start(persists, 2, 0.0, 0)
        assert await handle.result() == 3
    assert tools.calls == ["flaky 1", "flaky 2", "flaky 3"]


async def test_no_attempt_is_left(feature: Feature) -> None:
    tools = Tools()
    async with feature.worker([persists], tools.activities):
        handle = await feature.start(persists, 9, 60.0, 2)
        assert await handle.result() == ["NotYet: not yet", "MAXIMUM_ATTEMPTS_REACHED", "flaky"]


@pytest.mark.parametrize(("overall", "kind"), [(False, "START_TO_CLOSE"), (True, "SCHEDULE_TO_CLOSE")])
async def test_timeouts(feature: Feature, overall: bool, kind: str) -> None:
    tools = Tools()
    async with feature.worker([times_out], tools.activities):
        handle = await feature.start(times_out, overall, name=kind)
        assert await handle.result() == kind
        await asyncio.wait_for(tools.stopped.wait(), 30)


@pytest.mark.parametrize("kind", ActivityCancellationType)
async def test_cancelled_while_the_task_is_kept_alive(feature: Feature, kind: ActivityCancellationType) -> None:
    """The signal comes in while the local activity runs: the task is recorded at 80 % of its timeout, and goes on."""
    tools = Tools()
    async with feature.worker([Cancels], tools.activities):
        handle = await feature.start(Cancels.run, kind.value, name=kind.name, task_timeout=KEPT_ALIVE)
        await tools.at_work.wait()
        await handle.signal(Cancels.stop)
        assert await handle.result() == ["canceled", 2]
        if kind is ActivityCancellationType.ABANDON:
            assert tools.calls == ["held on", "add 1 1"]
            tools.let_go.set()
        else:
            await asyncio.wait_for(tools.stopped.wait(), 30)
    assert tools.calls.count("held on") == 1


async def test_queries_are_answered_while_one_runs(feature: Feature) -> None:
    tools = Tools()
    async with feature.worker([Cancels], tools.activities):
        handle = await feature.start(Cancels.run, ActivityCancellationType.TRY_CANCEL.value, task_timeout=KEPT_ALIVE)
        await tools.at_work.wait()
        assert await handle.query(Cancels.stopped) is False
        assert await handle.query(Cancels.stopped) is False
        assert tools.calls == ["held on"]
        await handle.signal(Cancels.stop)
        assert await handle.result() == ["canceled", 2]
