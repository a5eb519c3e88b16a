"""``workflow.wait`` and ``workflow.as_completed``: the same order everywhere (PM-08, WC-22)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from stepwell import workflow
from stepwell.replay.errors import WorkflowTaskError

from tests.support.histories import Driver

SHORT = timedelta(seconds=10)


def start(n: int) -> "workflow.ActivityHandle[Any]":
    return workflow.start_activity("echo", n, start_to_close_timeout=SHORT)


@workflow.defn
async def first_completed(count: int) -> list[int]:
    pending: Any = [start(n) for n in range(count)]
    order: list[int] = []
    while pending:
        done, pending = await workflow.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        order += [handle.result() for handle in done]
    return order


@workflow.defn
async def in_turn(count: int) -> list[int]:
    return [await ended for ended in workflow.as_completed([start(n) for n in range(count)])]


@pytest.mark.parametrize("definition", [first_completed, in_turn])
def test_order_of_completion(definition: Any) -> None:
    d = Driver(definition, 4, cache=False)
    d.task()
    for batch in ([2], [3, 0], [1]):
        for n in batch:
            d.history.activity_completed(str(n + 1), n)
        d.task()
    expected = [2, 0, 3, 1] if definition is first_completed else [2, 3, 0, 1]
    assert d.value() == expected
    d.replay()


def test_wait_for_all_and_for_the_first_exception() -> None:
    @workflow.defn
    async def waits() -> list[int]:
        done, pending = await workflow.wait([start(1), start(2)], return_when=asyncio.FIRST_EXCEPTION)
        rest = await workflow.wait(pending)
        return [len(done), len(pending), len(rest[0])]

    d = Driver(waits)
    d.task()
    d.history.activity_failed("1", ValueError("x"))
    d.task()
    d.history.activity_completed("2", 2)
    d.task()
    assert d.value() == [1, 1, 1]


def test_timeouts() -> None:
    @workflow.defn
    async def waits() -> list[Any]:
        done, pending = await workflow.wait([start(1)], timeout=1)
        seen: list[Any] = [len(done), len(pending)]
        for ended in workflow.as_completed(pending, timeout=1):
            try:
                await ended
            except TimeoutError:
                seen.append("late")
        return seen

    d = Driver(waits, cache=False)
    d.task()
    d.history.timer_fired("1")
    d.task()
    d.history.timer_fired("2")
    d.task()
    assert d.value() == [0, 1, "late"]
    d.replay()


@pytest.mark.parametrize("name", ["wait", "as_completed"])
def test_the_standard_ones_are_refused(name: str) -> None:
    @workflow.defn
    async def uses() -> None:
        getattr(asyncio, name)([start(1)])

    with pytest.raises(WorkflowTaskError, match=rf"asyncio.{name}\(\).*use workflow.{name}\(\)"):
        Driver(uses).task()


def test_sets_are_refused() -> None:
    @workflow.defn
    async def uses() -> None:
        await workflow.wait({start(1)})

    with pytest.raises(WorkflowTaskError, match="the order of a set differs"):
        Driver(uses).task()


def test_a_failing_task_group_cancels_in_the_same_order_everywhere() -> None:
    @workflow.defn
    async def group() -> None:
        async with asyncio.TaskGroup() as tasks:
            for n in range(20):
                tasks.create_task(_call(n))

    d = Driver(group)
    d.task()
    d.history.activity_failed("7", ValueError("x"))
    d.task()
    for _ in range(5):
        d.replay()


async def _call(n: int) -> Any:
    return await start(n)
