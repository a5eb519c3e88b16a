"""Signals, cancellation, termination and closes as they meet an outstanding workflow task."""

from datetime import timedelta
from pathlib import Path

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import CompleteWorkflowExecution
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import CompletionOutcome, WorkflowIDConflictPolicy
from stepwell.api.errors import (
    NotFound,
    WorkflowExecutionAlreadyStarted,
    WorkflowExecutionClosed,
    WorkflowExecutionClosing,
)

from tests.support.engine import Driver, ShiftedClock, activity, running, types

ORDER = WorkflowExecution(workflow_id="order-1")


async def test_signal_during_a_task_is_shown_to_the_next_one() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        await driver.signal(name="first")
        assert "WorkflowExecutionSignaled" not in types(await driver.history())
        assert (await driver.describe()).buffered_events == 1
        answer = await driver.complete(task.task_token)
        assert answer.outcome == "ACCEPTED" and not answer.fusible
        task = await driver.take()
        assert types(task.events) == ["WorkflowExecutionSignaled", "WorkflowTaskScheduled", "WorkflowTaskStarted"]
        await driver.finish(task)


async def test_a_close_that_has_not_seen_a_signal_is_refused_twice_and_then_senders_wait() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        await driver.signal(name="a")
        driver.store.reset()
        answer = await driver.complete(task.task_token, CompleteWorkflowExecution())
        assert answer.outcome is CompletionOutcome.UNSEEN_EVENTS
        assert not driver.store.writes
        task = await driver.take()
        assert types(task.events)[-2:] == ["WorkflowExecutionSignaled", "WorkflowTaskStarted"]
        await driver.signal(name="b")
        answer = await driver.complete(task.task_token, CompleteWorkflowExecution())
        assert answer.outcome is CompletionOutcome.FAILED
        assert "WorkflowTaskFailed" in types(await driver.history())
        with pytest.raises(WorkflowExecutionClosing):
            await driver.signal(name="c")
        task = await driver.take()
        await driver.finish(task)
        history = types(await driver.history())
        assert history.count("WorkflowExecutionSignaled") == 2
        assert history[-1] == "WorkflowExecutionCompleted"


async def test_repeats_change_nothing() -> None:
    async with running() as driver:
        run_id = await driver.start(request_id="same")
        assert await driver.start(request_id="same") == run_id
        with pytest.raises(WorkflowExecutionAlreadyStarted):
            await driver.start(request_id="other")
        task = await driver.take()
        first = await driver.complete(task.task_token, activity("1"), slots=1, nonce="one")
        driver.store.reset()
        again = await driver.complete(task.task_token, activity("1"), slots=1, nonce="one")
        assert not driver.store.writes
        assert (again.outcome, again.continuation_token, again.leases) == (
            first.outcome,
            first.continuation_token,
            first.leases,
        )
        another = await driver.complete(task.task_token, activity("1"), slots=1, nonce="two")
        assert another.outcome is CompletionOutcome.STALE
        await driver.signal(request_id="signal")
        await driver.signal(request_id="signal")
        assert types(await driver.history()).count("WorkflowExecutionSignaled") == 1


async def test_a_start_may_end_the_run_that_is_there() -> None:
    async with running() as driver:
        first = await driver.start()
        second = await driver.start(workflow_id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING)
        assert first != second
        assert types(await driver.history(run_id=first))[-1] == "WorkflowExecutionTerminated"
        assert types(await driver.history()) == ["WorkflowExecutionStarted", "WorkflowTaskScheduled"]
        with pytest.raises(WorkflowExecutionClosed):
            await driver.signal(run_id=first)
        await driver.engine.cancel_workflow(
            r.CancelWorkflowRequest(execution=WorkflowExecution(workflow_id="order-1", run_id=first))
        )
        with pytest.raises(NotFound):
            await driver.signal(run_id="no such run")
        with pytest.raises(NotFound):
            await driver.signal("no such workflow")


async def test_terminate_and_cancel() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        await driver.engine.cancel_workflow(r.CancelWorkflowRequest(execution=ORDER, reason="changed my mind"))
        assert (await driver.describe()).cancel_requested
        await driver.complete(task.task_token)
        task = await driver.take()
        assert types(task.events)[0] == "WorkflowExecutionCancelRequested"
        await driver.engine.terminate_workflow(r.TerminateWorkflowRequest(execution=ORDER, reason="enough"))
        answer = await driver.complete(task.task_token)
        assert answer.outcome is CompletionOutcome.STALE
        with pytest.raises(WorkflowExecutionClosed):
            await driver.engine.terminate_workflow(r.TerminateWorkflowRequest(execution=ORDER))
        with pytest.raises(WorkflowExecutionClosed):
            await driver.signal()
        await driver.engine.cancel_workflow(r.CancelWorkflowRequest(execution=ORDER))


async def test_a_failing_task_is_tried_again_and_then_backs_off() -> None:
    async with running() as driver:
        await driver.start()
        for attempt in (1, 2, 3):
            task = await driver.take()
            assert task.attempt == attempt
            await driver.fail_task(task.task_token, f"bug {attempt}")
        pending = (await driver.describe()).pending_workflow_task
        assert pending is not None and pending.attempt == 4 and pending.next_attempt_time is not None
        assert pending.last_failure is not None and pending.last_failure.message == "bug 3"
        assert types(await driver.history()).count("WorkflowTaskFailed") == 1
        assert await driver.poll_workflow(timedelta(milliseconds=100)) is None


async def test_the_fourth_attempt_has_more_time(tmp_path: Path) -> None:
    """ER-07: 5 s more, so that a slow worker is not overtaken by the next offer."""
    clock = ShiftedClock()
    async with running(tmp_path / "orders.db") as driver:
        await driver.start(workflow_task_timeout=timedelta(milliseconds=50))
        for attempt in (1, 2, 3):
            await driver.fail_task((await driver.take()).task_token, f"bug {attempt}")
    clock.shift += timedelta(minutes=1)
    async with running(tmp_path / "orders.db", clock=clock) as driver:
        task = await driver.take()
        assert task.attempt == 4
        assert await driver.poll_workflow(timedelta(milliseconds=300)) is None, "offered again within its 5 s more"
        await driver.finish(task)


async def test_a_fused_step_after_a_signal_is_stale_but_its_outcome_counts() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        answer = await driver.complete(task.task_token, activity("1"), slots=1)
        await driver.signal()
        stale = await driver.fused(answer, activity("2"), now=answer.commit_time)
        assert stale.outcome is CompletionOutcome.STALE
        assert [reply.error_code for reply in stale.activity_replies] == [""]
        task = await driver.take()
        assert types(task.events)[-3:] == ["ActivityTaskStarted", "ActivityTaskCompleted", "WorkflowTaskStarted"]
        await _finish(driver, task)


async def test_the_task_of_a_silent_worker_is_offered_again() -> None:
    async with running() as driver:
        await driver.start(workflow_task_timeout=timedelta(milliseconds=200))
        task = await driver.take()
        assert await driver.poll_workflow(timedelta(milliseconds=50)) is None
        other = driver.as_worker("worker-2")
        again = await other.take()
        assert again.events == task.events[:-1] + again.events[-1:]
        await _finish(other, again)
        assert (await driver.complete(task.task_token)).outcome is CompletionOutcome.STALE


async def _finish(driver: Driver, task: r.WorkflowTask) -> None:
    await driver.finish(task)
    assert (await driver.result()).event_type == "WorkflowExecutionCompleted"
