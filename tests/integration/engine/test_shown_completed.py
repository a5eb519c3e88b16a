"""Workers of another protocol: their tasks begin with the last WorkflowTaskCompleted, and tell whose that was."""

from pathlib import Path

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import ContinueAsNewWorkflowExecution
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import NotFound

from tests.support.engine import QUEUE, Driver, activity, running, types

BEHIND = ["ActivityTaskScheduled", "WorkflowExecutionSignaled", "WorkflowTaskScheduled", "WorkflowTaskStarted"]


def telling(driver: Driver, key: str = "key-1") -> Driver:
    other = driver.as_worker("other")
    other.worker = r.WorkerInfo(identity="other", worker_key=key, shown_completed=True)
    return other


async def test_it_is_shown_to_those_who_ask(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with running(path) as driver:
        worker = telling(driver)
        await driver.start()
        first = await worker.take()
        assert first.events[0].event_id == 1 and not first.same_worker
        await worker.complete(first.task_token, activity("1", eager=False))
        await driver.signal()
        task = await worker.take()
        assert types(task.events) == ["WorkflowTaskCompleted", *BEHIND] and task.same_worker
        assert task.events[0].event_id == task.previous_started_event_id + 1
    async with running(path) as driver:  # now from the log
        task = await telling(driver, "another key").take()
        assert types(task.events) == ["WorkflowTaskCompleted", *BEHIND] and not task.same_worker
    async with running(path) as driver:
        assert types((await driver.take()).events) == BEHIND


async def test_it_comes_with_the_answer_too() -> None:
    async with running() as driver:
        worker = telling(driver)
        await driver.start()
        answer = await worker.complete(
            (await worker.take()).task_token, force_new_workflow_task=True, return_new_workflow_task=True
        )
        assert answer.workflow_task is not None and answer.workflow_task.same_worker
        assert types(answer.workflow_task.events)[0] == "WorkflowTaskCompleted"


async def test_the_next_run_of_the_chain_does_not_come_with_the_answer() -> None:
    """A worker asks for the next task of the run that it completes; the other run's first one comes by a poll."""
    async with running() as driver:
        first = await driver.start()
        task = await driver.take()
        again = ContinueAsNewWorkflowExecution(workflow_type="order", task_queue=QUEUE)
        answer = await driver.complete(task.task_token, again, return_new_workflow_task=True)
        assert answer.outcome == "ACCEPTED" and answer.workflow_task is None
        assert (await driver.take()).execution.run_id != first


async def test_a_worker_that_has_dropped_the_run_is_preferred_no_more() -> None:
    """Also where its task is outstanding: that one may still be completed."""
    async with running() as driver:
        worker = telling(driver)
        run_id = await driver.start()
        await worker.complete((await worker.take()).task_token, activity("1", eager=False))
        asked = r.ResetWorkerAffinityRequest(execution=WorkflowExecution(workflow_id="order-1", run_id=run_id))
        before = types(await driver.history())
        for _ in range(2):
            await driver.engine.reset_worker_affinity(asked)
        assert types(await driver.history()) == before
        await driver.signal()
        task = await worker.take()
        assert not task.same_worker
        await driver.engine.reset_worker_affinity(asked)
        await worker.finish(task)
        with pytest.raises(NotFound):
            await driver.engine.reset_worker_affinity(asked)
