"""Resets across a chain of runs, and of runs that have asked something of other workflows."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from stepwell.api.commands import ContinueAsNewWorkflowExecution, SignalExternalWorkflowExecution, StartTimer
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import ResetType
from stepwell.api.events import WorkflowExecutionSignaled, WorkflowTaskFailed
from stepwell.api.requests import WorkerInfo

from tests.support.engine import QUEUE, Driver, payload, running, types

LATER = timedelta(hours=1)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await condition():
            await asyncio.sleep(0.01)


async def reset_of(driver: Driver, run_id: str) -> tuple[str, int]:
    """The base run that a reset run goes on from, and its last event that was kept."""
    events = await driver.history(run_id=run_id)
    failed = next(e for e in events if isinstance(e.attributes, WorkflowTaskFailed) and e.attributes.new_run_id)
    assert isinstance(failed.attributes, WorkflowTaskFailed)
    return failed.attributes.base_run_id, failed.event_id - 1


async def chain(driver: Driver, *builds: str) -> list[str]:
    """Runs that continue as new, each with one workflow task by a worker of that build; the last one stays open."""
    runs = [await driver.start()]
    for number, build in enumerate(builds, 1):
        driver.worker = WorkerInfo(identity="worker", worker_key=build, build_id=build)
        task = await driver.take()
        last = number == len(builds)
        again = ContinueAsNewWorkflowExecution(workflow_type="order", task_queue=QUEUE, input=payload(build))
        await driver.complete(task.task_token, *([] if last else [again]))
        if not last:
            runs.append((await driver.describe()).info.execution.run_id)
    return runs


async def test_to_the_last_task_of_the_run_that_continued_as_new() -> None:
    async with running() as driver:
        runs = await chain(driver, "b1", "b1", "b1")
        made = await driver.reset(reset_type=ResetType.LAST_CONTINUED_AS_NEW)
        assert await reset_of(driver, made) == (runs[1], 3)
        described = await driver.describe()
        assert (described.info.execution.run_id, described.info.first_run_id) == (made, runs[0])


@pytest.mark.parametrize(
    ("builds", "only", "base"),
    [
        (("good", "bad", "bad", "bad"), False, 1),
        (("good", "bad", "bad", "bad"), True, 3),
        (("bad", "good", "bad", "bad"), False, 2),
        (("good", "good", "bad", "good"), False, 2),
    ],
    ids=["the first of all", "of this run only", "not behind a good one", "this run has none"],
)
async def test_to_the_first_task_of_a_build(builds: tuple[str, ...], only: bool, base: int) -> None:
    """Through the chain as far back as its runs were worked on by the build."""
    async with running() as driver:
        runs = await chain(driver, *builds)
        made = await driver.reset(reset_type=ResetType.BUILD_ID, build_id="bad", current_run_only=only)
        assert await reset_of(driver, made) == (runs[base], 3)


async def test_messages_of_later_runs_of_the_chain_come_in_again_in_their_order() -> None:
    async with running() as driver:
        first = await driver.start()
        again = ContinueAsNewWorkflowExecution(workflow_type="order", task_queue=QUEUE)
        await driver.signal(name="a")
        task = await driver.take()
        await driver.signal(name="unseen")  # goes to the next run
        await driver.complete(task.task_token, again)
        await driver.signal(name="c")
        task = await driver.take()
        await driver.complete(task.task_token, again)
        await driver.signal(name="d")
        made = await driver.reset(run_id=first, reset_type=ResetType.FIRST_WORKFLOW_TASK)
        events = [event.attributes for event in await driver.history(run_id=made)]
        names = [event.signal_name for event in events if isinstance(event, WorkflowExecutionSignaled)]
        assert names == ["a", "unseen", "c", "d"]


async def asks(driver: Driver) -> None:
    """``order-1`` has sent a signal to ``target``, and has done another workflow task since."""
    await driver.start("target")
    await driver.complete((await driver.take()).task_token)
    await driver.start()
    ship = SignalExternalWorkflowExecution(execution=WorkflowExecution(workflow_id="target"), signal_name="ship")
    task = await driver.take()
    await driver.complete(task.task_token, ship, StartTimer(timer_id="1", start_to_fire_timeout=LATER))


async def ships(driver: Driver) -> int:
    events = [event.attributes for event in await driver.history("target")]
    return sum(isinstance(event, WorkflowExecutionSignaled) for event in events)


@pytest.mark.parametrize("answered", [True, False])
async def test_a_signal_to_another_workflow_is_not_sent_twice(answered: bool) -> None:
    """The point is behind its sending: whether its answer was recorded behind that or not, the new run learns of it."""
    async with running() as driver:
        if not answered:
            driver.store.refuse_kinds.add("ExternalDelivered")
        await asks(driver)

        async def sent() -> bool:
            return await ships(driver) == 1

        await until(sent)
        if answered:
            await until_has(driver, "ExternalWorkflowExecutionSignaled")
        else:
            await driver.signal(name="wake")
        task = await driver.take()
        while task.execution.workflow_id == "target":
            task = await driver.take()
        await driver.complete(task.task_token)
        driver.store.refuse_kinds.clear()
        initiated = next(
            event.event_id
            for event in await driver.history()
            if event.event_type == "SignalExternalWorkflowExecutionInitiated"
        )
        ends = [event.event_id for event in await driver.history() if event.event_type == "WorkflowTaskCompleted"]
        assert ends[0] < initiated < ends[1]
        made = await driver.reset(ends[1])
        assert await ships(driver) == 1
        await until_told(driver, made)
        assert await ships(driver) == 1
        assert driver.store.commits[-1].state.owed == ()


async def until_has(driver: Driver, kind: str) -> None:
    async def found() -> bool:
        return kind in types(await driver.history())

    await until(found)


async def until_told(driver: Driver, run_id: str) -> None:
    """The new run has the answer, numbered or in its buffer."""

    async def told() -> bool:
        described = await driver.describe()
        assert described.info.execution.run_id == run_id
        known = types(await driver.history(run_id=run_id))
        return "ExternalWorkflowExecutionSignaled" in known or described.buffered_events > 0

    await until(told)
