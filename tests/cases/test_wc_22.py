"""WC-22: order of wait, as_completed and sets across processes."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from stepwell.api.events import WorkflowTaskFailed
from stepwell.client import Client, WorkflowHandle

from tests.support.api_server import served_api
from tests.support.cases_b import attributes, failing_task, until, within
from tests.support.processes import Running, running

WORKER = Path(__file__).with_name("wc_22_worker.py")
QUEUE = "order"
RUNS = 20
WIDTH = 12


@asynccontextmanager
async def two_workers(folder: Path) -> AsyncIterator[tuple[Client, list[Running]]]:
    """Two worker processes that hash strings differently and keep no workflow in memory, at one server."""
    async with served_api() as api, AsyncExitStack() as stack:
        workers = [
            stack.enter_context(running([sys.executable, WORKER, api.address], folder, PYTHONHASHSEED=seed))
            for seed in ("1", "2")
        ]
        for process in workers:
            await asyncio.to_thread(process.wait_for, "ready")
        client = await stack.enter_async_context(await Client.connect(api.address))
        yield client, workers


async def test_every_result_belongs_to_its_argument(tmp_path: Path) -> None:
    """Loops over wait(FIRST_COMPLETED), as_completed, a sorted set and two lines of short steps, on two workers with
    different hash seeds, every task a full replay on either. Every result belongs to its argument, and no task
    fails."""
    kinds = [
        ("first_completed", (WIDTH, False)),
        ("in_order_of_end", (WIDTH, False)),
        ("over_a_set", (True,)),
        ("two_lines", (5,)),
    ]
    async with two_workers(tmp_path) as (client, workers):
        handles = [
            await client.start_workflow(name, args=args, id=f"{name}-{args}-{run}", task_queue=QUEUE)
            for run in range(RUNS)
            for name, args in kinds
        ]
        for handle in handles:
            assert await within(60, handle.result()) == [], handle.id
        identities = set()
        for handle in handles:
            found = await attributes(handle)
            assert not any(type(event).__name__ == "WorkflowTaskFailed" for event in found), handle.id
            identities |= {event.identity for event in found if type(event).__name__ == "WorkflowTaskCompleted"}
        assert len(identities) == len(workers), "one of the workers had no part in it"


async def test_the_standard_helpers_are_refused_on_first_use(tmp_path: Path) -> None:
    """``asyncio.wait`` and ``asyncio.as_completed`` go through sets. They are refused the first time they are called,
    before any activity is scheduled, and the message names what to use instead."""
    async with two_workers(tmp_path) as (client, _):
        for name, instead in (("first_completed", "workflow.wait()"), ("in_order_of_end", "workflow.as_completed()")):
            handle = await client.start_workflow(name, args=(WIDTH, True), id=name, task_queue=QUEUE)
            pending = await failing_task(handle)
            assert pending.last_failure is not None and f"use {instead}" in pending.last_failure.message
            assert not any(type(event).__name__ == "ActivityTaskScheduled" for event in await attributes(handle))


async def _ended(handle: WorkflowHandle[list[str]]) -> str:
    """``right``, ``wrong`` or ``stuck``, once one of these is known."""
    description = await handle.describe()
    if description.status == "COMPLETED":
        return "right" if await handle.result() == [] else "wrong"
    pending = description.pending_workflow_task
    return "stuck" if pending is not None and pending.attempt > 3 else ""


async def test_a_bare_set_is_never_swapped_in_silence(tmp_path: Path) -> None:
    """One activity per element of a set of strings, whose order differs between the two processes. Where a replay on
    the other worker asks in another order, the task fails with a message that names the safe replacement, and is
    offered again; no result is ever given to another call."""
    async with two_workers(tmp_path) as (client, _):
        handles = [
            await client.start_workflow("over_a_set", False, id=f"set-{run}", task_queue=QUEUE) for run in range(RUNS)
        ]
        assert "wrong" not in [await until(lambda handle=handle: _ended(handle), 30) for handle in handles]
        found = [event for handle in handles for event in await attributes(handle)]
    failed = [event for event in found if isinstance(event, WorkflowTaskFailed)]
    assert failed, "every run was lucky to stay with one worker"
    for event in failed:
        assert event.cause == "NON_DETERMINISTIC_ERROR"
        assert event.failure is not None and "sorted(" in event.failure.message
