"""Runs that wait for the end of a workflow which is not their child: told once, whatever is lost."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from stepwell.api import limits
from stepwell.api.commands import ContinueAsNewWorkflowExecution, StartChildWorkflowExecution
from stepwell.api.enums import StartChildWorkflowExecutionFailedCause, WorkflowIDConflictPolicy
from stepwell.api.events import StartChildWorkflowExecutionFailed

from tests.support.crossing import BRIEF, DONE, KID, PARENT, begin, drive, kid, settled, take, terminate, turn, until
from tests.support.engine import QUEUE, Driver, running, types


def watch(workflow_id: str = "kid") -> StartChildWorkflowExecution:
    return StartChildWorkflowExecution(workflow_id=workflow_id, workflow_type="", task_queue="", watch_only=True)


ATTACH = kid(workflow_id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING)


async def waiters(driver: Driver) -> int:
    head = await driver.store.head(KID)
    assert head is not None
    return len(head.state.waiters)


@pytest.mark.parametrize("command", [watch(), ATTACH], ids=["watch", "attach"])
async def test_it_costs_one_commit_of_what_is_watched_and_one_notice(command: Any) -> None:
    async with running() as driver:
        await driver.start("kid")
        task = await take(driver, "kid")
        await begin(driver, command)
        await drive(driver, "parent", "ChildWorkflowExecutionStarted")
        assert await waiters(driver) == 1
        driver.store.reset()
        await driver.complete(task.task_token, DONE)
        await drive(driver, "parent", "ChildWorkflowExecutionCompleted")
        await settled(driver, KID)
        assert [c.kind for c in driver.store.commits if c.key == KID] == ["CompleteWorkflowTask", "Discharge"]
        assert types(await driver.history("kid"))[-1] == "WorkflowExecutionCompleted"


@pytest.mark.parametrize("command", [watch(), ATTACH], ids=["watch", "attach"])
@pytest.mark.parametrize("dies_before", ["Watch", "Start", "ExternalDelivered", "Discharge"])
async def test_a_process_that_dies_in_between(tmp_path: Path, command: Any, dies_before: str) -> None:
    path = tmp_path / "orders.db"
    async with running(path, **BRIEF) as driver:
        await driver.start("kid")
        task = await take(driver, "kid")
        await driver.start("parent")
        parent_task = await take(driver, "parent")
        driver.store.refuse_kinds.add(dies_before)
        await driver.complete(parent_task.task_token, command)
        await asyncio.sleep(0.05)
        await driver.complete(task.task_token, DONE)
        await asyncio.sleep(0.05)
    async with running(path) as driver:
        if command is ATTACH and dies_before == "Start":
            await turn(driver, "kid", DONE)  # it had ended before: this is another one
        await drive(driver, "parent", "ChildWorkflowExecutionCompleted")
        await settled(driver, KID)
        kinds = types(await driver.history("parent"))
        assert kinds.count("ChildWorkflowExecutionStarted") == kinds.count("ChildWorkflowExecutionCompleted") == 1


async def test_one_that_waits_no_more_leaves_its_place() -> None:
    async with running() as driver:
        await driver.start("kid")
        await begin(driver, watch())
        await drive(driver, "parent", "ChildWorkflowExecutionStarted")
        await terminate(driver, "parent")
        await settled(driver, PARENT)
        assert await waiters(driver) == 0


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
async def test_a_waiter_that_is_reset_waits_again(closed: bool) -> None:
    """One that was closed has left its place; one that was open keeps it, and takes no second one."""
    async with running() as driver:
        await driver.start("kid")
        task = await take(driver, "kid")
        await begin(driver, watch())
        await drive(driver, "parent", "ChildWorkflowExecutionStarted")
        await driver.signal("parent")
        await turn(driver, "parent")
        if closed:
            await terminate(driver, "parent")
            await settled(driver, PARENT)
            assert await waiters(driver) == 0
        for _ in range(2):
            await driver.reset(workflow_id="parent")

        async def waits() -> bool:
            return await waiters(driver) == 1

        await until(waits)
        await driver.complete(task.task_token, DONE)
        await drive(driver, "parent", "ChildWorkflowExecutionCompleted")
        await settled(driver, KID)


async def test_a_waiter_that_closes_before_it_is_confirmed_leaves_its_place(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    async with running(path, **BRIEF) as driver:
        await driver.start("kid")
        await driver.start("parent")
        task = await take(driver, "parent")
        driver.store.refuse_kinds.add("ExternalDelivered")
        await driver.complete(task.task_token, watch())

        async def is_watched() -> bool:
            return await waiters(driver) == 1

        await until(is_watched)
        await terminate(driver, "parent")
    async with running(path) as driver:
        await settled(driver, PARENT)
        assert await waiters(driver) == 0


async def test_waiters_pass_on_within_a_chain_and_the_limit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_WAITERS", 1)
    async with running() as driver:
        await driver.start("kid")
        task = await take(driver, "kid")
        await begin(driver, watch(), watch())
        await drive(driver, "parent", "StartChildWorkflowExecutionFailed")
        (refused,) = [
            event.attributes
            for event in await driver.history("parent")
            if isinstance(event.attributes, StartChildWorkflowExecutionFailed)
        ]
        assert refused.cause is StartChildWorkflowExecutionFailedCause.WAITERS_LIMIT_EXCEEDED
        again = ContinueAsNewWorkflowExecution(workflow_type="order", task_queue=QUEUE)
        answer = await driver.complete(task.task_token, again)
        assert answer.outcome == "ACCEPTED" and await waiters(driver) == 1
        await turn(driver, "kid", DONE)
        await drive(driver, "parent", "ChildWorkflowExecutionCompleted")


async def test_the_next_chain_of_the_id_is_not_waited_for() -> None:
    async with running() as driver:
        await driver.start("kid")
        await begin(driver, watch())
        await drive(driver, "parent", "ChildWorkflowExecutionStarted")
        await driver.start("kid", workflow_id_conflict_policy="TERMINATE_EXISTING")
        await drive(driver, "parent", "ChildWorkflowExecutionTerminated")
        await settled(driver, KID)
        assert await waiters(driver) == 0


async def test_a_child_that_attaches_to_its_parent_and_itself() -> None:
    """Who waits for itself would wait for ever."""
    async with running() as driver:
        await begin(driver, kid("parent", workflow_id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING))
        await drive(driver, "parent", "StartChildWorkflowExecutionFailed")
