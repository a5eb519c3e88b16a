"""``activity.raise_complete_async`` on a real worker, and the handles that end what it leaves open (AC-21, AC-22)."""

import asyncio
import concurrent.futures
import multiprocessing
from datetime import timedelta

import pytest
from stepwell import activity, workflow
from stepwell.client import AsyncActivityCancelledError, AsyncActivityHandle, Client, RPCError, WorkflowFailureError
from stepwell.common import RetryPolicy
from stepwell.converter import ArgumentError
from stepwell.exceptions import ActivityError, ApplicationError, CancelledError
from stepwell.testing import ActivityEnvironment, DevEnvironment
from stepwell.worker import Worker

TOKENS: "asyncio.Queue[activity.Info]"


@pytest.fixture
async def client():
    async with await DevEnvironment.start() as env:
        yield env.client


@activity.defn
async def on_loop() -> str:
    TOKENS.put_nowait(activity.info())
    activity.raise_complete_async()


@activity.defn
def elsewhere() -> str:
    try:
        activity.raise_complete_async()
    except Exception:  # what handles its own errors lets it through
        return "swallowed"


@workflow.defn
async def asks(name: str, heartbeat: bool) -> str:
    return await workflow.execute_activity(
        name,
        result_type=str,
        start_to_close_timeout=timedelta(seconds=30),
        heartbeat_timeout=timedelta(seconds=20) if heartbeat else None,
        cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=10), maximum_attempts=2),
    )


@pytest.fixture
async def tokens():
    global TOKENS
    TOKENS = asyncio.Queue()
    return TOKENS


async def started(client: Client, tokens: "asyncio.Queue[activity.Info]", *, heartbeat: bool):
    handle = await client.start_workflow(asks, args=["on_loop", heartbeat], id="w", task_queue="q")
    return handle, await asyncio.wait_for(tokens.get(), 30)


# With a heartbeat timeout it comes by a poll, without one by a lease.
both_ways = pytest.mark.parametrize("heartbeat", [False, True])


@both_ways
async def test_by_token(client: Client, tokens, heartbeat: bool) -> None:
    async with Worker(client, task_queue="q", workflows=[asks], activities=[on_loop]):
        handle, info = await started(client, tokens, heartbeat=heartbeat)
        outside = client.get_async_activity_handle(task_token=info.task_token)
        await outside.heartbeat("half")
        with pytest.raises(TypeError, match=r"fail: error must be an exception, not 'x'; such as ApplicationError\("):
            await outside.fail("x")
        await outside.complete("by another")
        assert await asyncio.wait_for(handle.result(), 30) == "by another"
        for late in (outside.heartbeat, lambda: outside.fail(ValueError("late"))):
            with pytest.raises(RPCError) as refused:
                await late()
            assert refused.value.code in ("NOT_FOUND", "WORKFLOW_EXECUTION_CLOSED")


@both_ways
async def test_by_ids_and_a_failure_in_between(client: Client, tokens, heartbeat: bool) -> None:
    async with Worker(client, task_queue="q", workflows=[asks], activities=[on_loop]):
        handle, info = await started(client, tokens, heartbeat=heartbeat)
        outside = client.get_async_activity_handle(workflow_id="w", activity_id=info.activity_id)
        await outside.heartbeat("half")
        await outside.fail(ApplicationError("not yet"), last_heartbeat_details=["more than half"])
        second = await asyncio.wait_for(tokens.get(), 30)
        assert second.attempt == 2 and list(second.heartbeat_details) == ["more than half"]
        await outside.fail(ApplicationError("no", type="Refused"))
        with pytest.raises(WorkflowFailureError) as failed:
            await asyncio.wait_for(handle.result(), 30)
    assert isinstance(failed.value.cause, ActivityError)
    assert isinstance(failed.value.cause.cause, ApplicationError) and failed.value.cause.cause.type == "Refused"


@both_ways
async def test_a_heartbeat_says_that_it_is_to_stop(client: Client, tokens, heartbeat: bool) -> None:
    async with Worker(client, task_queue="q", workflows=[asks], activities=[on_loop]):
        handle, info = await started(client, tokens, heartbeat=heartbeat)
        outside = client.get_async_activity_handle(task_token=info.task_token)
        await handle.cancel()
        with pytest.raises(AsyncActivityCancelledError) as told:
            await asyncio.wait_for(_beat(outside), 30)
        assert told.value.details == activity.ActivityCancellationDetails(cancel_requested=True)
        await outside.report_cancellation("stopped")
        with pytest.raises(WorkflowFailureError) as failed:
            await asyncio.wait_for(handle.result(), 30)
        assert isinstance(failed.value.cause, CancelledError)


async def _beat(outside: AsyncActivityHandle) -> None:
    while True:
        await outside.heartbeat()


@pytest.mark.parametrize("processes", [False, True])
async def test_from_threads_and_processes(client: Client, processes: bool) -> None:
    executor: concurrent.futures.Executor = (
        concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
        if processes
        else concurrent.futures.ThreadPoolExecutor(1)
    )
    with executor:
        async with Worker(client, task_queue="q", workflows=[asks], activities=[elsewhere], activity_executor=executor):
            handle = await client.start_workflow(asks, args=["elsewhere", False], id="w", task_queue="q")
            async with asyncio.timeout(60):
                while not (pending := (await handle.describe()).pending_activities):
                    await asyncio.sleep(0.01)
                outside = client.get_async_activity_handle(workflow_id="w", activity_id=pending[0].activity_id)
                await outside.complete("by another")
                assert await handle.result() == "by another"


async def test_what_a_handle_refuses(client: Client) -> None:
    for bad in ({}, {"workflow_id": "w"}, {"task_token": b"t", "workflow_id": "w"}):
        with pytest.raises(ValueError, match="task_token"):
            client.get_async_activity_handle(**bad)
    forged = client.get_async_activity_handle(task_token=b"forged")
    with pytest.raises(RPCError) as refused:
        await forged.complete()
    assert refused.value.code == "INVALID_ARGUMENT"
    with pytest.raises(RPCError) as refused:
        await client.get_async_activity_handle(workflow_id="none", activity_id="1").heartbeat()
    assert refused.value.code == "NOT_FOUND"
    with pytest.raises(RPCError, match="no stand-alone activity 'none' is pending") as refused:
        await client.get_async_activity_handle(activity_id="none").heartbeat()
    assert refused.value.code == "NOT_FOUND"
    with pytest.raises(ArgumentError, match="result"):
        await forged.complete(object())
    with pytest.raises(RPCError, match="limit"):
        await forged.complete("x" * (2 * 1024 * 1024 + 1))


async def test_outside_an_activity_and_in_the_test_environment() -> None:
    with pytest.raises(RuntimeError, match="Not in an activity"):
        activity.raise_complete_async()
    environment = ActivityEnvironment()
    with pytest.raises(BaseException) as raised:  # noqa: PT011 - what the environment shows to tests
        await environment.run(_ends_later)
    assert type(raised.value).__name__ == "CompleteAsyncError"


async def _ends_later() -> None:
    activity.raise_complete_async()
