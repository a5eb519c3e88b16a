"""Signals from workflow to workflow: delivered once and in order, whatever is lost, and behind the sender's close."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from stepwell.api import limits
from stepwell.api.commands import CompleteWorkflowExecution, SignalExternalWorkflowExecution
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowIDConflictPolicy
from stepwell.api.events import (
    ExternalWorkflowExecutionSignaled,
    SignalExternalWorkflowExecutionFailed,
    WorkflowExecutionSignaled,
)
from stepwell.api.requests import TerminateWorkflowRequest

from stepwell_server.history.commit import ExecutionKey
from tests.support.engine import Driver, ShiftedClock, payload, running, types

TIMEOUT = 20.0
DONE = CompleteWorkflowExecution()
SENDER = ExecutionKey("default", "sender")
BRIEF: Any = {"stop_grace": timedelta(milliseconds=20)}


def ship(target: str = "target", name: str = "ship", run_id: str = "", **more: Any) -> SignalExternalWorkflowExecution:
    execution = WorkflowExecution(workflow_id=target, run_id=run_id)
    return SignalExternalWorkflowExecution(execution=execution, signal_name=name, input=payload(name), **more)


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not await condition():
            await asyncio.sleep(0.01)


async def begin(driver: Driver, *commands: Any, sender: str = "sender") -> str:
    """A run whose first workflow task has these commands."""
    run_id = await driver.start(sender)
    task = await driver.take()
    while task.execution.workflow_id != sender:  # the target's, which nobody works on
        task = await driver.take()
    answer = await driver.complete(task.task_token, *commands)
    assert answer.outcome == "ACCEPTED", answer.message
    return run_id


async def received(driver: Driver, workflow_id: str = "target", run_id: str = "") -> list[str]:
    """Of a run without an outstanding task, or one that is terminated: names of all signals in its history."""
    events = [event.attributes for event in await driver.history(workflow_id, run_id)]
    return [event.signal_name for event in events if isinstance(event, WorkflowExecutionSignaled)]


async def idle(driver: Driver, workflow_id: str = "target") -> None:
    """A run without a workflow task, so that what it receives is numbered at once."""
    await driver.start(workflow_id)
    answer = await driver.complete((await driver.take()).task_token)
    assert answer.outcome == "ACCEPTED", answer.message


async def terminate(driver: Driver, workflow_id: str) -> None:
    execution = WorkflowExecution(workflow_id=workflow_id)
    await driver.engine.terminate_workflow(TerminateWorkflowRequest(execution=execution, reason="the test is over"))


async def answered(driver: Driver, count: int = 1) -> list[Any]:
    """The answers in the sender's history, once there are so many."""
    kinds = (ExternalWorkflowExecutionSignaled, SignalExternalWorkflowExecutionFailed)
    found: list[Any] = []

    async def there() -> bool:
        task = await driver.poll_workflow(timedelta(milliseconds=5))
        if task is not None:
            await driver.complete(task.task_token)
        found[:] = [event.attributes for event in await driver.history("sender")]
        found[:] = [event for event in found if isinstance(event, kinds)]
        return len(found) >= count

    await until(there)
    return found


async def discharged(driver: Driver, key: ExecutionKey = SENDER) -> None:
    async def nothing_owed() -> bool:
        head = await driver.store.head(key)
        return head is not None and head.state.close_time is not None and not head.state.owed

    await until(nothing_owed)


# --- delivered ----------------------------------------------------------------------------------------------------


async def test_a_signal_reaches_its_target_and_the_sender_hears_of_it() -> None:
    async with running() as driver:
        await idle(driver)
        run_id = await driver.start("sender")
        task = await driver.take()
        driver.store.reset()
        await driver.complete(task.task_token, ship())
        task = await driver.take()
        other = await driver.take()
        assert {task.execution.workflow_id, other.execution.workflow_id} == {"sender", "target"}
        assert driver.store.writes["append"] == 3, "the command, the target's signal, the sender's answer"
        (signal,) = [
            event.attributes
            for event in await driver.history("target")
            if isinstance(event.attributes, WorkflowExecutionSignaled)
        ]
        assert (signal.signal_name, signal.input) == ("ship", payload("ship"))
        assert signal.external_workflow_execution == WorkflowExecution(workflow_id="sender", run_id=run_id)
        assert types(await driver.history("sender"))[-2:] == [
            "ExternalWorkflowExecutionSignaled",
            "WorkflowTaskScheduled",
        ]


async def test_the_order_of_signals_to_one_target_is_kept() -> None:
    async with running() as driver:
        await idle(driver)
        await begin(driver, *(ship(name=str(number)) for number in range(60)))
        await driver.signal("sender")
        task = await driver.take()
        while task.execution.workflow_id != "sender":
            task = await driver.take()
        await driver.complete(task.task_token, *(ship(name=str(number)) for number in range(60, 130)), DONE)
        await discharged(driver)
        await terminate(driver, "target")
        assert await received(driver) == [str(number) for number in range(130)]


async def test_two_that_signal_each_other_do_not_wait_for_each_other() -> None:
    async with running() as driver:
        tasks = {}
        for name in ("one", "two"):
            await driver.start(name)
            tasks[name] = await driver.take()
        await asyncio.gather(
            driver.complete(tasks["one"].task_token, *[ship("two", str(n)) for n in range(5)], DONE),
            driver.complete(tasks["two"].task_token, *[ship("one", str(n)) for n in range(5)]),
        )
        await discharged(driver, ExecutionKey("default", "one"))
        await terminate(driver, "two")
        assert await received(driver, "two") == [str(n) for n in range(5)]


# --- refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        (ship("nobody"), "EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND"),
        (ship("closed"), "EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND"),
        (ship("target", run_id="another-run"), "EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND"),
        (ship("sender"), "EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND"),
        (ship("target", child_workflow_only=True), "EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND"),
        (ship("target", namespace="elsewhere"), "NAMESPACE_NOT_FOUND"),
    ],
)
async def test_a_target_that_cannot_be_reached(command: SignalExternalWorkflowExecution, cause: str) -> None:
    async with running() as driver:
        await idle(driver)
        await driver.start("closed")
        await driver.finish(await driver.take())
        await begin(driver, command)
        (answer,) = await answered(driver)
        assert answer.cause == cause
        assert answer.workflow_execution == command.execution and answer.namespace == command.namespace
        assert await received(driver) == []


async def test_a_target_that_has_had_all_the_signals_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SIGNALS_PER_RUN", 1)
    async with running() as driver:
        await idle(driver)
        await begin(driver, ship(name="one"), ship(name="two"))
        one, two = await answered(driver, 2)
        assert isinstance(one, ExternalWorkflowExecutionSignaled)
        assert two.cause == "SIGNAL_COUNT_LIMIT_EXCEEDED"
        assert await received(driver) == ["one"]


# --- faults -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("closes", [False, True])
@pytest.mark.parametrize("dies_before", ["Signals", "ExternalDelivered", "Discharge"])
@pytest.mark.parametrize("forgotten", [False, True])
async def test_a_process_that_dies_between_two_writes(
    tmp_path: Path, closes: bool, dies_before: str, forgotten: bool
) -> None:
    """Recovery delivers what is missing, and nothing twice, even where the target has forgotten the request id."""
    path = tmp_path / "orders.db"
    async with running(path, **BRIEF) as driver:
        await idle(driver)
        driver.store.refuse_kinds.add(dies_before)
        await begin(driver, ship(), *([DONE] if closes else []))
        delivered = dies_before != "Signals"

        async def has_come_to_it() -> bool:
            return driver.store.counts["append"] >= 6 or await received(driver) == ["ship"]

        await until(has_come_to_it)
        if delivered and forgotten:
            for number in range(500):
                await driver.signal("target", f"other {number}")
    async with running(path) as driver:
        if closes:
            await discharged(driver)
        else:
            (answer,) = await answered(driver)
            assert isinstance(answer, ExternalWorkflowExecutionSignaled)
        await terminate(driver, "target")
        assert (await received(driver)).count("ship") == 1


async def test_a_repeat_finds_its_signal_in_an_earlier_run_of_the_target(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    async with running(path, **BRIEF) as driver:
        await idle(driver)
        driver.store.refuse_kinds.add("Discharge")
        await begin(driver, ship(), DONE)

        async def there() -> bool:
            return await received(driver) == ["ship"]

        await until(there)
        await terminate(driver, "target")
        await idle(driver)
        for number in range(500):
            await driver.signal("target", f"other {number}")
    async with running(path) as driver:
        await discharged(driver)
        await terminate(driver, "target")
        assert "ship" not in await received(driver)


@pytest.mark.parametrize("kind", ["Signals", "ExternalDelivered"])
async def test_an_answer_of_the_store_that_is_lost(kind: str) -> None:
    """At the target, then at the sender: both find what they have written."""
    async with running() as driver:
        await idle(driver)
        driver.store.lose_kinds.add(kind)
        await begin(driver, ship())
        await answered(driver)

        async def lost() -> bool:
            return not driver.store.lose_kinds

        await until(lost)
        await terminate(driver, "target")
        assert await received(driver) == ["ship"]
        assert [type(event) for event in await answered(driver)] == [ExternalWorkflowExecutionSignaled]


async def test_the_deadline_of_a_closed_run_delivers_what_it_owes() -> None:
    clock = ShiftedClock()
    async with running(clock=clock, **BRIEF) as driver:
        await idle(driver)
        driver.store.refuse_kinds.add("Signals")
        await begin(driver, ship(), DONE)
        await until(lambda: tried(driver, 4))
        driver.store.refuse_kinds.clear()
        head = await driver.store.head(SENDER)
        assert head is not None and head.expires_at is None and len(head.state.owed) == 1
        clock.shift = timedelta(seconds=40)
        await discharged(driver)
        head = await driver.store.head(SENDER)
        assert head is not None and head.kind == "Discharge" and head.owes is False and head.expires_at is not None
        assert "FireDeadline" in [commit.kind for commit in driver.store.commits]
        await terminate(driver, "target")
        assert await received(driver) == ["ship"]


async def tried(driver: Driver, times: int) -> bool:
    """The runner has given up for now."""
    refused = driver.store.counts["append"] - len(driver.store.commits)
    return refused >= times


async def test_the_next_run_of_the_sender_delivers_what_the_one_before_owes(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    async with running(path, **BRIEF) as driver:
        await idle(driver)
        driver.store.refuse_kinds.add("Signals")
        await begin(driver, ship(), DONE)
        await driver.start("sender")
    async with running(path) as driver:

        async def nothing_owed() -> bool:
            head = await driver.store.head(SENDER)
            return head is not None and not head.state.owed

        await until(nothing_owed)
        head = await driver.store.head(SENDER)
        assert head is not None and head.kind == "Discharge" and head.state.close_time is None
        await terminate(driver, "target")
        assert await received(driver) == ["ship"]


async def test_a_closed_run_that_owes_is_described_and_its_result_read() -> None:
    async with running(**BRIEF) as driver:
        driver.store.refuse_kinds.add("Discharge")
        await begin(driver, ship("nobody"), DONE)
        assert (await driver.result("sender")).event_type == "WorkflowExecutionCompleted"
        driver.store.refuse_kinds.clear()
        await discharged(driver)
        assert (await driver.result("sender")).event_type == "WorkflowExecutionCompleted"
        assert types(await driver.history("sender"))[-1] == "WorkflowExecutionCompleted"
        assert (await driver.describe("sender")).info.status == "COMPLETED"


async def test_many_answers_share_commits_and_spare_the_buffer() -> None:
    """With a workflow task outstanding, answers wait for room rather than fail the task."""
    async with running() as driver:
        await begin(driver, *(ship(f"nobody {number}") for number in range(300)))
        await driver.signal("sender")
        answers = await answered(driver, 300)
        assert len(answers) == 300
        history = types(await driver.history("sender"))
        assert "WorkflowTaskFailed" not in history
        kinds = [commit.kind for commit in driver.store.commits]
        assert kinds.count("ExternalDelivered") <= 60


async def test_a_start_over_the_sender_carries_on_what_it_owes(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    async with running(path, **BRIEF) as driver:
        await idle(driver)
        driver.store.refuse_kinds.add("Signals")
        await begin(driver, ship())
        await driver.start("sender", workflow_id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING)
    async with running(path) as driver:

        async def nothing_owed() -> bool:
            head = await driver.store.head(SENDER)
            return head is not None and not head.state.owed

        await until(nothing_owed)
        await terminate(driver, "target")
        assert await received(driver) == ["ship"]


async def test_a_lost_answer_is_looked_for_behind_many_others() -> None:
    """The write landed, the next try comes in a moment, and by then the target's ring has forgotten the request id."""
    async with running() as driver:
        await idle(driver)
        driver.store.lose_kinds.add("Signals")
        await begin(driver, ship())

        async def is_there() -> bool:
            return await received(driver) == ["ship"]

        await until(is_there)
        await asyncio.gather(*(driver.signal("target", f"other {number}") for number in range(80)))
        await answered(driver)
        await terminate(driver, "target")
        assert (await received(driver)).count("ship") == 1
