"""A workflow task that is followed by another at once, which comes with the answer (AC-24)."""

import asyncio
from datetime import timedelta
from pathlib import Path

from stepwell.api import requests as r
from stepwell.api.commands import CompleteWorkflowExecution, RecordMarker

from tests.integration.engine.test_queries import answer, ask
from tests.support.engine import Driver, running, types

BRIEF = timedelta(milliseconds=60)
TASK = ["WorkflowTaskScheduled", "WorkflowTaskStarted"]
MARKER = RecordMarker(marker_name="local_activity")


async def keep(driver: Driver, task: r.WorkflowTask, **more: object) -> r.RespondWorkflowTaskCompletedResponse:
    more = {"force_new_workflow_task": True, "return_new_workflow_task": True} | more
    return await driver.complete(task.task_token, MARKER, **more)  # type: ignore[arg-type]


async def test_the_next_task_comes_with_the_answer_and_to_nobody_else() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        driver.store.reset()
        kept = await keep(driver, task)
        assert driver.store.writes == {"append": 1} and not kept.fusible
        following = kept.workflow_task
        assert following is not None and types(following.events)[-2:] == TASK
        assert following.previous_started_event_id == task.started_event_id
        assert await driver.poll_workflow(BRIEF) is None
        await driver.finish(following)
        assert types(await driver.history()) == [
            "WorkflowExecutionStarted",
            *(["WorkflowTaskScheduled", "WorkflowTaskStarted", "WorkflowTaskCompleted", "MarkerRecorded"] * 2)[:-1],
            "WorkflowExecutionCompleted",
        ]


async def test_what_came_in_meanwhile_is_in_the_next_task() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        await driver.signal()
        following = (await keep(driver, task)).workflow_task
        assert following is not None
        assert types(following.events)[-3:] == ["WorkflowExecutionSignaled", *TASK]
        await driver.signal()
        following = (await keep(driver, following)).workflow_task
        assert following is not None and "WorkflowExecutionSignaled" in types(following.events)
        await driver.finish(following)


async def test_the_task_is_left_to_others() -> None:
    async with running() as driver:
        await driver.start()
        answered = await keep(driver, await driver.take(), return_new_workflow_task=False)
        assert answered.workflow_task is None
        await driver.as_worker("another").finish(await driver.as_worker("another").take())


async def test_a_repeat_whose_answer_was_lost_gets_the_task_again() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        first = await keep(driver, task, nonce="n")
        driver.store.reset()
        again = await keep(driver, task, nonce="n")
        assert not driver.store.writes
        assert again.workflow_task is not None and first.workflow_task is not None
        assert types(again.workflow_task.events) == types(first.workflow_task.events)
        await driver.finish(again.workflow_task)
        late = await driver.complete(first.workflow_task.task_token)
        assert late.outcome == "STALE"


async def test_a_worker_that_is_lost_with_it_is_followed_by_another() -> None:
    async with running() as driver:
        await driver.start(workflow_task_timeout=timedelta(milliseconds=100))
        kept = await keep(driver, await driver.take())
        assert kept.workflow_task is not None
        another = driver.as_worker("another")
        offered = await another.take()
        assert offered.previous_started_event_id == kept.workflow_task.previous_started_event_id
        await another.finish(offered)


async def test_after_a_restart_it_is_offered(tmp_path: Path) -> None:
    async with running(tmp_path / "orders.db") as driver:
        await driver.start()
        assert (await keep(driver, await driver.take())).workflow_task is not None
    async with running(tmp_path / "orders.db") as driver:
        await driver.finish(await driver.take())


async def test_a_store_that_fails_behind_the_write_leaves_the_task_to_the_queue() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        shell = driver.engine._workflow_tasks
        begin, shell.begin = shell.begin, _fails  # type: ignore[method-assign]
        try:
            answered = await asyncio.gather(keep(driver, task, nonce="n"), return_exceptions=True)
        finally:
            shell.begin = begin  # type: ignore[method-assign]
        assert isinstance(answered[0], ConnectionError)
        await driver.finish(await driver.take())


async def _fails(*_: object) -> None:
    raise ConnectionError("the store is away")


async def test_queries_go_to_the_worker_unless_something_new_has_come() -> None:
    async with running() as driver:
        await driver.start()
        kept = await keep(driver, await driver.take())
        assert kept.workflow_task is not None
        asked = ask(driver)
        await answer(driver, await driver.take(), "between")
        await asked
        await driver.signal()
        asked = ask(driver)
        assert await driver.poll_workflow(BRIEF) is None  # it would not see the signal
        kept = await keep(driver, kept.workflow_task)
        assert kept.workflow_task is not None
        kept = await keep(driver, kept.workflow_task)
        await answer(driver, await driver.take(), "behind it")
        await asked


async def test_the_end_of_a_run_has_no_task_behind_it() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        ended = await driver.complete(
            task.task_token, CompleteWorkflowExecution(), force_new_workflow_task=True, return_new_workflow_task=True
        )
        assert ended.outcome == "ACCEPTED" and ended.workflow_task is None
