"""Local activities on a real worker and a real engine in memory: what is lost, late, too long, or not there (AC-24)."""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.api.events import MarkerRecorded, WorkflowTaskFailed, WorkflowTaskTimedOut
from stepwell.client import Client, WorkflowHandle
from stepwell.common import RetryPolicy
from stepwell.exceptions import ActivityError
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker, local_turns

LONG = timedelta(seconds=30)
BRIEF = timedelta(milliseconds=300)
"""A workflow task timeout that a held activity outlives."""


class Gate:
    """An activity that runs until the test lets it."""

    def __init__(self) -> None:
        self.begun: asyncio.Queue[int] = asyncio.Queue()
        self.open = asyncio.Event()
        self.stopped = 0

    @activity.defn
    async def held(self) -> str:
        self.begun.put_nowait(activity.info().attempt)
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        return "through"

    @activity.defn
    async def quick(self, value: int) -> int:
        return value + 1

    def worker(self, client: Client, workflow_code: Any, **options: Any) -> Worker:
        return Worker(client, task_queue="q", workflows=[workflow_code], activities=[self.held, self.quick], **options)


@workflow.defn
class Waits:
    def __init__(self) -> None:
        self.heard: list[int] = []

    @workflow.signal
    def hear(self, number: int) -> None:
        self.heard.append(number)

    @workflow.run
    async def run(self) -> list[Any]:
        result = await workflow.execute_local_activity("held", start_to_close_timeout=LONG)
        return [result, len(self.heard)]


async def start(client: Client, code: Any, *args: Any, **options: Any) -> WorkflowHandle[Any]:
    return await client.start_workflow(code, args=args, id="w", task_queue="q", **({"task_timeout": BRIEF} | options))


async def kinds(handle: WorkflowHandle[Any]) -> list[type]:
    return [type(event.attributes) for event in (await handle.fetch_history()).events]


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(30):
        while not await condition():
            await asyncio.sleep(0.01)


async def test_messages_get_in_and_the_buffer_does_not_overflow() -> None:
    gate = Gate()
    async with await DevEnvironment.start() as env, gate.worker(env.client, Waits):
        handle = await start(env.client, Waits.run)
        await gate.begun.get()
        for number in range(150):
            await handle.signal(Waits.hear, number)
            if number % 50 == 49:
                before = (await handle.describe()).history_length

                async def grew(before: int = before) -> bool:
                    return (await handle.describe()).history_length > before

                await until(grew)
        gate.open.set()
        assert await handle.result() == ["through", 150]
        assert gate.begun.empty(), "it ran once"
        assert WorkflowTaskTimedOut not in await kinds(handle) and WorkflowTaskFailed not in await kinds(handle)


async def test_a_worker_that_is_lost_is_followed_by_one_that_runs_it_again() -> None:
    gate = Gate()
    async with await DevEnvironment.start() as env:
        first = gate.worker(env.client, Waits, graceful_shutdown_timeout=timedelta(0))
        async with first:
            handle = await start(env.client, Waits.run)
            await gate.begun.get()
        assert gate.stopped == 1
        async with gate.worker(env.client, Waits):
            await gate.begun.get()
            gate.open.set()
            assert await handle.result() == ["through", 0]


async def test_shutdown_lets_it_end_within_the_grace_time() -> None:
    gate = Gate()
    async with await DevEnvironment.start() as env:
        async with gate.worker(env.client, Waits):
            handle = await start(env.client, Waits.run)
            await gate.begun.get()
            asyncio.get_running_loop().call_later(0.1, gate.open.set)
        assert await handle.result() == ["through", 0]
        assert gate.stopped == 0


async def test_a_run_that_is_terminated_stops_it() -> None:
    gate = Gate()
    async with await DevEnvironment.start() as env, gate.worker(env.client, Waits):
        handle = await start(env.client, Waits.run)
        await gate.begun.get()
        await handle.terminate()

        async def stopped() -> bool:
            return gate.stopped == 1

        await until(stopped)


async def test_half_an_hour_is_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_turns, "MAX_KEPT_ALIVE", 0.5)
    gate = Gate()
    async with await DevEnvironment.start() as env, gate.worker(env.client, Waits):
        handle = await start(env.client, Waits.run)

        async def failed() -> bool:
            return WorkflowTaskFailed in await kinds(handle)

        await until(failed)
        task = (await handle.describe()).raw_description.pending_workflow_task
        assert task is not None and task.last_failure is not None
        assert "workflow.execute_activity" in task.last_failure.message
        gate.open.set()
        assert await handle.result() == ["through", 0]


@workflow.defn
async def calls_what_is_not_there() -> None:
    await workflow.execute_local_activity("not there", start_to_close_timeout=LONG)


async def test_an_activity_that_the_worker_does_not_have_fails_the_task(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    gate = Gate()
    async with await DevEnvironment.start() as env, gate.worker(env.client, calls_what_is_not_there):
        handle = await start(env.client, calls_what_is_not_there)

        async def failed() -> bool:
            return WorkflowTaskFailed in await kinds(handle)

        await until(failed)
        events = (await handle.fetch_history()).events
        (failure,) = [e.attributes.failure for e in events if isinstance(e.attributes, WorkflowTaskFailed)]
        assert failure is not None and "registered are: held, quick" in failure.message


@workflow.defn
async def waits_for_a_slot() -> str:
    first = workflow.start_local_activity("held", start_to_close_timeout=LONG)
    try:
        await workflow.execute_local_activity(
            "held",
            start_to_close_timeout=LONG,
            schedule_to_start_timeout=timedelta(milliseconds=50),
            retry_policy=RetryPolicy(maximum_attempts=1),
        )
    except ActivityError as error:
        first.cancel()
        return str(error.cause)
    return "had one"


async def test_no_slot_in_time() -> None:
    gate = Gate()
    async with (
        await DevEnvironment.start() as env,
        gate.worker(env.client, waits_for_a_slot, max_concurrent_local_activities=1),
    ):
        handle = await start(env.client, waits_for_a_slot)
        assert "schedule-to-start timeout" in await handle.result()
        assert gate.begun.qsize() == 1


@workflow.defn
async def beside_a_leased_one() -> list[Any]:
    """The step that an activity's end leads to begins a local activity that outlasts it."""
    one = await workflow.execute_activity("quick", 1, start_to_close_timeout=LONG)
    other = workflow.start_activity("quick", one, start_to_close_timeout=LONG)
    held = await workflow.execute_local_activity("held", start_to_close_timeout=LONG)
    return [held, await other]


async def test_a_fused_step_does_not_wait_for_it() -> None:
    """What came with the step, and what ends meanwhile, is recorded while the local activity runs."""
    gate = Gate()
    async with await DevEnvironment.start() as env, gate.worker(env.client, beside_a_leased_one):
        handle = await start(env.client, beside_a_leased_one, task_timeout=timedelta(seconds=2))
        await gate.begun.get()

        async def recorded() -> bool:
            return not (await handle.describe()).pending_activities

        await until(recorded)
        gate.open.set()
        assert await handle.result() == ["through", 3]
        assert gate.begun.empty(), "it ran once"


@workflow.defn
async def many(width: int) -> int:
    calls = [workflow.execute_local_activity("quick", i, start_to_close_timeout=LONG) for i in range(width)]
    return sum(await asyncio.gather(*calls))


async def test_more_than_one_completion_takes() -> None:
    gate = Gate()
    async with await DevEnvironment.start() as env, gate.worker(env.client, many):
        handle = await start(env.client, many, 1_500, task_timeout=LONG)
        assert await handle.result() == sum(range(1, 1_501))
        assert (await kinds(handle)).count(MarkerRecorded) == 1_500


@activity.defn
async def returns_much(size: int) -> str:
    return "x" * size


@workflow.defn
async def gathers_much() -> int:
    total = 0
    for _ in range(6):
        total += len(await workflow.execute_local_activity(returns_much, 1_000_000, start_to_close_timeout=LONG))
    return total


async def test_results_that_are_too_much_for_one_completion_go_in_several() -> None:
    async with (
        await DevEnvironment.start() as env,
        Worker(env.client, task_queue="q", workflows=[gathers_much], activities=[returns_much]),
    ):
        handle = await start(env.client, gathers_much, task_timeout=LONG)
        assert await handle.result() == 6_000_000


@activity.defn
async def later() -> None:
    activity.raise_complete_async()


@workflow.defn
async def calls_later() -> str:
    try:
        await workflow.execute_local_activity(later, start_to_close_timeout=LONG)
    except ActivityError as error:
        return str(error.cause)
    return "?"


async def test_it_cannot_be_completed_later() -> None:
    async with (
        await DevEnvironment.start() as env,
        Worker(env.client, task_queue="q", workflows=[calls_later], activities=[later]),
    ):
        handle = await start(env.client, calls_later)
        assert "cannot be completed later" in await handle.result()


async def test_numbers_of_slots_are_checked() -> None:
    async with await DevEnvironment.start() as env:
        with pytest.raises(ValueError, match="max_concurrent_local_activities"):
            Gate().worker(env.client, Waits, max_concurrent_local_activities=0)


@workflow.defn
class Updated:
    """Update handlers that run local activities, until one of them ends the run."""

    def __init__(self) -> None:
        self.over = False

    @workflow.update
    async def look_up(self, value: int) -> int:
        return await workflow.execute_local_activity("quick", value, start_to_close_timeout=LONG)

    @workflow.update
    async def wait(self) -> str:
        result = await workflow.execute_local_activity("held", start_to_close_timeout=LONG)
        self.over = True
        return str(result)

    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: self.over)
        return "over"


@pytest.mark.parametrize("cached", [1000, 0])
async def test_in_update_handlers(cached: int) -> None:
    """One that is held does not hold up the others: they get in when the task is kept alive."""
    gate = Gate()
    async with await DevEnvironment.start() as env, gate.worker(env.client, Updated, max_cached_workflows=cached):
        handle = await start(env.client, Updated.run)
        assert await handle.execute_update(Updated.look_up, 1) == 2
        waiting = asyncio.create_task(handle.execute_update(Updated.wait))
        await gate.begun.get()
        assert await handle.execute_update(Updated.look_up, 2) == 3
        gate.open.set()
        assert await waiting == "through"
        assert await handle.result() == "over"
        assert gate.begun.empty(), "it ran once"


@workflow.defn
async def leaves_it(again: bool) -> str:
    workflow.start_local_activity("held", start_to_close_timeout=LONG)
    await workflow.execute_local_activity("quick", 1, start_to_close_timeout=LONG)
    if again:
        workflow.continue_as_new(False)
    return "left"


@pytest.mark.parametrize("again", [False, True])
async def test_the_end_of_the_run_stops_what_is_left(again: bool) -> None:
    gate = Gate()
    async with await DevEnvironment.start() as env, gate.worker(env.client, leaves_it):
        handle = await start(env.client, leaves_it, again)
        assert await handle.result() == "left"

        async def stopped() -> bool:
            return gate.stopped == gate.begun.qsize() == 1 + again

        await until(stopped)
