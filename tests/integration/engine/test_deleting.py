"""Deleting runs (LC-12): a running one is terminated first, all of the run goes and nothing of another, and whatever
dies in between, it is done in the end."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import (
    CompleteWorkflowExecution,
    ContinueAsNewWorkflowExecution,
    StartChildWorkflowExecution,
)
from stepwell.api.common import Memo, WorkflowExecution
from stepwell.api.enums import WorkflowExecutionStatus, WorkflowIDReusePolicy
from stepwell.api.errors import NotFound, WorkflowExecutionAlreadyStarted

from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.ports import StoreUnavailable
from tests.support.cases import until
from tests.support.engine import QUEUE, Driver, ShiftedClock, activity, payload, running, types

KEY = ExecutionKey("default", "order-1")
TABLES = ("logs", "runs", "commits", "activity_items", "armed", "markers", "prefixes")
SECRET = "a secret of the customer"


async def delete(driver: Driver, run_id: str = "", workflow_id: str = "order-1") -> None:
    await driver.engine.delete_workflow(
        r.DeleteWorkflowRequest(execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id))
    )


async def rows(driver: Driver) -> dict[str, int]:
    def count(connection: Any, tables: Any) -> dict[str, int]:
        return {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}

    counts: dict[str, int] = await driver.store._submit(count)  # type: ignore[operator]
    return {table: count for table, count in counts.items() if count}


async def listed(driver: Driver) -> list[str]:
    found = await driver.engine.list_workflows(r.ListWorkflowsRequest())
    return [info.execution.run_id for info in found.executions]


async def worked(driver: Driver, text: str = "done") -> None:
    """A run with an activity that went through the queue, with an item."""
    await driver.complete((await driver.take()).task_token, activity("1", eager=False))
    await driver.done(*await driver.poll_activities())
    await driver.finish(await driver.take(), text)


async def gone(driver: Driver, workflow_id: str = "order-1", run_id: str = "") -> None:
    with pytest.raises(NotFound):
        await driver.describe(workflow_id, run_id)
    with pytest.raises(NotFound):
        await driver.history(workflow_id, run_id)


async def test_all_of_a_closed_run_goes() -> None:
    async with running() as driver:
        memo: Memo = {"customer": payload(SECRET)[0]}
        await driver.start(memo=memo)
        await driver.signal(request_id="by-the-user", name="ship", input=payload(SECRET))
        await worked(driver)
        await delete(driver)
        await gone(driver)
        await until(lambda: _is_empty(driver))
        with pytest.raises(NotFound):
            await delete(driver)


async def _is_empty(driver: Driver) -> bool:
    return not await rows(driver)


async def test_a_running_one_is_terminated_first_and_its_worker_hears_of_it() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        waiting = asyncio.ensure_future(driver.result())
        await asyncio.sleep(0)
        await delete(driver)
        close = await waiting
        assert close.event_type == "WorkflowExecutionTerminated" and "deleted" in close.attributes.reason
        await until(lambda: _is_empty(driver))
        with pytest.raises(NotFound):
            await driver.complete(task.task_token, CompleteWorkflowExecution())
        assert await rows(driver) == {}


async def test_other_runs_of_the_id_stay_also_those_that_share_a_commit() -> None:
    """Three runs of a chain, and a fourth of its own; the second goes, then the first, then the last."""
    async with running() as driver:
        runs = [await driver.start()]
        for _ in range(2):
            again = ContinueAsNewWorkflowExecution(workflow_type="order", task_queue=QUEUE)
            await driver.complete((await driver.take()).task_token, again)
            runs.append((await driver.describe()).info.execution.run_id)
        await worked(driver)
        runs.append(await driver.start())
        before = {run_id: await driver.history(run_id=run_id) for run_id in runs}
        for deleted, left in ((1, (0, 2, 3)), (0, (2, 3)), (2, (3,))):
            await delete(driver, runs[deleted])
            await gone(driver, run_id=runs[deleted])
            await until(lambda left=left: _lists(driver, [runs[number] for number in left]))
            for number in left:
                assert await driver.history(run_id=runs[number]) == before[runs[number]]
        await driver.finish(await driver.take())
        assert (await driver.describe()).info.status is WorkflowExecutionStatus.COMPLETED
        await delete(driver, runs[3])
        await until(lambda: _is_empty(driver))


async def _lists(driver: Driver, run_ids: list[str]) -> bool:
    return sorted(await listed(driver)) == sorted(run_ids)


async def test_the_id_is_free_at_once_and_a_new_run_is_nobodys_business() -> None:
    async with running() as driver:
        await driver.start()
        await worked(driver)
        unique = WorkflowIDReusePolicy.REJECT_DUPLICATE
        with pytest.raises(WorkflowExecutionAlreadyStarted):
            await driver.start(workflow_id_reuse_policy=unique)
        await delete(driver)
        second = await driver.start(workflow_id_reuse_policy=unique)
        await until(lambda: _lists(driver, [second]))
        await worked(driver, "second")
        assert types(await driver.history())[-1] == "WorkflowExecutionCompleted"
        head = await driver.store.head(KEY)
        assert head is not None
        await until(lambda: _settled(driver))


async def _settled(driver: Driver) -> bool:
    head = await driver.store.head(KEY)
    return head is None or not head.state.owed


@pytest.mark.parametrize("lost", ["Delete", "RecordDeleted"])
async def test_whoever_dies_in_between_the_deadline_does_the_rest(lost: str, tmp_path: Path) -> None:
    clock = ShiftedClock()
    async with running(tmp_path / "orders.db", clock) as driver:
        await driver.start()
        await worked(driver)
        if lost == "Delete":  # nobody hands on what it owes
            driver.engine._tasks._deleting.committed = lambda key, run_id: None  # type: ignore[method-assign]
        else:
            driver.store.refuse_kinds.add(lost)
        await delete(driver)
        await gone(driver)
    clock.shift = timedelta(seconds=31)
    async with running(tmp_path / "orders.db", clock) as driver:
        await until(lambda: _is_empty(driver))


async def test_a_deadline_asks_again_without_a_restart() -> None:
    clock = ShiftedClock()
    async with running(clock=clock) as driver:
        await driver.start()
        await worked(driver)
        real = driver.engine._deleting.committed
        driver.engine._deleting.committed = lambda key, run_id: None  # type: ignore[method-assign]
        await delete(driver)
        driver.engine._deleting.committed = real  # type: ignore[method-assign]
        head = await driver.store.head(KEY)
        assert head is not None and head.deadline is not None
        clock.shift = timedelta(seconds=40)
        await driver.engine.fire(KEY, head.deadline)
        await until(lambda: _is_empty(driver))


async def test_a_store_that_is_out_of_order_is_tried_again() -> None:
    async with running() as driver:
        await driver.start()
        await worked(driver)
        inner = driver.store._inner
        real, failures = inner.erase_run, [StoreUnavailable("full")]

        async def erase_run(key: ExecutionKey, run_id: str) -> None:
            if failures:
                raise failures.pop()
            await real(key, run_id)

        inner.erase_run = erase_run  # type: ignore[method-assign]
        await delete(driver)
        await until(lambda: _is_empty(driver))
        assert not failures


async def test_what_it_owes_to_others_is_delivered_first() -> None:
    """The child is terminated with its parent, though the parent is deleted with its end."""
    async with running() as driver:
        await driver.start("parent")
        child = StartChildWorkflowExecution(workflow_id="child", workflow_type="order", task_queue=QUEUE)
        await driver.complete((await driver.take()).task_token, child)
        await until(lambda: _is_there(driver, "child"))
        await delete(driver, workflow_id="parent")
        assert (await driver.result("child")).event_type == "WorkflowExecutionTerminated"
        await until(lambda: _lists(driver, [run_id for run_id in [(driver_child(driver))] if run_id]))


def driver_child(driver: Driver) -> str:
    return next(commit.run_id for commit in driver.store.commits if commit.workflow_id == "child")


async def _is_there(driver: Driver, workflow_id: str) -> bool:
    return await driver.store.head(ExecutionKey("default", workflow_id)) is not None


async def test_what_there_is_not_is_refused_and_a_repeat_is_harmless() -> None:
    async with running() as driver:
        with pytest.raises(NotFound, match="no such workflow"):
            await delete(driver)
        first = await driver.start()
        with pytest.raises(NotFound, match="has no run"):
            await delete(driver, "11111111-1111-4111-8111-111111111111")
        assert await listed(driver) == [first]
        driver.store.refuse_kinds.add("RecordDeleted")
        await delete(driver)
        count = len(driver.store.commits)
        await delete(driver)
        await delete(driver, first)
        assert len(driver.store.commits) == count
