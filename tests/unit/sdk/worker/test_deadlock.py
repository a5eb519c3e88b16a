"""Workflow code and activities that do not yield, and the watchdog by itself."""

import asyncio
import logging
import threading
import time
from datetime import timedelta

import pytest
from stepwell import activity, workflow
from stepwell.api.events import WorkflowTaskFailed
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker
from stepwell.worker.watchdog import Watchdog, WorkflowDeadlock


@workflow.defn(sandboxed=False)
async def spinning() -> None:
    while True:
        pass


@workflow.defn
async def swift() -> str:
    return "done"


async def test_spinning_workflow_fails_its_task_with_the_stack_and_others_go_on() -> None:
    async with await DevEnvironment.start() as env:
        client = env.client
        async with Worker(
            client, task_queue="q", workflows=[spinning, swift], deadlock_timeout=timedelta(milliseconds=200)
        ):
            handle = await client.start_workflow(spinning, id="spinning", task_queue="q")

            async def failed() -> WorkflowTaskFailed:
                async for event in handle.fetch_history_events(wait_new_event=True):
                    if isinstance(event.attributes, WorkflowTaskFailed):
                        return event.attributes
                raise AssertionError("closed")

            found = await asyncio.wait_for(failed(), 30)
            assert found.failure is not None and "[deadlock]" in found.failure.message
            assert "in spinning" in found.failure.stack_trace
            assert await asyncio.wait_for(client.execute_workflow(swift, id="swift", task_queue="q"), 30) == "done"
            await handle.terminate()


@activity.defn
async def blocks(seconds: float) -> str:
    time.sleep(seconds)
    return "done"


@activity.defn
async def many_turns() -> None:
    for _ in range(60):
        time.sleep(0.01)
        await asyncio.sleep(0)


@workflow.defn
async def calls_blocking() -> str:
    await workflow.execute_activity(many_turns, start_to_close_timeout=timedelta(seconds=10))
    return await workflow.execute_activity(blocks, 0.8, start_to_close_timeout=timedelta(seconds=10))


async def test_an_async_activity_that_blocks_is_reported_once_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async with await DevEnvironment.start() as env:
        client = env.client
        async with Worker(
            client,
            task_queue="q",
            workflows=[calls_blocking],
            activities=[blocks, many_turns],
            deadlock_timeout=timedelta(milliseconds=250),
        ):
            result = await client.execute_workflow(calls_blocking, id="blocked", task_queue="q")
    assert result == "done"
    found = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(found) == 1
    assert found[0].startswith("Activity blocks of workflow blocked has held up its whole worker")
    assert "time.sleep(seconds)" in found[0]


def test_interrupts_the_blocked_thread_once() -> None:
    watchdog = Watchdog(0.1)
    watchdog.start()

    def block() -> None:
        with watchdog:
            while True:
                pass

    with pytest.raises(WorkflowDeadlock):
        block()
    assert watchdog.blocked_stack is not None and "in block" in watchdog.blocked_stack
    watchdog.stop()


def test_an_interrupt_that_comes_too_late_is_taken_back() -> None:
    watchdog = Watchdog(0.05)
    watchdog.start()
    try:
        with watchdog:
            time.sleep(0.2)  # the interrupt is pending when the sleep ends
    except WorkflowDeadlock:
        pass
    sum(range(100_000))
    assert watchdog.blocked_stack is not None
    watchdog.stop()


def test_quick_code_is_left_alone() -> None:
    watchdog = Watchdog(0.2)
    watchdog.start()
    for _ in range(2000):
        with watchdog:
            sum(range(10))
    assert watchdog.blocked_stack is None
    watchdog.stop()
    assert not any(thread.name == "stepwell-watchdog" for thread in threading.enumerate())


def test_none_disables_it() -> None:
    watchdog = Watchdog(None)
    watchdog.start()
    with watchdog:
        time.sleep(0.1)
    assert watchdog.blocked_stack is None
