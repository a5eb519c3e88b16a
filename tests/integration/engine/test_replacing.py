"""A start over an open run is one commit of two runs: whoever reads, waits for or repeats either gets the right one."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import CompletionOutcome, WorkflowExecutionStatus, WorkflowIDConflictPolicy
from stepwell.api.errors import NotFound, Unavailable, WorkflowExecutionClosed

from stepwell_server.history.ports import StoreUnavailable
from tests.support.engine import Driver, activity, running, types

TERMINATED, RUNNING = WorkflowExecutionStatus.TERMINATED, WorkflowExecutionStatus.RUNNING
LONG = timedelta(seconds=20)


async def replace(driver: Driver, **more: Any) -> str:
    return await driver.start(workflow_id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING, **more)


def execution(run_id: str) -> WorkflowExecution:
    return WorkflowExecution(workflow_id="order-1", run_id=run_id)


async def check_both(driver: Driver, first: str, second: str) -> None:
    old, new = await driver.history(run_id=first), await driver.history(run_id=second)
    assert types(old)[-1] == "WorkflowExecutionTerminated"
    assert [event.event_id for event in old] == list(range(1, len(old) + 1))
    assert types(new) == ["WorkflowExecutionStarted", "WorkflowTaskScheduled"]
    described = (await driver.describe(run_id=first)).info
    assert (described.status, described.history_length) == (TERMINATED, len(old))
    assert described.close_time == old[-1].event_time
    assert (await driver.describe(run_id=second)).info.status is RUNNING
    assert (await driver.describe()).info.execution.run_id == second
    listed = await driver.engine.list_workflows(r.ListWorkflowsRequest())
    by_run = {info.execution.run_id: info for info in listed.executions}
    assert by_run.keys() == {first, second}
    assert (by_run[first].status, by_run[first].close_time) == (TERMINATED, described.close_time)
    assert by_run[first].history_length == len(old)
    assert by_run[first].history_size_bytes == described.history_size_bytes
    assert (by_run[second].status, by_run[second].first_run_id) == (RUNNING, second)
    page = await driver.engine.get_history(r.GetHistoryRequest(execution=execution(first), close_event_only=True))
    assert page.events == (old[-1],)


async def test_it_costs_one_commit_and_both_runs_are_there() -> None:
    async with running() as driver:
        first = await driver.start()
        await driver.signal()
        driver.store.reset()
        second = await replace(driver)
        assert driver.store.writes["append"] == 1
        assert types(await driver.history(run_id=first))[-2:] == [
            "WorkflowExecutionSignaled",
            "WorkflowExecutionTerminated",
        ]
        await check_both(driver, first, second)


@pytest.mark.parametrize("only_close", [True, False], ids=["result", "history"])
async def test_who_waits_for_the_old_run_is_woken_with_its_end(only_close: bool) -> None:
    async with running() as driver:
        first = await driver.start()
        request = r.GetHistoryRequest(
            execution=execution(first), wait_new_event=True, close_event_only=only_close, timeout=LONG
        )
        if not only_close:
            shown = await driver.engine.get_history(request)
            request = r.GetHistoryRequest(
                execution=execution(first), wait_new_event=True, timeout=LONG, next_page_token=shown.next_page_token
            )
        waiting = asyncio.ensure_future(driver.engine.get_history(request))
        await asyncio.sleep(0)
        await replace(driver)
        page = await asyncio.wait_for(waiting, LONG.total_seconds() / 2)
        assert types(page.events) == ["WorkflowExecutionTerminated"]
        assert (page.run_id, page.next_page_token) == (first, b"")


async def test_a_history_is_read_page_by_page_into_the_commit_of_both() -> None:
    async with running() as driver:
        first = await driver.start()
        await driver.take()
        for _ in range(5):
            await driver.signal()
        await replace(driver)
        seen, token = [], b""
        while True:
            page = await driver.engine.get_history(
                r.GetHistoryRequest(execution=execution(first), maximum_page_size=2, next_page_token=token)
            )
            seen += page.events
            token = page.next_page_token
            if not token:
                break
        assert [event.event_id for event in seen] == list(range(1, 9))
        assert types(seen)[2:] == ["WorkflowExecutionSignaled"] * 5 + ["WorkflowExecutionTerminated"]


async def test_a_restart_in_between(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        first = await driver.start()
        task = await driver.take()
        await driver.complete(task.task_token, activity("1", eager=False))
        second = await replace(driver, request_id="again")
    async with running(path) as driver:
        await check_both(driver, first, second)
        assert await replace(driver, request_id="again") == second
        task = await driver.take()
        assert task.execution.run_id == second
        assert types(task.events) == ["WorkflowExecutionStarted", "WorkflowTaskScheduled", "WorkflowTaskStarted"]
        await driver.finish(task)
        assert (await driver.result()).event_type == "WorkflowExecutionCompleted"
        assert types(await driver.history(run_id=first))[-1] == "WorkflowExecutionTerminated"


async def test_a_repeat_finds_its_own_run() -> None:
    async with running() as driver:
        first = await driver.start(request_id="one")
        second = await replace(driver, request_id="two")
        driver.store.reset()
        assert await replace(driver, request_id="two") == second
        assert await replace(driver, request_id="one") == first
        assert not driver.store.writes


@pytest.mark.parametrize("fault", ["answer lost", "refused"])
async def test_of_a_start_that_failed_both_halves_are_there_or_neither(fault: str) -> None:
    async with running() as driver:
        first = await driver.start()
        failures = driver.store.lose_answer if fault == "answer lost" else driver.store.refuse
        failures.append(StoreUnavailable("no answer"))
        with pytest.raises(Unavailable):
            await replace(driver, request_id="again")
        info = (await driver.describe(run_id=first)).info
        assert info.status is (TERMINATED if fault == "answer lost" else RUNNING)
        second = await replace(driver, request_id="again")
        await check_both(driver, first, second)
        assert (await driver.take()).execution.run_id == second


async def test_many_at_once_follow_each_other() -> None:
    async with running() as driver:
        first = await driver.start()
        runs = await asyncio.gather(*(replace(driver) for _ in range(10)))
        assert len({first, *runs}) == 11
        listed = await driver.engine.list_workflows(r.ListWorkflowsRequest(status=RUNNING))
        assert len(listed.executions) == 1
        for run_id in {first, *runs} - {listed.executions[0].execution.run_id}:
            assert types(await driver.history(run_id=run_id))[-1] == "WorkflowExecutionTerminated"


async def test_what_workers_hold_of_the_old_run_does_not_count() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        leased = await driver.complete(task.task_token, activity("1"), activity("2", eager=False), slots=1)
        (queued,) = await driver.poll_activities()
        await driver.signal()
        held = await driver.take()
        await replace(driver)
        assert (await driver.complete(held.task_token)).outcome is CompletionOutcome.STALE
        replies = await driver.done(queued, *leased.leases)
        assert [reply.error_code for reply in replies] == ["NOT_FOUND", "NOT_FOUND"]
        assert types(await driver.history()) == ["WorkflowExecutionStarted", "WorkflowTaskScheduled"]
        await driver.finish(await driver.take())


async def test_messages_for_the_old_run_are_refused_and_a_cancel_has_nothing_to_do() -> None:
    async with running() as driver:
        first = await driver.start()
        await replace(driver)
        with pytest.raises(WorkflowExecutionClosed):
            await driver.signal(run_id=first)
        await driver.engine.cancel_workflow(r.CancelWorkflowRequest(execution=execution(first)))
        assert not (await driver.describe()).cancel_requested
        with pytest.raises(NotFound):
            await driver.signal(run_id="no such run")


async def test_a_query_that_waits_for_the_old_run_is_answered_from_its_end() -> None:
    async with running() as driver:
        first = await driver.start()
        await driver.take()
        asking = asyncio.ensure_future(
            driver.engine.query_workflow(r.QueryWorkflowRequest(execution=execution(first), query_type="state"))
        )
        await asyncio.sleep(0)
        await replace(driver)
        asked = await until(driver, lambda task: task.query is not None)
        assert (asked.execution.run_id, asked.last_event_id) == (first, len(await driver.history(run_id=first)))
        answer = r.RespondQueryTaskCompletedRequest(task_token=asked.task_token)
        await driver.engine.respond_query_task_completed(answer)
        await asyncio.wait_for(asking, 30)


async def until(driver: Driver, wanted: Callable[[r.WorkflowTask], bool]) -> r.WorkflowTask:
    take: Callable[[], Awaitable[r.WorkflowTask]] = driver.take
    while not wanted(task := await take()):
        pass
    return task


async def test_the_time_an_item_armed_for_the_old_run_is_not_counted_on() -> None:
    """The close strikes off the row that both the item and the log had armed."""
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        await driver.complete(task.task_token, activity("1", eager=False, seconds=10))
        await driver.poll_activities()
        await replace(driver)
        key = driver.store.commits[-1].key
        assert key not in driver.engine._armed._times
