"""The deterministic loop: asyncio's tools work, everything else is refused with a way out (PM-07)."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from stepwell import workflow
from stepwell.replay.errors import ForbiddenInWorkflowError, NotInWorkflowError, WorkflowTaskError

from tests.support.histories import Driver


@workflow.defn
async def tools() -> list[Any]:
    """Event, Lock, Queue, Semaphore, TaskGroup, gather, wait_for, timeout and shield, with no timer left behind."""
    event, lock, queue = asyncio.Event(), asyncio.Lock(), asyncio.Queue[int]()
    order: list[Any] = []

    async def producer() -> None:
        for n in range(3):
            async with lock:
                await queue.put(n)
            await asyncio.sleep(0)
        event.set()

    async def consumer() -> None:
        for _ in range(3):
            order.append(await queue.get())

    async with asyncio.TaskGroup() as group:
        group.create_task(producer())
        group.create_task(consumer())
    await event.wait()
    order += await asyncio.gather(asyncio.sleep(0, "a"), asyncio.shield(asyncio.ensure_future(asyncio.sleep(0, "b"))))
    async with asyncio.timeout(None):
        order.append(await asyncio.wait_for(asyncio.sleep(0, "c"), None))
    return order


def test_tools_of_asyncio() -> None:
    d = Driver(tools)
    d.task()
    assert d.value() == [0, 1, 2, "a", "b", "c"]


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        (lambda loop: loop.run_in_executor(None, print), "run the work in an activity"),
        (lambda loop: loop.call_soon_threadsafe(print), "send the workflow a signal"),
        (lambda loop: loop.create_connection(object, "localhost", 1), "network"),
        (lambda loop: loop.subprocess_exec(object, "ls"), "activity"),
        (lambda loop: loop.add_reader(0, print), "network or pipes"),
        (lambda loop: loop.add_signal_handler(2, print), "signal of its own"),
        (lambda loop: loop.run_until_complete(None), "use await"),
        (lambda loop: loop.set_debug(True), "changing the event loop"),
    ],
)
def test_refusals(call: Callable[[Any], Any], instead: str) -> None:
    @workflow.defn
    async def tries() -> str:
        try:
            call(asyncio.get_running_loop())
        except ForbiddenInWorkflowError as error:
            return str(error)
        return "nothing"

    with pytest.raises(WorkflowTaskError, match=instead):
        Driver(tries).task()


def test_calls_outside_of_a_workflow() -> None:
    with pytest.raises(NotInWorkflowError, match="only while a workflow runs"):
        workflow.now()
    assert not workflow.in_workflow()


def test_an_exception_in_a_callback_counts_like_the_main_function() -> None:
    def boom() -> None:
        raise KeyError("in a callback")

    @workflow.defn
    async def schedules() -> None:
        asyncio.get_running_loop().call_soon(boom)
        await workflow.wait_condition(lambda: False)

    with pytest.raises(WorkflowTaskError, match="in a callback"):
        Driver(schedules).task()


def test_tasks_hash_alike_in_every_replay() -> None:
    seen: list[list[int]] = []

    @workflow.defn
    async def hashes() -> None:
        tasks = [asyncio.ensure_future(asyncio.sleep(0)) for _ in range(5)]
        seen.append([hash(task) for task in tasks])
        await asyncio.gather(*tasks)

    d = Driver(hashes)
    d.task()
    d.replay()
    assert seen[0] == seen[1]
    assert len(set(seen[0])) == 5
