"""Activities that are stopped from outside while they run on a real worker: paused, reset, cancelled (AC-20, AC-25)."""

import asyncio
from datetime import timedelta

import pytest
from stepwell import activity, workflow
from stepwell.api.requests import PendingActivityInfo
from stepwell.client import Client, RPCError, WorkflowFailureError, WorkflowHandle
from stepwell.common import RetryPolicy
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker


@pytest.fixture
async def client():
    async with await DevEnvironment.start() as env:
        yield env.client


SEEN: list[tuple[int, activity.ActivityCancellationDetails | None]] = []


@activity.defn
async def works() -> int:
    """Beats until it is stopped once; after that it is quick."""
    attempt = activity.info().attempt
    if SEEN:
        return attempt
    try:
        while True:
            activity.heartbeat("alive")
            await asyncio.sleep(0.02)
    finally:
        SEEN.append((attempt, activity.cancellation_details()))


@workflow.defn
async def waits() -> int:
    return await workflow.execute_activity(
        works,
        start_to_close_timeout=timedelta(seconds=30),
        heartbeat_timeout=timedelta(milliseconds=500),
        retry_policy=RetryPolicy(maximum_attempts=1),
    )


async def until(handle: WorkflowHandle[int], state: str) -> PendingActivityInfo:
    async with asyncio.timeout(20):
        while True:
            for info in (await handle.describe()).pending_activities:
                if info.state == state:
                    return info
            await asyncio.sleep(0.01)


async def test_a_pause_reaches_an_attempt_by_its_heartbeat_and_costs_none(client: Client) -> None:
    SEEN.clear()
    async with Worker(client, task_queue="q", workflows=[waits], activities=[works]):
        handle = await client.start_workflow(waits, id="w", task_queue="q")
        info = await until(handle, "STARTED")
        assert await handle.pause_activity(id=info.activity_id, reason="look") == (info.activity_id,)
        paused = await until(handle, "PAUSED")
        assert SEEN == [(1, activity.ActivityCancellationDetails(paused=True))]
        assert paused.last_failure is not None and paused.last_failure.info.failure_type == "ActivityPause"  # type: ignore[union-attr]
        await handle.unpause_activity(type="works")
        assert await asyncio.wait_for(handle.result(), 20) == 1, "it had one attempt, and has it still"


async def test_a_reset_reaches_an_attempt_by_its_heartbeat(client: Client) -> None:
    SEEN.clear()
    async with Worker(client, task_queue="q", workflows=[waits], activities=[works]):
        handle = await client.start_workflow(waits, id="w", task_queue="q")
        info = await until(handle, "STARTED")
        await handle.update_activity_options(id=info.activity_id, start_to_close_timeout=timedelta(seconds=29))
        await handle.reset_activity(id=info.activity_id, restore_original_options=True)
        assert await asyncio.wait_for(handle.result(), 20) == 1
        assert SEEN == [(1, activity.ActivityCancellationDetails(reset=True))]


async def test_what_names_nothing_is_refused(client: Client) -> None:
    handle = client.get_workflow_handle("none")
    with pytest.raises(RPCError, match="not open"):
        await handle.pause_activity(id="1")
    for wrong in ({}, {"id": "1", "type": "works"}):
        with pytest.raises(RPCError, match="either activity_id, or activity_type") as refused:
            await handle.reset_activity(**wrong)
        assert refused.value.code == "INVALID_ARGUMENT"


async def test_cancellation_is_pushed_to_the_worker_of_another_queue(client: Client) -> None:
    """AC-20, AC-32: neither a heartbeat nor the worker that has the workflow is needed."""
    started, stopped = asyncio.Event(), asyncio.Event()

    @activity.defn
    async def silent() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    @workflow.defn
    async def calls_elsewhere() -> None:
        await workflow.execute_activity(silent, task_queue="far", start_to_close_timeout=timedelta(minutes=10))

    async with (
        Worker(client, task_queue="q", workflows=[calls_elsewhere]),
        Worker(client, task_queue="far", activities=[silent]),
    ):
        handle = await client.start_workflow(calls_elsewhere, id="w", task_queue="q")
        await asyncio.wait_for(started.wait(), 20)
        await handle.cancel()
        await asyncio.wait_for(stopped.wait(), 20)
        with pytest.raises(WorkflowFailureError):
            await handle.result()
