"""Continue-as-new is one commit of two runs: whatever is lost, late or repeated around it, the chain goes on once."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import ContinueAsNewWorkflowExecution, StartTimer
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import CompletionOutcome, WorkflowExecutionStatus
from stepwell.api.errors import Unavailable, WorkflowExecutionClosed
from stepwell.api.events import HistoryEvent

from stepwell_server.history.ports import StoreUnavailable
from tests.support.engine import QUEUE, Driver, ShiftedClock, activity, payload, running, types

BEGUN = ["WorkflowExecutionStarted", "WorkflowTaskScheduled"]


def again(**fields: object) -> ContinueAsNewWorkflowExecution:
    values: dict[str, object] = {"workflow_type": "order", "task_queue": QUEUE, "input": payload("next")}
    return ContinueAsNewWorkflowExecution(**(values | fields))  # type: ignore[arg-type]


def execution(run_id: str) -> WorkflowExecution:
    return WorkflowExecution(workflow_id="order-1", run_id=run_id)


async def next_of(driver: Driver, run_id: str) -> str:
    closed = (await driver.history(run_id=run_id))[-1]
    return str(getattr(closed.attributes, "new_execution_run_id", ""))


async def test_it_costs_one_commit_and_two_rows_of_visibility() -> None:
    async with running() as driver:
        first = await driver.start()
        task = await driver.take()
        driver.store.reset()
        answer = await driver.complete(task.task_token, again())
        assert answer.outcome is CompletionOutcome.ACCEPTED and not answer.fusible and not answer.leases
        assert driver.store.writes["append"] == 1 and driver.store.counts["head"] == 0
        second = await next_of(driver, first)
        assert types(await driver.history(run_id=second)) == BEGUN
        listed = await driver.engine.list_workflows(r.ListWorkflowsRequest())
        by_run = {info.execution.run_id: (info.status, info.first_run_id) for info in listed.executions}
        assert by_run == {
            first: (WorkflowExecutionStatus.CONTINUED_AS_NEW, first),
            second: (WorkflowExecutionStatus.RUNNING, first),
        }


async def test_the_cost_does_not_grow_with_the_chain() -> None:
    async with running() as driver:
        await driver.start()
        sizes = []
        for _ in range(50):
            task = await driver.take()
            driver.store.reset()
            await driver.complete(
                task.task_token, StartTimer(timer_id="1", start_to_fire_timeout=timedelta(9)), again()
            )
            sizes.append((driver.store.counts["append"], len(driver.store.commits[-1].state.request_ids)))
        assert set(sizes) == {(1, 1)}


@pytest.mark.parametrize("fault", ["answer lost", "refused"])
async def test_a_completion_that_failed_goes_on_once_when_it_is_sent_again(fault: str) -> None:
    async with running() as driver:
        first = await driver.start()
        task = await driver.take()
        await driver.signal(name="unseen")
        failures = driver.store.lose_answer if fault == "answer lost" else driver.store.refuse
        failures.append(StoreUnavailable("no answer"))
        with pytest.raises(Unavailable):
            await driver.complete(task.task_token, again(), nonce="same")
        answer = await driver.complete(task.task_token, again(), nonce="same")
        assert answer.outcome is CompletionOutcome.ACCEPTED
        second = await next_of(driver, first)
        assert (await driver.describe()).info.execution.run_id == second
        assert types(await driver.history(run_id=second))[:3] == [BEGUN[0], "WorkflowExecutionSignaled", BEGUN[1]]
        assert "WorkflowExecutionSignaled" not in types(await driver.history(run_id=first))
        await driver.finish(await driver.take())


async def test_a_restart_behind_it_offers_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    async with running(path) as driver:
        first = await driver.start()
        task = await driver.take()
        await driver.signal()
        answer = await driver.complete(task.task_token, again(), nonce="same")
    async with running(path) as driver:
        repeated = await driver.complete(task.task_token, again(), nonce="same")
        assert (repeated.outcome, repeated.started_event_id) == (answer.outcome, answer.started_event_id)
        task = await driver.take()
        assert task.execution.run_id == await next_of(driver, first)
        assert types(task.events) == [BEGUN[0], "WorkflowExecutionSignaled", BEGUN[1], "WorkflowTaskStarted"]
        await driver.finish(task)


async def test_what_the_first_run_had_leased_ends_with_it() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        answer = await driver.complete(task.task_token, activity("1"), slots=1)
        await driver.signal()
        task = await driver.take()
        await driver.complete(task.task_token, again())
        (reply,) = await driver.done(*answer.leases)
        assert reply.error_code == "NOT_FOUND"
        assert types(await driver.history()) == BEGUN


async def test_messages_by_run_id_say_that_the_run_is_closed_and_without_one_find_the_next() -> None:
    async with running() as driver:
        first = await driver.start()
        task = await driver.take()
        await driver.complete(task.task_token, again())
        with pytest.raises(WorkflowExecutionClosed) as refused:
            await driver.signal(run_id=first)
        assert refused.value.details["status"] == "CONTINUED_AS_NEW"
        await driver.signal()
        chained = r.CancelWorkflowRequest(execution=execution(""), first_execution_run_id=first)
        await driver.engine.cancel_workflow(chained)
        assert (await driver.describe()).cancel_requested


async def test_who_waits_for_the_first_run_hears_of_the_next() -> None:
    async with running() as driver:
        first = await driver.start()
        task = await driver.take()
        request = r.GetHistoryRequest(execution=execution(first), wait_new_event=True, close_event_only=True)
        waiting = asyncio.ensure_future(driver.engine.get_history(request))
        await asyncio.sleep(0)
        await driver.complete(task.task_token, again())
        (event,) = (await asyncio.wait_for(waiting, 30)).events
        assert event.event_type == "WorkflowExecutionContinuedAsNew"


async def test_a_wait_before_the_next_run_outlives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "chain.db"
    clock = ShiftedClock()
    async with running(path, clock) as driver:
        await driver.start()
        task = await driver.take()
        await driver.complete(task.task_token, again(backoff_start_interval=timedelta(hours=5)))
        await driver.signal()
        assert await driver.poll_workflow(timedelta(milliseconds=50)) is None
    clock.shift += timedelta(hours=5)
    async with running(path, clock) as driver:
        task = await driver.take()
        events: list[HistoryEvent] = list(task.events)
        assert types(events) == [BEGUN[0], "WorkflowExecutionSignaled", BEGUN[1], "WorkflowTaskStarted"]
        await driver.finish(task)
