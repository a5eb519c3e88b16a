"""LC-08: the first workflow task comes with the answer to the start, and is as good as one that was polled."""

from datetime import timedelta

from stepwell.api import requests as r
from stepwell.api.commands import CompleteWorkflowExecution
from stepwell.api.enums import CompletionOutcome, WorkflowIDConflictPolicy

from tests.support.engine import QUEUE, Driver, activity, payload, running, types

SOON = timedelta(milliseconds=50)


async def start(driver: Driver, **more: object) -> r.StartWorkflowResponse:
    values: dict[str, object] = {"workflow_id": "order-1", "workflow_type": "order", "task_queue": QUEUE}
    request = r.StartWorkflowRequest(**(values | {"eager_worker": driver.worker} | more))  # type: ignore[arg-type]
    return await driver.engine.start_workflow(request)


async def test_it_costs_what_a_start_costs_and_nobody_else_gets_the_task() -> None:
    async with running() as driver:
        response = await start(driver)
        assert driver.store.writes == {"append": 1, "arm": 1} and driver.store.counts["head"] == 1
        task = response.eager_workflow_task
        assert task is not None and task.execution.run_id == response.run_id
        assert types(task.events) == ["WorkflowExecutionStarted", "WorkflowTaskScheduled", "WorkflowTaskStarted"]
        assert task.events[0].attributes.eager_execution_accepted  # type: ignore[union-attr]
        assert await driver.as_worker("other").poll_workflow(SOON) is None
        answer = await driver.complete(task.task_token, activity("1"), slots=1)
        assert answer.outcome is CompletionOutcome.ACCEPTED and answer.leases
        await driver.fused(answer, CompleteWorkflowExecution(result=payload("1")), now=answer.commit_time)  # type: ignore[arg-type]
        assert (await driver.result()).event_type == "WorkflowExecutionCompleted"


async def test_a_task_that_did_not_arrive_is_offered_again() -> None:
    async with running() as driver:
        lost = await start(driver, workflow_task_timeout=SOON)
        task = await driver.as_worker("other").take()
        assert task.execution.run_id == lost.run_id
        await driver.finish(task)


async def test_only_the_start_that_made_the_run_gets_it() -> None:
    async with running() as driver:
        first = await start(driver, request_id="one")
        for more in (
            {"request_id": "one"},
            {"request_id": "two", "workflow_id_conflict_policy": WorkflowIDConflictPolicy.USE_EXISTING},
        ):
            again = await start(driver, **more)
            assert (again.run_id, again.eager_workflow_task) == (first.run_id, None)


async def test_not_while_the_first_task_has_to_wait() -> None:
    async with running() as driver:
        response = await start(driver, workflow_start_delay=timedelta(hours=1))
        assert response.eager_workflow_task is None
        assert not (await driver.history())[0].attributes.eager_execution_accepted  # type: ignore[union-attr]
        response = await start(driver, workflow_id="cron", cron_schedule="@daily")
        assert response.eager_workflow_task is None


async def test_without_a_worker_at_hand_there_is_none() -> None:
    async with running() as driver:
        response = await start(driver, eager_worker=None)
        assert response.eager_workflow_task is None and await driver.take()
