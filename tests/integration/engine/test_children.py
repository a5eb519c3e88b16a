"""Children between two logs: each start, end and parent-close policy once, whatever is lost, never at a stranger."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from stepwell.api.common import Priority, WorkflowExecution
from stepwell.api.enums import (
    ParentClosePolicy,
    ResetType,
    StartChildWorkflowExecutionFailedCause,
    WorkflowExecutionStatus,
    WorkflowIDReusePolicy,
)
from stepwell.api.errors import NotFound
from stepwell.api.events import (
    ChildWorkflowExecutionCompleted,
    StartChildWorkflowExecutionFailed,
    WorkflowExecutionStarted,
)

from stepwell_server.history import priorities
from stepwell_server.history.answers import Discharge, Discharged
from stepwell_server.history.state import OwedNotice
from tests.support.crossing import (
    BRIEF,
    DONE,
    KID,
    PARENT,
    begin,
    drive,
    kid,
    settled,
    status,
    take,
    terminate,
    turn,
    until,
)
from tests.support.engine import Driver, ShiftedClock, payload, running, types

# --- the way of a child -------------------------------------------------------------------------------------------


async def test_a_child_costs_what_the_budget_says() -> None:
    """One commit for its start, two at the parent, one discharge (plan, lane B)."""
    async with running() as driver:
        parent_run_id = await driver.start("parent")
        task = await take(driver, "parent")
        driver.store.reset()
        await driver.complete(task.task_token, kid(memo={"note": payload("fragile")[0]}))
        shown = await turn(driver, "kid", DONE)
        assert shown[0] == "WorkflowExecutionStarted"
        await drive(driver, "parent", "ChildWorkflowExecutionCompleted")
        await settled(driver, KID)
        started = (await driver.history("kid"))[0].attributes
        assert isinstance(started, WorkflowExecutionStarted)
        link = WorkflowExecution(workflow_id="parent", run_id=parent_run_id)
        assert started.parent_workflow_execution == started.root_workflow_execution == link
        assert (started.parent_initiated_event_id, started.input) == (5, payload("box"))
        assert started.memo == {"note": payload("fragile")[0]}
        kinds = [commit.kind for commit in driver.store.commits if commit.key == KID]
        assert kinds == ["Start", "CompleteWorkflowTask", "Discharge"]
        kinds = [commit.kind for commit in driver.store.commits if commit.key == PARENT]
        assert kinds.count("ExternalDelivered") == 2
        ends = [event.attributes for event in await driver.history("parent")]
        (end,) = [event for event in ends if isinstance(event, ChildWorkflowExecutionCompleted)]
        assert end.result == payload("done") and end.workflow_execution.workflow_id == "kid"


@pytest.mark.parametrize("reuse", list(WorkflowIDReusePolicy))
async def test_an_id_that_is_taken(reuse: WorkflowIDReusePolicy) -> None:
    async with running() as driver:
        await driver.start("kid")
        await begin(driver, kid(workflow_id_reuse_policy=reuse))
        await drive(driver, "parent", "StartChildWorkflowExecutionFailed")
        await terminate(driver, "parent")
        await settled(driver, PARENT)
        assert await status(driver) is WorkflowExecutionStatus.RUNNING, "it never became a child"


async def test_an_id_that_was_used_before_and_must_not_be_again() -> None:
    async with running() as driver:
        await driver.start("kid")
        await driver.finish(await take(driver, "kid"))
        await begin(driver, kid(workflow_id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE))
        await drive(driver, "parent", "StartChildWorkflowExecutionFailed")


async def test_one_that_its_target_refuses_for_ever_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its parent was allowed to ask for it, by an engine with other limits."""
    async with running(tmp_path / "orders.db", **BRIEF) as driver:
        await driver.start("parent")
        task = await take(driver, "parent")
        driver.store.refuse_kinds.add("Start")
        await driver.complete(task.task_token, kid(priority=Priority(fairness_key="tenant")))
    monkeypatch.setattr(priorities, "MAX_FAIRNESS_KEY_BYTES", 3)
    async with running(tmp_path / "orders.db") as driver:
        await drive(driver, "parent", "StartChildWorkflowExecutionFailed")
        (refused,) = [
            event.attributes
            for event in await driver.history("parent")
            if isinstance(event.attributes, StartChildWorkflowExecutionFailed)
        ]
        assert refused.cause is StartChildWorkflowExecutionFailedCause.INVALID_ARGUMENT
        assert "fairness_key has 6 bytes" in caplog.text
        with pytest.raises(NotFound):
            await driver.describe("kid")


async def test_a_namespace_that_is_not_there() -> None:
    async with running() as driver:
        await begin(driver, kid(namespace="elsewhere"))
        await drive(driver, "parent", "StartChildWorkflowExecutionFailed")


async def test_a_child_of_itself_is_refused() -> None:
    async with running() as driver:
        await begin(driver, kid("parent"))
        await drive(driver, "parent", "StartChildWorkflowExecutionFailed")


# --- faults of the start ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dies_before", ["Start", "ExternalDelivered"])
@pytest.mark.parametrize("closes", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize("forgotten", [False, True], ids=["known", "forgotten"])
async def test_a_process_that_dies_while_a_child_starts(
    tmp_path: Path, dies_before: str, closes: bool, forgotten: bool
) -> None:
    """It has one run, and the parent hears of it once; also where later runs of its id have been started."""
    path = tmp_path / "orders.db"
    policy = ParentClosePolicy.ABANDON
    async with running(path, **BRIEF) as driver:
        await driver.start("parent")
        task = await take(driver, "parent")
        driver.store.refuse_kinds.add(dies_before)
        if dies_before == "ExternalDelivered":
            driver.store.refuse_kinds.add("Discharge")
        await driver.complete(task.task_token, kid(parent_close_policy=policy), *([DONE] if closes else []))
        if dies_before == "ExternalDelivered":
            await turn(driver, "kid", DONE)
            if forgotten:
                driver.store.refuse_kinds.clear()
                driver.store.refuse_kinds |= {"ExternalDelivered", "Discharge"}
                for _ in range(17):
                    await driver.start("kid")
                    await terminate(driver, "kid")
        else:
            await asyncio.sleep(0.05)
    async with running(path) as driver:
        if dies_before == "Start":
            await turn(driver, "kid", DONE)
        if not closes:
            await drive(driver, "parent", "ChildWorkflowExecutionCompleted")
            kinds = types(await driver.history("parent"))
            for once in ("ChildWorkflowExecutionStarted", "ChildWorkflowExecutionCompleted"):
                assert kinds.count(once) == 1
        await settled(driver, PARENT)
        await settled(driver, KID)
        assert await status(driver) is not WorkflowExecutionStatus.RUNNING, "it was started once"


@pytest.mark.parametrize("kind", ["Start", "ExternalDelivered"])
async def test_an_answer_of_the_store_that_is_lost(kind: str) -> None:
    async with running() as driver:
        await driver.start("parent")
        task = await take(driver, "parent")
        driver.store.lose_kinds.add(kind)
        await driver.complete(task.task_token, kid())
        await turn(driver, "kid", DONE)
        await drive(driver, "parent", "ChildWorkflowExecutionCompleted")
        kinds = types(await driver.history("parent"))
        assert kinds.count("ChildWorkflowExecutionStarted") == 1
        assert not driver.store.lose_kinds


async def test_a_start_that_was_lost_is_made_by_the_deadline() -> None:
    clock = ShiftedClock()
    async with running(clock=clock, **BRIEF) as driver:
        await driver.start("parent")
        task = await take(driver, "parent")
        driver.store.refuse_kinds.add("Start")
        await driver.complete(task.task_token, kid())
        before = len(driver.store.commits)
        await until(lambda: _refused(driver, before))
        driver.store.refuse_kinds.clear()
        clock.shift = timedelta(seconds=40)
        await turn(driver, "kid", DONE)
        await drive(driver, "parent", "ChildWorkflowExecutionCompleted")


async def _refused(driver: Driver, before: int) -> bool:
    """The runner has given up for now."""
    return driver.store.counts["append"] - len(driver.store.commits) >= 4


# --- faults of the end --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dies_before", ["ExternalDelivered", "Discharge"])
async def test_a_process_that_dies_while_a_child_ends(tmp_path: Path, dies_before: str) -> None:
    path = tmp_path / "orders.db"
    async with running(path, **BRIEF) as driver:
        await begin(driver, kid())
        await drive(driver, "parent", "ChildWorkflowExecutionStarted")
        task = await take(driver, "kid")
        driver.store.refuse_kinds.add(dies_before)
        await driver.finish(task)
        if dies_before == "Discharge":
            await drive(driver, "parent", "ChildWorkflowExecutionCompleted")
        else:
            await asyncio.sleep(0.05)
    async with running(path) as driver:
        await drive(driver, "parent", "ChildWorkflowExecutionCompleted")
        await settled(driver, KID)
        assert types(await driver.history("parent")).count("ChildWorkflowExecutionCompleted") == 1


async def test_the_next_run_of_a_childs_id_tells_how_the_child_ended(tmp_path: Path) -> None:
    """A start over the open child closes it and takes on what it owes."""
    path = tmp_path / "orders.db"
    async with running(path, **BRIEF) as driver:
        await begin(driver, kid())
        await drive(driver, "parent", "ChildWorkflowExecutionStarted")
        driver.store.refuse_kinds.add("ExternalDelivered")
        await driver.start("kid", workflow_id_conflict_policy="TERMINATE_EXISTING")
    async with running(path) as driver:
        await drive(driver, "parent", "ChildWorkflowExecutionTerminated")
        await settled(driver, KID)
        await terminate(driver, "parent")
        await settled(driver, PARENT)
        assert await status(driver) is WorkflowExecutionStatus.RUNNING, "a stranger has the id now"


async def test_a_parent_looks_after_a_child_whose_end_it_was_not_told() -> None:
    clock = ShiftedClock()
    async with running(clock=clock) as driver:
        await begin(driver, kid())
        await drive(driver, "parent", "ChildWorkflowExecutionStarted")
        await drive(driver, "kid", "WorkflowTaskCompleted")
        driver.store.refuse_kinds.add("ExternalDelivered")
        await terminate(driver, "kid")
        head = await driver.store.head(KID)
        assert head is not None
        (owed,) = head.state.owed
        assert isinstance(owed, OwedNotice)
        done = Discharged(run_id=owed.run_id, initiated_event_id=owed.initiated_event_id, waiter=owed.waiter)
        await driver.engine._executions.transact(KID, Discharge(deliveries=(done,)))  # as if the debt had been lost
        driver.store.refuse_kinds.clear()
        clock.shift = timedelta(days=1, minutes=1)
        await drive(driver, "parent", "ChildWorkflowExecutionTerminated")


async def test_a_parent_that_is_closed_hears_nothing_and_nothing_is_left() -> None:
    async with running() as driver:
        await begin(driver, kid(parent_close_policy=ParentClosePolicy.ABANDON))
        await drive(driver, "parent", "ChildWorkflowExecutionStarted")
        await terminate(driver, "parent")
        await turn(driver, "kid", DONE)
        await settled(driver, KID)
        await settled(driver, PARENT)
        assert types(await driver.history("parent"))[-1] == "WorkflowExecutionTerminated"


async def test_a_child_that_ended_while_its_parent_was_closed_is_told_of_as_it_ended() -> None:
    """A reset lets the parent go on; a stranger has the child's id by then."""
    async with running() as driver:
        await begin(driver, kid(parent_close_policy=ParentClosePolicy.ABANDON))
        await drive(driver, "parent", "ChildWorkflowExecutionStarted")
        await driver.signal("parent")
        await turn(driver, "parent")
        await terminate(driver, "parent")
        await turn(driver, "kid", DONE)
        await settled(driver, KID)
        await driver.start("kid")
        await driver.reset(workflow_id="parent", reset_type=ResetType.LAST_WORKFLOW_TASK)
        await drive(driver, "parent", "ChildWorkflowExecutionCompleted")
        assert await status(driver) is WorkflowExecutionStatus.RUNNING


# --- the parent's close -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", list(ParentClosePolicy))
@pytest.mark.parametrize("dies", [False, True])
async def test_a_close_reaches_its_children(tmp_path: Path, policy: ParentClosePolicy, dies: bool) -> None:
    path = tmp_path / "orders.db"
    names = [f"kid {number}" for number in range(12)]
    async with running(path, **BRIEF) as driver:
        await begin(driver, *(kid(name, parent_close_policy=policy) for name in names))

        async def all_started() -> bool:
            task = await driver.poll_workflow(timedelta(milliseconds=10))
            if task is not None:
                await driver.complete(task.task_token)
            return types(await driver.history("parent")).count("ChildWorkflowExecutionStarted") == len(names)

        await until(all_started)
        if dies:
            driver.store.refuse_kinds |= {"Terminate", "RequestCancel", "Discharge"}
            await driver.signal("parent")
            await turn(driver, "parent", DONE)
        else:
            await terminate(driver, "parent")
            await settled(driver, PARENT)
    async with running(path) as driver:
        await settled(driver, PARENT)
        for name in names:
            assert await _what_happened_to(driver, name) is policy


async def _what_happened_to(driver: Driver, workflow_id: str) -> ParentClosePolicy:
    shown = await driver.describe(workflow_id)
    if shown.info.status is WorkflowExecutionStatus.TERMINATED:
        return ParentClosePolicy.TERMINATE
    assert shown.info.status is WorkflowExecutionStatus.RUNNING
    return ParentClosePolicy.REQUEST_CANCEL if shown.cancel_requested else ParentClosePolicy.ABANDON


@pytest.mark.parametrize("policy", [ParentClosePolicy.TERMINATE, ParentClosePolicy.REQUEST_CANCEL])
async def test_a_child_that_is_not_confirmed_ends_with_its_parent(policy: ParentClosePolicy) -> None:
    """The start lands behind the close: whoever made it finds the parent closed."""
    async with running() as driver:
        await driver.start("parent")
        task = await take(driver, "parent")
        driver.store.refuse_kinds.add("ExternalDelivered")
        await driver.complete(task.task_token, kid(parent_close_policy=policy))
        await until(lambda: _is_there(driver, "kid"))
        await terminate(driver, "parent")
        driver.store.refuse_kinds.clear()
        await settled(driver, PARENT)
        assert await _what_happened_to(driver, "kid") is policy


async def _is_there(driver: Driver, workflow_id: str) -> bool:
    try:
        await driver.describe(workflow_id)
    except NotFound:
        return False
    return True


@pytest.mark.parametrize("policy", list(ParentClosePolicy))
async def test_a_parent_that_closes_at_once(policy: ParentClosePolicy) -> None:
    """Nothing is started that would be ended at once; what is abandoned is started."""
    async with running() as driver:
        await begin(driver, kid(parent_close_policy=policy), DONE)
        await settled(driver, PARENT)
        assert await _is_there(driver, "kid") is (policy is ParentClosePolicy.ABANDON)


@pytest.mark.parametrize("policy", list(ParentClosePolicy))
async def test_a_stranger_with_the_childs_id_is_not_touched(policy: ParentClosePolicy) -> None:
    async with running() as driver:
        await driver.start("kid")
        await begin(driver, kid(parent_close_policy=policy), DONE)
        await settled(driver, PARENT)
        assert await status(driver) is WorkflowExecutionStatus.RUNNING
        assert not (await driver.describe("kid")).cancel_requested
