"""Retries and cron of whole workflows, and delayed starts, on a real store: over faults, restarts and hours."""

from datetime import timedelta
from pathlib import Path

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import (
    CompleteWorkflowExecution,
    ContinueAsNewWorkflowExecution,
    FailWorkflowExecution,
)
from stepwell.api.common import RetryPolicy, UserMetadata, WorkflowExecution
from stepwell.api.enums import CompletionOutcome
from stepwell.api.errors import Unavailable

from stepwell_server.history.ports import StoreUnavailable
from tests.support.engine import QUEUE, ShiftedClock, failure, payload, running, types

POLICY = RetryPolicy(initial_interval=timedelta(milliseconds=20), maximum_attempts=2)
BEGUN = ["WorkflowExecutionStarted", "WorkflowTaskScheduled"]
SOON = timedelta(milliseconds=50)


def fail() -> FailWorkflowExecution:
    return FailWorkflowExecution(failure=failure("declined"))


async def test_a_retry_is_one_commit_and_one_read() -> None:
    async with running() as driver:
        first = await driver.start(retry_policy=POLICY, input=payload("in"))
        task = await driver.take()
        driver.store.reset()
        await driver.complete(task.task_token, fail())
        assert driver.store.writes == {"append": 1, "arm": 1} and driver.store.counts["head"] == 0
        second = await driver.take()
        assert second.execution.run_id != first and types(second.events)[:2] == BEGUN
        started = second.events[0].attributes
        assert (started.attempt, started.input, started.first_execution_run_id) == (2, payload("in"), first)  # type: ignore[union-attr]
        await driver.complete(second.task_token, fail())
        assert (await driver.result()).event_type == "WorkflowExecutionFailed"


@pytest.mark.parametrize("fault", ["answer lost", "refused"])
async def test_a_failed_write_of_a_retry_is_made_once(fault: str) -> None:
    async with running() as driver:
        first = await driver.start(retry_policy=POLICY)
        task = await driver.take()
        failures = driver.store.lose_answer if fault == "answer lost" else driver.store.refuse
        failures.append(StoreUnavailable("no answer"))
        with pytest.raises(Unavailable):
            await driver.complete(task.task_token, fail(), nonce="same")
        answer = await driver.complete(task.task_token, fail(), nonce="same")
        assert answer.outcome is CompletionOutcome.ACCEPTED
        second = await driver.take()
        assert second.execution.run_id == (await driver.history(run_id=first))[-1].attributes.new_execution_run_id  # type: ignore[union-attr]
        listed = await driver.engine.list_workflows(r.ListWorkflowsRequest())
        assert len(listed.executions) == 2


async def test_a_run_timeout_begins_the_next_attempt_without_a_worker() -> None:
    async with running() as driver:
        first = await driver.start(retry_policy=POLICY, workflow_run_timeout=SOON)
        page = await driver.engine.get_history(
            r.GetHistoryRequest(
                execution=WorkflowExecution(workflow_id="order-1", run_id=first),
                wait_new_event=True,
                close_event_only=True,
            )
        )
        (closed,) = page.events
        assert closed.event_type == "WorkflowExecutionTimedOut"
        described = (await driver.describe()).info
        assert described.execution.run_id == closed.attributes.new_execution_run_id != first  # type: ignore[union-attr]


async def test_a_cron_outlives_restarts_and_leaves_out_what_was_missed(tmp_path: Path) -> None:
    path = tmp_path / "cron.db"
    clock = ShiftedClock()
    async with running(path, clock) as driver:
        first = await driver.start(cron_schedule="@every 1h")
        assert await driver.poll_workflow(SOON) is None
        assert await driver.start(cron_schedule="@every 1h", request_id="x", workflow_id="other")
    clock.shift += timedelta(hours=1)
    async with running(path, clock) as driver:
        task = await driver.take()
        workflow_id = task.execution.workflow_id
        await driver.complete(task.task_token, CompleteWorkflowExecution(result=payload("7")))
        assert (await driver.describe(workflow_id)).pending_workflow_task is None
    clock.shift += timedelta(hours=3, minutes=30)
    async with running(path, clock) as driver:
        tasks = [await driver.take(), await driver.take()]
        again = next(task for task in tasks if task.execution.workflow_id == workflow_id)
        assert again.events[0].attributes.last_completion_result == payload("7")  # type: ignore[union-attr]
        began = again.events[0].event_time + again.events[0].attributes.first_workflow_task_backoff  # type: ignore[union-attr]
        assert again.events[1].event_time - began > timedelta(hours=2), "one run for the three times that passed"
        assert first


async def test_a_delayed_start_outlives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "delay.db"
    clock = ShiftedClock()
    async with running(path, clock) as driver:
        await driver.start(workflow_start_delay=timedelta(hours=2), request_id="once")
        assert await driver.poll_workflow(SOON) is None
        before = await driver.start(workflow_start_delay=timedelta(hours=2), request_id="once")
    clock.shift += timedelta(hours=2)
    async with running(path, clock) as driver:
        task = await driver.take()
        assert task.execution.run_id == before and types(task.events)[:2] == BEGUN
        await driver.finish(task)


async def test_a_signal_wakes_a_delayed_start_at_once() -> None:
    async with running() as driver:
        await driver.start(workflow_start_delay=timedelta(hours=2))
        driver.store.reset()
        await driver.signal()
        assert driver.store.writes["append"] == 1
        task = await driver.take()
        assert types(task.events)[:3] == [BEGUN[0], "WorkflowExecutionSignaled", BEGUN[1]]


async def test_describe_says_what_a_run_waits_for_and_what_goes_on_behind_it() -> None:
    async with running() as driver:
        first = await driver.start(retry_policy=RetryPolicy(initial_interval=timedelta(hours=1)))
        task = await driver.take()
        await driver.complete(task.task_token, fail())
        waiting = await driver.describe()
        assert waiting.attempt == 2 and waiting.continued_execution_run_id == first
        assert waiting.first_workflow_task_time == waiting.info.start_time + timedelta(hours=1)
        assert (await driver.describe(run_id=first)).new_execution_run_id == waiting.info.execution.run_id
        await driver.start(workflow_id="cron", cron_schedule="@daily", workflow_execution_timeout=timedelta(days=9))
        cron = await driver.describe("cron")
        assert (cron.cron_schedule, cron.workflow_execution_timeout) == ("@daily", timedelta(days=9))


async def test_what_people_read_of_a_workflow_goes_along_its_chain() -> None:
    texts = UserMetadata(summary=payload("order 17")[0])
    async with running() as driver:
        await driver.start(retry_policy=POLICY, user_metadata=texts)
        task = await driver.take()
        await driver.complete(task.task_token, ContinueAsNewWorkflowExecution(workflow_type="order", task_queue=QUEUE))
        assert (await driver.describe()).user_metadata == texts
        task = await driver.take()
        await driver.complete(task.task_token, fail())
        described = await driver.describe()
        assert described.attempt == 2 and described.user_metadata == texts
    async with running() as driver:
        await driver.start(user_metadata=texts)
        task = await driver.take()
        await driver.complete(task.task_token, ContinueAsNewWorkflowExecution(workflow_type="order", task_queue=QUEUE))
        assert (await driver.describe()).user_metadata == texts


async def test_a_run_that_was_reset_is_tried_again_as_its_workflow_began() -> None:
    async with running() as driver:
        first = await driver.start(retry_policy=POLICY, input=payload("in"))
        task = await driver.take()
        await driver.complete(task.task_token)
        reset = await driver.engine.reset_workflow(
            r.ResetWorkflowRequest(
                execution=WorkflowExecution(workflow_id="order-1", run_id=first), workflow_task_finish_event_id=4
            )
        )
        task = await driver.take()
        assert task.execution.run_id == reset.run_id
        await driver.complete(task.task_token, fail())
        again = await driver.take()
        started = again.events[0].attributes
        assert (started.attempt, started.input, started.continued_execution_run_id) == (2, payload("in"), reset.run_id)  # type: ignore[union-attr]
        assert started.original_execution_run_id == again.execution.run_id  # type: ignore[union-attr]
        await driver.finish(again)
