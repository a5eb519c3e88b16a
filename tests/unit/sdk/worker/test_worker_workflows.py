"""Workflows on a real worker and a real engine in memory."""

import asyncio
import logging
from datetime import timedelta

import pytest
from stepwell import activity, workflow
from stepwell.api.events import (
    ActivityTaskCompleted,
    ActivityTaskScheduled,
    WorkflowTaskCompleted,
    WorkflowTaskFailed,
)
from stepwell.api.operations import Operation
from stepwell.client import Client, WorkflowFailureError, WorkflowQueryFailedError
from stepwell.common import RetryPolicy
from stepwell.exceptions import ActivityError, ApplicationError, CancelledError
from stepwell.testing import DevEnvironment
from stepwell.transport import Transport
from stepwell.worker import Worker

TIMEOUT = timedelta(seconds=10)


@activity.defn
async def increment(value: int) -> int:
    return value + 1


@activity.defn
def increment_in_thread(value: int) -> int:
    return value + 1


@activity.defn
async def fail(message: str) -> None:
    raise ApplicationError(message, type="Broken", non_retryable=True)


@workflow.defn
async def count(steps: int) -> int:
    value = 0
    for _ in range(steps):
        value = await workflow.execute_activity(increment, value, start_to_close_timeout=TIMEOUT)
    return value


@workflow.defn
async def fan_out(width: int) -> int:
    calls = [workflow.execute_activity(increment, i, start_to_close_timeout=TIMEOUT) for i in range(width)]
    return sum(await asyncio.gather(*calls))


@workflow.defn
async def count_in_threads(steps: int) -> int:
    value = 0
    for _ in range(steps):
        value = await workflow.execute_activity(increment_in_thread, value, start_to_close_timeout=TIMEOUT)
    return value


@workflow.defn
async def failing() -> str:
    try:
        await workflow.execute_activity(fail, "no luck", start_to_close_timeout=TIMEOUT)
    except ActivityError as error:
        return str(error.cause)
    return "?"


@workflow.defn
class Basket:
    def __init__(self) -> None:
        self.items: list[str] = []
        self.done = False

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.wait_condition(lambda: self.done)
        return self.items

    @workflow.signal
    def add(self, item: str) -> None:
        self.items.append(item)

    @workflow.signal
    def finish(self) -> None:
        self.done = True

    @workflow.query
    def price(self, item: str) -> int:
        return {"apple": 1}[item]

    @workflow.query
    def content(self) -> list[str]:
        return self.items


@workflow.defn
async def sleeper() -> None:
    await workflow.sleep(3600)


WORKFLOWS = [count, fan_out, count_in_threads, failing, Basket, sleeper]
ACTIVITIES = [increment, increment_in_thread, fail]


class Counting:
    """Counts the calls that pass; the engine behind it is the real one."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.calls: list[str] = []

    async def call(self, operation: Operation, request: object) -> object:
        self.calls.append(operation.name)
        return await self._transport.call(operation, request)

    async def close(self) -> None:
        await self._transport.close()


@pytest.fixture
async def env():
    async with await DevEnvironment.start() as env:
        yield env


@pytest.fixture
def client(env: DevEnvironment) -> Client:
    return env.client


def worker(client: Client, **options) -> Worker:
    options = {"workflows": WORKFLOWS, "activities": ACTIVITIES, **options}
    return Worker(client, task_queue="q", **options)


async def test_sequence(client: Client) -> None:
    async with worker(client):
        assert await client.execute_workflow(count, 20, id="w", task_queue="q") == 20


async def test_a_sequential_step_is_one_call(client: Client) -> None:
    counting = Counting(client.transport)
    counted = Client(counting)
    async with worker(counted):
        await client.execute_workflow(count, 50, id="w", task_queue="q")
    work = [name for name in counting.calls if not name.startswith(("Poll", "Shutdown"))]
    assert work.count("RespondWorkflowTaskCompleted") == 51
    assert len(work) == 51


@pytest.mark.parametrize("slots", [1, 7, 100])
async def test_fan_out_with_few_and_many_slots(client: Client, slots: int) -> None:
    async with worker(client, max_concurrent_activities=slots):
        result = await asyncio.wait_for(client.execute_workflow(fan_out, 60, id="w", task_queue="q"), 20)
    assert result == sum(range(1, 61))


async def test_without_cache_every_task_is_a_replay(client: Client) -> None:
    async with worker(client, max_cached_workflows=0):
        assert await client.execute_workflow(count, 8, id="w", task_queue="q") == 8


async def test_a_small_cache_evicts_and_replays(client: Client) -> None:
    async with worker(client, max_cached_workflows=1):
        handles = [await client.start_workflow(Basket.run, id=f"w{i}", task_queue="q") for i in range(5)]
        for handle in handles:
            await handle.signal(Basket.add, handle.id)
        for handle in handles:
            assert await handle.query(Basket.content) == [handle.id]
        for handle in handles:
            await handle.signal(Basket.finish)
            assert await handle.result() == [handle.id]


async def test_a_second_worker_takes_over_from_history(client: Client) -> None:
    async with worker(client):
        handle = await client.start_workflow(Basket.run, id="w", task_queue="q")
        await handle.signal(Basket.add, "one")
        assert await handle.query(Basket.content) == ["one"]
    async with worker(client):
        await handle.signal(Basket.add, "two")
        await handle.signal(Basket.finish)
        assert await handle.result() == ["one", "two"]


async def test_threads(client: Client) -> None:
    async with worker(client):
        assert await client.execute_workflow(count_in_threads, 5, id="w", task_queue="q") == 5


async def test_failure_reaches_the_workflow(client: Client) -> None:
    async with worker(client):
        assert await client.execute_workflow(failing, id="w", task_queue="q") == "Broken: no luck"


async def test_query_of_a_closed_run_and_of_no_handler(client: Client) -> None:
    async with worker(client):
        handle = await client.start_workflow(Basket.run, id="w", task_queue="q")
        await handle.signal(Basket.add, "one")
        await handle.signal(Basket.finish)
        await handle.result()
        assert await handle.query(Basket.content) == ["one"]
        with pytest.raises(WorkflowQueryFailedError, match="nothing"):
            await handle.query("nothing")


async def test_a_query_that_fails_tells_the_type(client: Client) -> None:
    async with worker(client):
        handle = await client.start_workflow(Basket.run, id="w", task_queue="q")
        with pytest.raises(WorkflowQueryFailedError, match=r"^KeyError: 'pear'$"):
            await handle.query(Basket.price, "pear")
        await handle.terminate()


async def test_cancel_ends_the_workflow(client: Client) -> None:
    async with worker(client):
        handle = await client.start_workflow(sleeper, id="w", task_queue="q")
        await asyncio.sleep(0.05)
        await handle.cancel(reason="enough")
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
        assert isinstance(caught.value.cause, CancelledError)


async def test_unknown_type_fails_the_task_and_names_what_is_there(client: Client, caplog) -> None:
    async with worker(client):
        handle = await client.start_workflow("Nowhere", id="w", task_queue="q")
        with caplog.at_level(logging.WARNING, "stepwell.worker"):
            await _failed_task(handle)
    description = await handle.describe()
    assert description.pending_workflow_task is not None and description.pending_workflow_task.last_failure is not None
    message = description.pending_workflow_task.last_failure.message
    assert "'Nowhere' is not registered" in message and "Basket" in message and "count" in message
    assert len([record for record in caplog.records if "Nowhere" in record.getMessage()]) == 1


async def test_a_bug_fails_the_task_until_the_code_is_fixed(client: Client, caplog) -> None:
    broken = True

    @workflow.defn(name="Patched", sandboxed=False)
    async def patched() -> str:
        if broken:
            raise KeyError("bug")
        return "fixed"

    async with worker(client, workflows=[patched]):
        handle = await client.start_workflow(patched, id="w", task_queue="q", task_timeout=timedelta(seconds=1))
        await _failed_task(handle)
        broken = False
        assert await asyncio.wait_for(handle.result(), 30) == "fixed"
    assert "in patched" in caplog.text


async def test_oversize_result_fails_the_task(client: Client) -> None:
    @workflow.defn
    async def big() -> str:
        return "x" * (2 * 1024 * 1024 + 1)

    async with worker(client, workflows=[big]):
        handle = await client.start_workflow(big, id="w", task_queue="q")
        failed = await _failed_task(handle)
    assert failed.cause == "PAYLOADS_TOO_LARGE"
    assert failed.failure is not None and "limit is 2097152" in failed.failure.message


async def test_unserialisable_result_fails_the_task(client: Client) -> None:
    @workflow.defn
    async def odd() -> object:
        return object()

    async with worker(client, workflows=[odd]):
        handle = await client.start_workflow(odd, id="w", task_queue="q")
        failed = await _failed_task(handle)
    assert failed.failure is not None and "odd" in failed.failure.message


async def test_two_workers_share_the_work(client: Client) -> None:
    async with worker(client), worker(client):
        results = await asyncio.gather(
            *(client.execute_workflow(count, 5, id=f"w{i}", task_queue="q") for i in range(20))
        )
    assert results == [5] * 20


async def test_signals_in_the_middle_of_steps(client: Client) -> None:
    @workflow.defn
    class Mixed:
        def __init__(self) -> None:
            self.seen = 0

        @workflow.run
        async def run(self) -> int:
            value = 0
            while self.seen < 30:
                value = await workflow.execute_activity(increment, value, start_to_close_timeout=TIMEOUT)
            return self.seen

        @workflow.signal
        def note(self) -> None:
            self.seen += 1

    async with worker(client, workflows=[Mixed]):
        handle = await client.start_workflow(Mixed.run, id="w", task_queue="q")
        for _ in range(30):
            await handle.signal(Mixed.note)
            await asyncio.sleep(0.001)
        assert await asyncio.wait_for(handle.result(), 30) == 30


async def test_history_of_fused_steps_is_whole(client: Client) -> None:
    async with worker(client):
        await client.execute_workflow(count, 3, id="w", task_queue="q")
    history = await client.get_workflow_handle("w").fetch_history()
    assert [event.event_id for event in history.events] == list(range(1, len(history.events) + 1))
    kinds = [type(event.attributes) for event in history.events]
    assert kinds.count(ActivityTaskScheduled) == kinds.count(ActivityTaskCompleted) == 3
    assert kinds.count(WorkflowTaskCompleted) == 4


async def test_retries_go_through_the_engine(client: Client) -> None:
    attempts: list[int] = []

    @activity.defn
    async def flaky() -> int:
        attempts.append(activity.info().attempt)
        if activity.info().attempt < 3:
            raise RuntimeError("not yet")
        return activity.info().attempt

    @workflow.defn
    async def patient() -> int:
        policy = RetryPolicy(initial_interval=timedelta(milliseconds=20))
        return await workflow.execute_activity(flaky, start_to_close_timeout=TIMEOUT, retry_policy=policy)

    async with worker(client, workflows=[patient], activities=[flaky]):
        assert await client.execute_workflow(patient, id="w", task_queue="q") == 3
    assert attempts == [1, 2, 3]


def test_two_of_one_name_are_refused() -> None:
    @activity.defn(name="increment")
    async def other(value: int) -> int:
        return value

    with pytest.raises(ValueError, match="two activities are named 'increment'"):
        Worker(None, task_queue="q", activities=[increment, other])  # type: ignore[arg-type]


async def _failed_task(handle) -> WorkflowTaskFailed:
    async def look() -> WorkflowTaskFailed:
        async for event in handle.fetch_history_events(wait_new_event=True):
            if isinstance(event.attributes, WorkflowTaskFailed):
                return event.attributes
        raise AssertionError("the run closed")

    return await asyncio.wait_for(look(), 30)
