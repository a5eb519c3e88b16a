"""Changed code against recorded histories, open and closed (VE-19, WC-11, WC-22)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from stepwell import workflow
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.replay.errors import WorkflowTaskError

from tests.support.histories import Driver

SHORT = timedelta(seconds=10)


async def call(name: str, argument: Any = None, seconds: float = 10) -> Any:
    return await workflow.execute_activity(name, argument, start_to_close_timeout=timedelta(seconds=seconds))


@workflow.defn(name="job")
async def recorded() -> str:
    await call("A")
    await workflow.sleep(60)
    await call("B")
    return "done"


def record(closed: bool) -> Driver:
    d = Driver(recorded)
    d.task()
    d.history.activity_completed("A", None)
    d.task()
    if closed:
        d.history.timer_fired()
        d.task()
        d.history.activity_completed("B", None)
        d.task()
    return d


@workflow.defn(name="job")
async def renamed() -> str:
    await call("A2")
    await workflow.sleep(60)
    await call("B")
    return "done"


@workflow.defn(name="job")
async def swapped() -> str:
    await call("B")
    await workflow.sleep(60)
    await call("A")
    return "done"


@workflow.defn(name="job")
async def no_sleep() -> str:
    await call("A")
    await call("nap")
    await call("B")
    return "done"


@workflow.defn(name="job")
async def last_removed() -> str:
    await call("A")
    await workflow.sleep(60)
    return "done"


@workflow.defn(name="job")
async def one_more() -> str:
    await call("A")
    await workflow.sleep(60)
    await call("B")
    await call("C")
    return "done"


@workflow.defn(name="job")
async def more_at_once() -> str:
    workflow.start_activity("Z", start_to_close_timeout=SHORT)
    return await recorded()


@workflow.defn(name="job")
async def harmless() -> str:
    workflow.logger.info("extra")
    await call("A", {"other": "argument"}, seconds=99)
    await workflow.sleep(1)
    await call("B", 2)
    return "another result"


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (renamed, r"event 5 recorded ActivityTaskScheduled \(activity_type 'A'.*asked for .*activity_type 'A2'"),
        (swapped, r"event 5 recorded ActivityTaskScheduled \(activity_type 'A'.*asked for .*activity_type 'B'"),
        (no_sleep, r"event 11 recorded TimerStarted \(timer_id '1'\).*asked for ScheduleActivityTask .*'nap'"),
        (more_at_once, r"event 5 recorded .*'A', activity_id '1'.*asked for .*activity_type 'Z'"),
    ],
)
def test_structural_changes_are_reported(closed: bool, changed: Callable[..., Any], message: str) -> None:
    d = record(closed)
    with pytest.raises(WorkflowTaskError, match=message) as caught:
        d.replay(changed)
    assert caught.value.failed_cause is WorkflowTaskFailedCause.NON_DETERMINISTIC_ERROR


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            last_removed,
            r"event 16 recorded ActivityTaskScheduled \(activity_type 'B'.*asked for CompleteWorkflowExecution",
        ),
        (one_more, r"event 22 recorded WorkflowExecutionCompleted.*asked for ScheduleActivityTask \(activity_type 'C'"),
    ],
)
def test_changes_at_the_end_of_a_closed_run_are_reported(changed: Callable[..., Any], message: str) -> None:
    with pytest.raises(WorkflowTaskError, match=message):
        record(closed=True).replay(changed)
    record(closed=False).replay(changed)


@pytest.mark.parametrize("closed", [False, True])
def test_harmless_changes_pass(closed: bool) -> None:
    record(closed).replay(harmless)


def test_code_that_asks_for_less() -> None:
    @workflow.defn(name="job")
    async def waits() -> str:
        await workflow.wait_condition(lambda: False)
        return ""

    with pytest.raises(WorkflowTaskError, match="asked for nothing more in this workflow task"):
        record(closed=True).replay(waits)


def test_code_that_asks_for_more_than_an_empty_task() -> None:
    @workflow.defn(name="idle")
    async def idle(active: bool) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.defn(name="idle")
    async def busy(active: bool) -> None:
        await call("A")

    d = Driver(idle, True)
    d.task()
    with pytest.raises(
        WorkflowTaskError, match=r"after event 4 nothing more was recorded.*asked for ScheduleActivityTask"
    ):
        d.replay(busy)


def test_the_same_arguments_in_another_order_are_reported() -> None:
    async def fan(names: list[str]) -> None:
        for name in names:
            workflow.start_activity("pack", name, start_to_close_timeout=SHORT)
        await workflow.wait_condition(lambda: False)

    @workflow.defn(name="fan")
    async def one_order() -> None:
        await fan(["a", "b", "c"])

    @workflow.defn(name="fan")
    async def another_order() -> None:
        await fan(["b", "a", "c"])

    @workflow.defn(name="fan")
    async def other_arguments() -> None:
        await fan(["x", "y", "z"])

    d = Driver(one_order)
    d.task()
    with pytest.raises(
        WorkflowTaskError, match="from event 5 on, activities 'pack' were recorded with the same arguments"
    ):
        d.replay(another_order)
    d.replay(other_arguments)
