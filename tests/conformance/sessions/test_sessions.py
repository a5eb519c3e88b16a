"""AC-29: several activities on one worker, a bounded number of them at a time, and broken when the worker goes."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from stepwell.api import operations as op
from stepwell.api import requests as r
from stepwell.api.events import WorkflowExecutionSignaled
from stepwell.client import WorkflowFailureError, WorkflowHandle
from stepwell.exceptions import CancelledError

from tests.conformance.sessions.workflow import Convert, Holds, Impatient, Machine, TriesAgain
from tests.support.cases import attributes, events_of, until
from tests.support.conformance import BY_HAND, Feature


async def _begun(feature: Feature, handle: WorkflowHandle[Any]) -> None:
    """Waits until the workflow is inside its session."""

    async def is_told() -> bool:
        return bool(attributes(await events_of(handle), WorkflowExecutionSignaled))

    await until(is_told)
    await feature.idle(handle)


async def test_all_activities_of_a_session_run_on_its_worker(feature: Feature) -> None:
    one, two = Machine("one"), Machine("two")
    async with (
        feature.worker([Convert], one.activities, max_concurrent_sessions=2),
        feature.worker([Convert], two.activities, max_concurrent_sessions=2),
    ):
        handles = [await feature.start(Convert.run, f"file {n}", id=f"{n}", name="order") for n in range(6)]
        for handle in handles:
            assert len(set(await handle.result())) == 1
    assert not one.files and not two.files


async def test_no_more_at_a_time_than_the_worker_takes(feature: Feature) -> None:
    machine = Machine("one")
    async with feature.worker([Convert, Holds], machine.activities, max_concurrent_sessions=1):
        holds = await feature.start(Holds.run, id="holds")
        await _begun(feature, holds)
        others = [await feature.start(Convert.run, f"file {n}", id=f"{n}", name="order") for n in range(3)]
        for other in others:
            await feature.idle(other)
        assert machine.most_open == 0, "they wait for the one session there may be"
        await holds.signal(Holds.end)
        assert await holds.result() == "ended"
        for other in others:
            assert set(await other.result()) == {"one"}
    assert machine.most_open == 1


async def test_a_worker_that_dies_breaks_its_sessions(feature: Feature) -> None:
    """The worker is played by hand: it takes the session, and is heard of no more."""
    machine = Machine("one")
    async with feature.worker([TriesAgain]):
        handle = await feature.start(TriesAgain.run, 0.5)
        poll = r.PollActivityTaskRequest(
            task_queue=f"{feature.task_queue}:sessions", worker=BY_HAND, timeout=timedelta(seconds=10)
        )
        (hold,) = (await feature.client.transport.call(op.POLL_ACTIVITY_TASK, poll)).tasks
        await handle.signal(f"__stepwell_session {hold.activity_id}", f"nobody-{uuid4().hex}")

        async def activity_waits_for_the_dead() -> bool:
            return any(one.activity_type == "wait" for one in (await handle.describe()).pending_activities)

        await until(activity_waits_for_the_dead)
        machine.go_on.set()
        async with feature.worker([], machine.activities, max_concurrent_sessions=1):
            broke, done = await handle.result()
    assert broke.startswith("The session broke") and done == "done"


async def test_a_worker_that_shuts_down_breaks_its_sessions(feature: Feature) -> None:
    first, second = Machine("first"), Machine("second")
    second.go_on.set()
    async with feature.worker([TriesAgain]):
        async with feature.worker([], first.activities, max_concurrent_sessions=1):
            handle = await feature.start(TriesAgain.run, 20.0)

            async def activity_runs() -> bool:
                pending = (await handle.describe()).pending_activities
                return any(one.activity_type == "wait" and one.last_started_time for one in pending)

            await until(activity_runs)
        async with feature.worker([], second.activities, max_concurrent_sessions=1):
            broke, done = await handle.result()
    assert broke.startswith("The session broke") and "its worker shuts down" in broke and done == "done"


async def test_a_session_that_no_worker_takes(feature: Feature) -> None:
    async with feature.worker([Impatient]):
        handle = await feature.start(Impatient.run)
        assert (await handle.result()).startswith("The session could not begin")


async def test_a_cancelled_workflow_gives_its_slot_back(feature: Feature) -> None:
    machine = Machine("one")
    async with feature.worker([Holds, Convert], machine.activities, max_concurrent_sessions=1):
        holds = await feature.start(Holds.run, id="holds")
        await _begun(feature, holds)
        await holds.cancel()
        with pytest.raises(WorkflowFailureError) as caught:
            await holds.result()
        assert isinstance(caught.value.cause, CancelledError)
        async with asyncio.timeout(30):
            other = await feature.start(Convert.run, "file", id="order")
            assert set(await other.result()) == {"one"}
