"""A paused workflow (LC-11, MS-37): what comes in is kept, nothing is given out, and unpausing gives it all."""

import asyncio
from datetime import timedelta

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import CompleteWorkflowExecution, StartTimer
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import FailedPrecondition, NotFound, WorkflowExecutionClosed

from tests.support.engine import SHORT, Driver, activity, payload, running, types
from tests.support.updates import accepted, update

ORDER = WorkflowExecution(workflow_id="order-1")
NOTHING = timedelta(milliseconds=150)


async def pause(driver: Driver, **more: str) -> None:
    await driver.engine.pause_workflow(r.PauseWorkflowRequest(execution=ORDER, **({"identity": "ops"} | more)))


async def unpause(driver: Driver, **more: str) -> None:
    await driver.engine.unpause_workflow(r.UnpauseWorkflowRequest(execution=ORDER, **({"identity": "ops"} | more)))


async def listed(driver: Driver) -> str:
    found = await driver.engine.list_workflows(r.ListWorkflowsRequest())
    return found.executions[0].status


async def test_signals_and_timers_are_recorded_and_wait(tmp_path) -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        await driver.complete(task.task_token, StartTimer(timer_id="t", start_to_fire_timeout=SHORT))
        await pause(driver, reason="look")
        await driver.signal()
        async with asyncio.timeout(10):
            while "TimerFired" not in types(await driver.history()):
                await asyncio.sleep(0.02)
        assert await driver.poll_workflow(NOTHING) is None
        described = await driver.describe()
        assert (described.paused_by, described.pause_reason) == ("ops", "look") and described.paused_time is not None
        assert described.info.status == "PAUSED" and await listed(driver) == "PAUSED"
        await unpause(driver)
        assert (await driver.describe()).info.status == "RUNNING" and await listed(driver) == "RUNNING"
        task = await driver.take()
        shown = types(task.events)
        assert shown.index("WorkflowExecutionPaused") < shown.index("WorkflowExecutionSignaled")
        assert "TimerFired" in shown and shown.count("WorkflowTaskScheduled") == 1
        await driver.finish(task)


async def test_a_task_that_waits_in_the_queue_is_not_given_out_and_comes_at_once_when_unpaused() -> None:
    async with running() as driver:
        await driver.start()
        await pause(driver)
        assert await driver.poll_workflow(NOTHING) is None
        await driver.signal()
        await unpause(driver)
        task = await driver.take()
        assert types(task.events).count("WorkflowExecutionSignaled") == 1
        await driver.finish(task)
        assert [kind for kind in types(await driver.history()) if "aused" in kind] == [
            "WorkflowExecutionPaused",
            "WorkflowExecutionUnpaused",
        ]


async def test_a_running_task_may_finish_and_its_activities_wait() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        await pause(driver)
        answer = await driver.complete(task.task_token, activity("1"), activity("2", eager=False), slots=2)
        assert answer.outcome == "ACCEPTED" and not answer.leases and not answer.fusible
        assert await driver.poll_activities(2, NOTHING) == ()
        await unpause(driver)
        attempts = list(await driver.poll_activities(2))
        while len(attempts) < 2:
            attempts += await driver.poll_activities(1)
        assert sorted(attempt.activity_id for attempt in attempts) == ["1", "2"]


async def test_a_running_attempt_is_told_and_its_end_counts() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        await driver.complete(task.task_token, activity("1", eager=False))
        (attempt,) = await driver.poll_activities()
        await pause(driver)
        beat = await driver.engine.record_activity_heartbeat(
            r.RecordActivityHeartbeatRequest(task_token=attempt.task_token)
        )
        assert beat.paused
        await driver.done(attempt)
        assert await driver.poll_workflow(NOTHING) is None
        await unpause(driver)
        task = await driver.take()
        assert "ActivityTaskCompleted" in types(task.events)


async def test_a_fused_step_is_stale_and_its_result_counts() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        answer = await driver.complete(task.task_token, activity("1"), slots=1)
        await pause(driver)
        assert answer.commit_time is not None
        step = await driver.fused(answer, CompleteWorkflowExecution(result=payload("x")), now=answer.commit_time)
        assert step.outcome == "STALE"
        await unpause(driver)
        task = await driver.take()
        assert "ActivityTaskCompleted" in types(task.events)


async def test_queries_and_updates_are_refused_and_say_why() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        await driver.complete(task.task_token)
        await pause(driver)
        with pytest.raises(FailedPrecondition, match="is paused"):
            await driver.engine.query_workflow(r.QueryWorkflowRequest(execution=ORDER, query_type="status"))
        with pytest.raises(FailedPrecondition, match="is paused"):
            await update(driver)
        await unpause(driver)
        sent = asyncio.ensure_future(update(driver, stage="ACCEPTED"))
        task = await driver.take()
        await driver.complete(task.task_token, accepted())
        assert (await sent).stage == "ACCEPTED"


async def test_terminating_cancelling_and_timeouts_go_on() -> None:
    async with running() as driver:
        await driver.start(workflow_run_timeout=timedelta(milliseconds=300))
        await pause(driver)
        assert (await driver.result()).event_type == "WorkflowExecutionTimedOut"
        await driver.start()
        await pause(driver)
        await driver.engine.terminate_workflow(r.TerminateWorkflowRequest(execution=ORDER))
        assert (await driver.describe()).info.status == "TERMINATED"
        with pytest.raises(WorkflowExecutionClosed):
            await unpause(driver)


async def test_repeats_count_once_and_what_is_not_so_is_refused() -> None:
    async with running() as driver:
        with pytest.raises(NotFound):
            await pause(driver)
        await driver.start()
        with pytest.raises(FailedPrecondition, match="is not paused"):
            await unpause(driver)
        await pause(driver, request_id="a")
        await pause(driver, request_id="a")
        with pytest.raises(FailedPrecondition, match="paused already"):
            await pause(driver, request_id="b")
        await unpause(driver, request_id="c")
        await unpause(driver, request_id="c")
        await driver.finish(await driver.take())
        assert [kind for kind in types(await driver.history()) if "aused" in kind] == [
            "WorkflowExecutionPaused",
            "WorkflowExecutionUnpaused",
        ]


async def test_paused_it_stays_over_a_restart(tmp_path) -> None:
    path = tmp_path / "paused.db"
    async with running(path) as driver:
        await driver.start()
        await driver.signal()
        await pause(driver)
    async with running(path) as driver:
        assert await driver.poll_workflow(NOTHING) is None
        await unpause(driver)
        await driver.finish(await driver.take())
