"""WC-27 on DynamoDB, SQS and S3: state, steps and events that outgrow an item, tasks that outgrow a batch."""

import asyncio
import os
import random
from collections.abc import AsyncIterator

import pytest
from stepwell.api.events import ActivityTaskScheduled
from stepwell.api.limits import MAX_TRANSITION_BYTES
from stepwell.client import Client

from tests.cases.test_wc_27 import (
    ACTIVITIES,
    KB,
    WORKFLOWS,
    Wide,
    heavy_step,
    large_events,
    large_payloads,
    number,
    reads_back_complete,
    small,
)
from tests.support.aws.cells import Cell
from tests.support.aws.containers import served_container
from tests.support.cases_b import QUEUE, attributes, failing_task, within, worker

PENDING = int(os.environ.get("STEPWELL_CASE_27_PENDING", "150"))
"""The limit is 2,000, which the emulator takes minutes for: by command, when nothing else runs."""
SIGNALS = PENDING // 3
SMALL = 5
SENDERS = 5


@pytest.fixture
async def client(cell: Cell) -> AsyncIterator[Client]:
    async with served_container(cell) as served, await Client.connect(served.address) as connected:
        yield connected


async def test_hundreds_of_activities_and_their_signals(client: Client) -> None:
    """(a, d) All of it works: every signal is handled once, all activities' tasks arrive, the history reads back
    complete, and small workflows run meanwhile."""
    async with worker(client, WORKFLOWS, ACTIVITIES):
        handle = await client.start_workflow(Wide.run, args=[PENDING, SIGNALS], id="wide", task_queue=QUEUE)

        async def send(sender: int) -> None:
            for n in range(SIGNALS // SENDERS):
                await handle.signal(Wide.note, f"{sender} {n} ".ljust(KB, "."))

        async def small_ones() -> None:
            for n in range(SMALL):
                assert await client.execute_workflow(small, n, id=f"small-{n}", task_queue=QUEUE) == n

        await within(100, asyncio.gather(small_ones(), *(send(sender) for sender in range(SENDERS))))
        assert len((await handle.describe()).pending_activities) == PENDING
        async with worker(client, activities=[number], task_queue="later"):
            assert await within(120, handle.result()) == [SIGNALS * KB, sum(range(PENDING))]
        await reads_back_complete(handle, PENDING, SIGNALS)


async def test_one_step_with_two_hundred_large_activities(client: Client) -> None:
    """(b) 20 MB in one step are refused with the limit in the message, and nothing of the step is there. What fits into
    a step has parts in S3, or in several items, and works."""
    fitting = MAX_TRANSITION_BYTES // (101 * KB)
    async with worker(client, WORKFLOWS, ACTIVITIES):
        refused = await client.start_workflow(heavy_step, args=[200, 100 * KB], id="too-much", task_queue=QUEUE)
        pending = await failing_task(refused, seconds=60)
        assert pending.last_cause == "PAYLOADS_TOO_LARGE"
        assert pending.last_failure is not None and str(MAX_TRANSITION_BYTES) in pending.last_failure.message
        assert not any(isinstance(event, ActivityTaskScheduled) for event in await attributes(refused))
        args = [fitting, 100 * KB]
        taken = await within(90, client.execute_workflow(heavy_step, args=args, id="fits", task_queue=QUEUE))
        assert taken == fitting * 100 * KB


async def test_single_events_around_the_limits_of_items(client: Client) -> None:
    """(c) Bytes that do not compress, around the 256 KB of a message and the 400 KB of an item: each arrives whole
    and reads back whole."""
    async with worker(client, WORKFLOWS, ACTIVITIES):
        for size in (255, 256, 257, 399, 400, 401):
            value = random.Random(size).randbytes(size * KB)
            handle = await client.start_workflow(large_events, value, id=f"large-{size}", task_queue=QUEUE)
            await handle.signal("value", value)
            assert await within(60, handle.result()) == value
            payloads = large_payloads(await attributes(handle))
            assert len(payloads) == 5
            assert all(payload.data == value for (payload,) in payloads)
