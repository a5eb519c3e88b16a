"""WC-23: blocking call in workflow code. Durations are a tenth and less of the case's: the block is 2 s, the limit of
deadlock detection 0.25 s."""

import asyncio
import ctypes
import time
from datetime import timedelta
from pathlib import Path

import pytest
from stepwell import activity, workflow
from stepwell.client import Client
from stepwell.worker import Worker

from tests.support.cases_b import LIMIT, QUEUE, engine, failing_task, kinds, within, worker

BLOCK = 2.0
"""Seconds."""

DEADLOCK = timedelta(seconds=0.25)
GRACE = timedelta(seconds=2)

_usleep = ctypes.CDLL(None).usleep
"""A real sleep that the guards do not know of, as C code may hold one."""

slept: list[float] = []
"""What ``time.sleep`` slept in workflow code."""

blocked: set[str] = set()
"""Ids of the workflows that ran into the blocking line; each does once."""


@workflow.defn
async def blocking() -> str:
    if workflow.info().workflow_id not in blocked:
        blocked.add(workflow.info().workflow_id)
        _usleep(int(BLOCK * 1_000_000))  # the line that blocks
    return "after all"


@workflow.defn
async def polite_sleeper() -> None:
    time.sleep(BLOCK)
    slept.append(BLOCK)


@workflow.defn
async def normal(value: int) -> int:
    await workflow.sleep(0.01)
    return value


@activity.defn
async def echo(value: int) -> int:
    return value


@workflow.defn
async def fan_out(width: int) -> int:
    calls = [workflow.execute_activity(echo, n, start_to_close_timeout=LIMIT) for n in range(width)]
    return sum(await asyncio.gather(*calls))


def _two_slots(client: Client, deadlock: timedelta = DEADLOCK) -> Worker:
    return worker(
        client,
        [blocking, polite_sleeper, normal, fan_out],
        [echo],
        max_concurrent_workflow_tasks=2,
        deadlock_timeout=deadlock,
        graceful_shutdown_timeout=GRACE,
    )


async def _normal_ones(client: Client, first: int) -> None:
    numbers = range(first, first + 20)
    handles = [await client.start_workflow(normal, n, id=f"normal-{n}", task_queue=QUEUE) for n in numbers]
    assert [await within(30, handle.result()) for handle in handles] == list(numbers)


async def test_slots_come_back_and_the_task_says_where_it_blocked(tmp_path: Path) -> None:
    """Four workflows block for real on a worker of two workflow slots, with twenty normal ones behind them and twenty
    later. Each blocked task fails with the stack of the blocking line, visible with type and id; when the block ends
    the slots work again and all normal ones complete; the worker stops within its grace time."""
    blocked.clear()
    async with engine(tmp_path) as client:
        running = _two_slots(client)
        async with running:
            handles = [await client.start_workflow(blocking, id=f"blocking-{n}", task_queue=QUEUE) for n in range(4)]
            await _normal_ones(client, 0)
            for handle in handles:
                assert await within(30, handle.result()) == "after all"
            await _normal_ones(client, 20)
            await within(GRACE.total_seconds() + 20, running.shutdown())
        for handle in handles:
            failed = [
                event.attributes
                async for event in handle.fetch_history_events()
                if type(event.attributes).__name__ == "WorkflowTaskFailed"
            ]
            assert len(failed) == 1
            assert "[deadlock]" in failed[0].failure.message
            assert "the line that blocks" in failed[0].failure.stack_trace
            assert "in blocking" in failed[0].failure.stack_trace


async def test_the_log_names_the_blocked_workflow(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One warning with workflow type, id and the blocking line's function."""
    blocked.clear()
    async with engine(tmp_path) as client, _two_slots(client):
        assert await within(20, client.execute_workflow(blocking, id="the-one", task_queue=QUEUE)) == "after all"
    said = [record.getMessage() for record in caplog.records if "[deadlock]" in record.getMessage()]
    assert len(said) == 1
    assert "workflow blocking, id 'the-one'" in said[0]


async def test_time_sleep_does_not_even_begin(tmp_path: Path) -> None:
    """``time.sleep`` in workflow code is refused at once with the call to use instead; nothing blocks."""
    async with engine(tmp_path) as client, _two_slots(client):
        handle = await client.start_workflow(polite_sleeper, id="sleeper", task_queue=QUEUE)
        pending = await failing_task(handle)
        assert pending.last_failure is not None and "workflow.sleep" in pending.last_failure.message
    assert slept == []


async def test_a_large_fan_out_raises_no_false_alarm(tmp_path: Path) -> None:
    """A thousand activities started in one step and gathered, with the limit as delivered (2 s): no task fails."""
    async with engine(tmp_path) as client, _two_slots(client, timedelta(seconds=2)):
        handle = await client.start_workflow(fan_out, 1000, id="wide", task_queue=QUEUE)
        assert await within(60, handle.result()) == sum(range(1000))
        assert "WorkflowTaskFailed" not in await kinds(handle)


async def test_a_healthy_turn_that_takes_longer_passes_with_a_higher_limit(tmp_path: Path) -> None:
    """The limit is configurable: with one above the block, the same code completes at its first try."""
    blocked.clear()
    async with engine(tmp_path) as client, _two_slots(client, timedelta(seconds=30)):
        handle = await client.start_workflow(blocking, id="slow", task_queue=QUEUE)
        assert await within(20, handle.result()) == "after all"
        assert "WorkflowTaskFailed" not in await kinds(handle)
