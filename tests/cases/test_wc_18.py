"""WC-18: query and detection while every task fails. (Without the list filter and the page, which come later.)"""

import asyncio
import time
from datetime import timedelta
from pathlib import Path

import pytest
from stepwell import workflow
from stepwell.api.limits import QUERY_TIMEOUT
from stepwell.api.requests import PendingWorkflowTaskInfo
from stepwell.client import Client, RPCError, WorkflowHandle, WorkflowQueryFailedError

from tests.support.cases_b import QUEUE, engine, failing_task, kinds, until, within, worker

PROMPT = QUERY_TIMEOUT.total_seconds() * 0.7
"""Seconds that show that a query did not wait to its deadline, on a slow machine as well."""


@workflow.defn(name="Counter")
class Good:
    def __init__(self) -> None:
        self.values: list[int] = []
        self.done = False

    @workflow.run
    async def run(self) -> list[int]:
        await workflow.wait_condition(lambda: self.done)
        return self.values

    @workflow.signal
    def add(self, value: int) -> None:
        self.values.append(value)

    @workflow.signal
    def finish(self) -> None:
        self.done = True

    @workflow.query
    def seen(self) -> list[int]:
        return self.values


@workflow.defn(name="Counter")
class Bad:
    """The next deployment: a plain bug where the signal of 2 is used."""

    def __init__(self) -> None:
        self.values: list[int] = []
        self.done = False

    @workflow.run
    async def run(self) -> list[int]:
        await workflow.wait_condition(lambda: self.done or 2 in self.values)
        raise KeyError("no such tax rate")

    @workflow.signal
    def add(self, value: int) -> None:
        self.values.append(value)

    @workflow.signal
    def finish(self) -> None:
        self.done = True

    @workflow.query
    def seen(self) -> list[int]:
        return self.values


async def _trouble(client: Client, cache: int, task_queue: str = QUEUE) -> WorkflowHandle[list[int]]:
    """A run on good code that has seen 1."""
    async with worker(client, [Good], cache=cache, task_queue=task_queue):
        handle = await client.start_workflow(Good.run, id=task_queue, task_queue=task_queue)
        await handle.signal(Good.add, 1)
        assert await within(5, handle.query(Good.seen)) == [1]
    return handle


async def test_query_describe_and_recovery(tmp_path: Path) -> None:
    """Deploy code with a plain bug and send the signal that triggers it; each task fails; with and without cache.
    Meanwhile a query answers within about a second, with an error that names the failing task and its cause (not with a
    state that is old); describe shows attempt, cause, error and time of the next attempt, which backs off; the history
    does not grow with each attempt and the run stays open. After the rollback the run recovers and the signal is
    applied, once."""
    async with engine(tmp_path) as client:
        await asyncio.gather(*(_bad_and_back(client, cache) for cache in (1000, 0)))


async def _bad_and_back(client: Client, cache: int) -> None:
    queue = {"task_queue": f"cache-{cache}"}
    handle = await _trouble(client, cache, **queue)
    async with worker(client, [Bad], cache=cache, **queue):
        await handle.signal(Good.add, 2)
        pending = await failing_task(handle, attempt=4)
        length = len(await kinds(handle))
        await _query_is_quick(handle)
        assert pending.last_failure is not None
        assert pending.last_failure.message == "'no such tax rate'"
        assert "in run" in pending.last_failure.stack_trace
        assert pending.last_cause == "WORKFLOW_WORKER_UNHANDLED_FAILURE"
        assert _wait(pending) == timedelta(seconds=5)
        pending = await failing_task(handle, attempt=5)
        assert _wait(pending) == timedelta(seconds=10)
        assert len(await kinds(handle)) == length
        assert (await handle.describe()).status == "RUNNING"
    assert (await kinds(handle)).count("WorkflowTaskFailed") == 1
    async with worker(client, [Good], cache=cache, **queue):
        await handle.signal(Good.finish)
        assert await within(30, handle.result()) == [1, 2]


def _wait(pending: PendingWorkflowTaskInfo) -> timedelta:
    """Between the last attempt's failure and the next attempt."""
    assert pending.next_attempt_time is not None
    return pending.next_attempt_time - pending.scheduled_time


async def _query_is_quick(handle: WorkflowHandle[list[int]]) -> None:
    with pytest.raises(RPCError) as caught:
        await within(PROMPT, handle.query(Good.seen))
    for part in ("keeps failing", "attempt 4", "no such tax rate", "deploy"):
        assert part in caught.value.message


async def test_queries_on_code_that_cannot_even_begin(tmp_path: Path) -> None:
    """The worker does not know the workflow type any more. A query says so at once instead of waiting to its
    deadline."""

    @workflow.defn
    async def other() -> None:
        return None

    async with engine(tmp_path) as client:
        handle = await _trouble(client, 1000)
        async with worker(client, [other]):
            with pytest.raises(WorkflowQueryFailedError, match="'Counter' is not registered"):
                await within(PROMPT, handle.query(Good.seen))


async def test_many_failing_runs_do_not_spin_and_do_not_hold_up_others(tmp_path: Path) -> None:
    """Thirty runs fail at each task, on a worker of two workflow slots. In three seconds each makes its first three
    attempts at once and no more (the fourth is 5 s away), and healthy runs beside them end as usual."""
    calls = 0

    @workflow.defn(sandboxed=False)
    async def hopeless() -> None:
        nonlocal calls
        calls += 1
        raise KeyError("bug")

    @workflow.defn
    async def healthy(value: int) -> int:
        await workflow.sleep(0.01)
        return value

    async with engine(tmp_path) as client, worker(client, [hopeless, healthy], max_concurrent_workflow_tasks=2):
        began = time.monotonic()
        failing = [await client.start_workflow(hopeless, id=f"bad-{n}", task_queue=QUEUE) for n in range(30)]
        values = [
            await within(10, client.execute_workflow(healthy, n, id=f"good-{n}", task_queue=QUEUE)) for n in range(10)
        ]
        assert values == list(range(10))

        async def all_back_off() -> bool:
            pending = [(await handle.describe()).pending_workflow_task for handle in failing]
            return all(task is not None and task.attempt == 4 for task in pending)

        await until(all_back_off)
        await asyncio.sleep(0.5)
        if time.monotonic() - began < 4.5:  # else a slow machine has reached the fourth attempts
            assert calls == 30 * 3
