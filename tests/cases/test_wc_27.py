"""WC-27: state and fan-out that outgrow what a store takes in one piece; what of it applies to SQLite."""

import asyncio
from pathlib import Path
from typing import Any

from stepwell import activity, workflow
from stepwell.api.events import (
    ActivityTaskCompleted,
    ActivityTaskScheduled,
    EventAttributes,
    WorkflowExecutionCompleted,
    WorkflowExecutionSignaled,
    WorkflowExecutionStarted,
)
from stepwell.api.limits import MAX_PENDING_ACTIVITIES, MAX_TRANSITION_BYTES
from stepwell.api.payloads import Payloads
from stepwell.client import Client, WorkflowHandle

from tests.support.cases_b import LIMIT, QUEUE, attributes, cache_on_and_off, engine, failing_task, within, worker

KB = 1024
PENDING = MAX_PENDING_ACTIVITIES
SIGNALS = 5_000
SMALL = 50


@activity.defn
async def number(value: int) -> int:
    return value


@activity.defn
async def length(value: bytes) -> int:
    return len(value)


@activity.defn
async def repeat(value: bytes) -> bytes:
    return value


@workflow.defn
class Wide:
    """Many activities on a queue of their own, while signals come in."""

    def __init__(self) -> None:
        self.seen = 0
        self.bytes = 0

    @workflow.run
    async def run(self, width: int, signals: int) -> list[int]:
        options = {"start_to_close_timeout": LIMIT, "task_queue": "later"}
        calls = [workflow.start_activity(number, n, **options) for n in range(width)]
        await workflow.wait_condition(lambda: self.seen == signals)
        return [self.bytes, sum(await asyncio.gather(*calls))]

    @workflow.signal
    def note(self, value: str) -> None:
        self.seen += 1
        self.bytes += len(value)


@workflow.defn
async def small(value: int) -> int:
    return await workflow.execute_activity(number, value, start_to_close_timeout=LIMIT)


@workflow.defn
async def heavy_step(count: int, size: int) -> int:
    calls = [
        workflow.execute_activity(length, n.to_bytes(2, "big") * (size // 2), start_to_close_timeout=LIMIT)
        for n in range(count)
    ]
    return sum(await asyncio.gather(*calls))


@workflow.defn
async def large_events(value: bytes) -> bytes:
    """The value as start argument, activity argument, activity result, signal and workflow result."""
    again = await workflow.execute_activity(repeat, value, start_to_close_timeout=LIMIT)
    signalled: bytes = await workflow.wait_for_signal("value", result_type=bytes)
    return again if signalled == value else b""


WORKFLOWS = [Wide, small, heavy_step, large_events]
ACTIVITIES = [number, length, repeat]


async def _small_ones(client: Client, stop: asyncio.Event) -> int:
    """Small workflows one after the other until told to stop, at least fifty; so many were over before that."""
    count = before = 0
    while count < SMALL or not stop.is_set():
        assert await within(60, client.execute_workflow(small, count, id=f"small-{count}", task_queue=QUEUE)) == count
        count += 1
        before += not stop.is_set()
    return before


async def _send(handle: WorkflowHandle[Any], count: int, sender: int) -> None:
    for n in range(count):
        await handle.signal(Wide.note, f"{sender} {n} ".ljust(KB, "."))


async def reads_back_complete(handle: WorkflowHandle[Any], activities: int, signals: int) -> None:
    """The history of ``Wide``: each activity has its end, and each signal is there."""
    history = [event async for event in handle.fetch_history_events()]
    assert [event.event_id for event in history] == list(range(1, len(history) + 1))
    found = [event.attributes for event in history]
    scheduled = {n for n, event in enumerate(found, 1) if isinstance(event, ActivityTaskScheduled)}
    assert len(scheduled) == activities
    completed = [event.scheduled_event_id for event in found if isinstance(event, ActivityTaskCompleted)]
    assert sorted(completed) == sorted(scheduled)
    sent = {event.input[0].data for event in found if isinstance(event, WorkflowExecutionSignaled)}
    assert len(sent) == signals


async def test_two_thousand_activities_and_five_thousand_signals(tmp_path: Path) -> None:
    """(a, d) A run with 2,000 pending activities gets 5,000 signals of 1 KB while fifty small workflows run. All of it
    works: every signal is handled once, every activity's result arrives, the history reads back complete, and the small
    workflows do not notice."""
    async with engine(tmp_path) as client, worker(client, WORKFLOWS, ACTIVITIES):
        handle = await client.start_workflow(Wide.run, args=[PENDING, SIGNALS], id="wide", task_queue=QUEUE)
        sent = asyncio.Event()
        small_ones = asyncio.create_task(_small_ones(client, sent))
        await within(60, asyncio.gather(*(_send(handle, SIGNALS // 50, sender) for sender in range(50))))
        sent.set()
        assert await within(60, small_ones) >= 3, "they waited for the signals to be through"
        assert len((await handle.describe()).pending_activities) == PENDING
        async with worker(client, activities=[number], task_queue="later"):
            assert await within(60, handle.result()) == [SIGNALS * KB, sum(range(PENDING))]
        await reads_back_complete(handle, PENDING, SIGNALS)


async def test_one_pending_activity_too_many(tmp_path: Path) -> None:
    """2,001 pending activities: the command is refused with the limit in the message, and no part of the step is in
    history or handed out."""
    async with engine(tmp_path) as client, worker(client, WORKFLOWS, ACTIVITIES):
        handle = await client.start_workflow(Wide.run, args=[PENDING + 1, 0], id="wide", task_queue=QUEUE)
        pending = await failing_task(handle)
        assert pending.last_cause == "PENDING_ACTIVITIES_LIMIT_EXCEEDED"
        assert pending.last_failure is not None and f"{PENDING} pending" in pending.last_failure.message
        assert not any(isinstance(event, ActivityTaskScheduled) for event in await attributes(handle))
        assert (await handle.describe()).pending_activities == ()


@cache_on_and_off
async def test_one_step_with_two_hundred_large_activities(tmp_path: Path, cache: int) -> None:
    """(b) 200 activities with 100 KB each in one step are 20 MB: refused with the limit in the message, nothing of the
    step is in history and nothing runs. The same in steps within the limit works."""
    fitting = MAX_TRANSITION_BYTES // (101 * KB)
    async with engine(tmp_path) as client, worker(client, WORKFLOWS, ACTIVITIES, cache):
        refused = await client.start_workflow(heavy_step, args=[200, 100 * KB], id="too-much", task_queue=QUEUE)
        small_ones = asyncio.create_task(_small_ones(client, asyncio.Event()))
        pending = await failing_task(refused)
        small_ones.cancel()
        assert pending.last_cause == "PAYLOADS_TOO_LARGE"
        assert pending.last_failure is not None and str(MAX_TRANSITION_BYTES) in pending.last_failure.message
        assert not any(isinstance(event, ActivityTaskScheduled) for event in await attributes(refused))
        args = [fitting, 100 * KB]
        taken = await within(30, client.execute_workflow(heavy_step, args=args, id="fits", task_queue=QUEUE))
        assert taken == fitting * 100 * KB


def large_payloads(found: list[EventAttributes]) -> list[Payloads]:
    by_kind: list[Payloads] = []
    for event in found:
        if isinstance(event, WorkflowExecutionStarted | ActivityTaskScheduled | WorkflowExecutionSignaled):
            by_kind.append(event.input)
        elif isinstance(event, ActivityTaskCompleted | WorkflowExecutionCompleted):
            by_kind.append(event.result)
    return by_kind


@cache_on_and_off
async def test_single_events_around_the_limits_of_items(tmp_path: Path, cache: int) -> None:
    """(c) Events of 255, 256, 257, 399, 400 and 401 KB, of bytes that do not compress: as start argument, activity
    argument and result, signal and workflow result. Each arrives whole, and reads back whole."""
    async with engine(tmp_path) as client, worker(client, WORKFLOWS, ACTIVITIES, cache):
        for size in (255, 256, 257, 399, 400, 401):
            value = _noise(size * KB)
            handle = await client.start_workflow(large_events, value, id=f"large-{size}", task_queue=QUEUE)
            await handle.signal("value", value)
            assert await within(20, handle.result()) == value
            payloads = large_payloads(await attributes(handle))
            assert len(payloads) == 5
            assert all(payload.data == value for (payload,) in payloads)


def _noise(size: int) -> bytes:
    import random

    return random.Random(size).randbytes(size)
