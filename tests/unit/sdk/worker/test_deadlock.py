"""Workflow code that does not yield, and the watchdog by itself."""

import asyncio
import threading
import time
from datetime import timedelta

import pytest
from stepwell import workflow
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

            found = await asyncio.wait_for(failed(), 10)
            assert found.failure is not None and "[deadlock]" in found.failure.message
            assert "in spinning" in found.failure.stack_trace
            assert await asyncio.wait_for(client.execute_workflow(swift, id="swift", task_queue="q"), 10) == "done"
            await handle.terminate()


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
