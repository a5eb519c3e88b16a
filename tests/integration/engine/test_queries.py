"""Queries: answered by a worker, refused where nobody could, never in the history."""

import asyncio
from datetime import timedelta

import pytest
from stepwell.api import commands as c
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import QueryRejectCondition
from stepwell.api.errors import DeadlineExceeded, FailedPrecondition, NotFound, QueryFailed, QueryRejected

from tests.support.engine import Driver, failure, payload, running, types

SECOND = timedelta(seconds=1)


def ask(driver: Driver, timeout: timedelta = SECOND, **more: object) -> "asyncio.Future[r.QueryWorkflowResponse]":
    request = r.QueryWorkflowRequest(
        execution=WorkflowExecution(workflow_id="order-1"), query_type="status", timeout=timeout, **more
    )
    return asyncio.ensure_future(driver.engine.query_workflow(request))


async def answer(driver: Driver, task: r.WorkflowTask, text: str) -> None:
    await driver.engine.respond_query_task_completed(
        r.RespondQueryTaskCompletedRequest(task_token=task.task_token, result=payload(text))
    )


async def test_without_a_task_outstanding_the_query_goes_to_a_worker_directly() -> None:
    async with running() as driver:
        run_id = await driver.start()
        first = await driver.take()
        await driver.complete(first.task_token)
        driver.store.reset()
        asked = ask(driver)
        task = await driver.take()
        assert task.query is not None and task.query.query_type == "status"
        assert task.execution.run_id == run_id and task.events == ()
        assert task.last_event_id == 4 and task.previous_started_event_id == first.started_event_id
        await answer(driver, task, "fine")
        assert (await asked).result == payload("fine")
        assert not driver.store.writes
        with pytest.raises(NotFound):
            await answer(driver, task, "again")


async def test_a_query_waits_for_the_outstanding_task() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        asked = ask(driver)
        assert await driver.poll_workflow(timedelta(milliseconds=50)) is None
        await driver.complete(task.task_token)
        task = await driver.take()
        await answer(driver, task, "seen all")
        assert (await asked).result == payload("seen all")


async def test_a_query_that_a_signal_overtakes_sees_the_signal() -> None:
    async with running() as driver:
        await driver.start()
        await driver.complete((await driver.take()).task_token)
        asked = ask(driver)
        await asyncio.sleep(0)
        await driver.signal()
        task = await driver.take()
        while task.query is None:
            await driver.complete(task.task_token)
            task = await driver.take()
        await answer(driver, task, "after")
        assert (await asked).result == payload("after")


async def test_a_failing_task_refuses_queries_at_once_and_names_the_cause() -> None:
    """WC-18."""
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        waiting = ask(driver, timedelta(seconds=10))
        await asyncio.sleep(0)
        await driver.fail_task(task.task_token, "division by zero")
        with pytest.raises(FailedPrecondition, match="division by zero"):
            await asyncio.wait_for(waiting, 7)
        with pytest.raises(FailedPrecondition, match="WORKFLOW_WORKER_UNHANDLED_FAILURE"):
            await asyncio.wait_for(ask(driver, timedelta(seconds=10)), 7)


async def test_a_closed_run_answers_unless_the_caller_minds() -> None:
    async with running() as driver:
        await driver.start()
        await driver.finish(await driver.take())
        asked = ask(driver)
        await answer(driver, await driver.take(), "closed")
        assert (await asked).result == payload("closed")
        with pytest.raises(QueryRejected, match="COMPLETED"):
            await ask(driver, query_reject_condition=QueryRejectCondition.NOT_OPEN)


@pytest.mark.parametrize("completed", [True, False])
async def test_a_run_that_did_not_complete_cleanly_is_refused_when_the_caller_minds(completed: bool) -> None:
    async with running() as driver:
        await driver.start()
        asked = ask(driver, query_reject_condition=QueryRejectCondition.NOT_COMPLETED_CLEANLY)
        first = await driver.take()
        if completed:
            await driver.finish(first)
        else:
            command = c.FailWorkflowExecution(failure=failure("no"))
            await driver.complete(first.task_token, command)
        await answer(driver, await driver.take(), "was open when asked")
        assert (await asked).result == payload("was open when asked")
        again = ask(driver, query_reject_condition=QueryRejectCondition.NOT_COMPLETED_CLEANLY)
        if completed:
            await answer(driver, await driver.take(), "closed")
            assert (await again).result == payload("closed")
        else:
            with pytest.raises(QueryRejected, match="FAILED"):
                await again


async def test_nobody_polls() -> None:
    """MS-23."""
    async with running(query_reconnect_grace=timedelta(0)) as driver:
        await driver.start()
        with pytest.raises(FailedPrecondition, match="no worker has polled"):
            await ask(driver, timedelta(seconds=10))


async def test_who_asks_to_may_wait_for_a_worker() -> None:
    async with running(query_reconnect_grace=timedelta(0)) as driver:
        await driver.start()
        asking = asyncio.create_task(
            driver.engine.query_workflow(
                r.QueryWorkflowRequest(
                    execution=WorkflowExecution(workflow_id="order-1"), query_type="state", wait_for_worker=True
                )
            )
        )
        await driver.complete((await driver.take()).task_token)
        task = await driver.take()
        assert task.query is not None
        asked = r.RespondQueryTaskCompletedRequest(task_token=task.task_token, result=payload("here"))
        await driver.engine.respond_query_task_completed(asked)
        assert (await asking).result == payload("here")


async def test_nobody_answers() -> None:
    async with running() as driver:
        await driver.start()
        await driver.complete((await driver.take()).task_token)
        with pytest.raises(DeadlineExceeded):
            await ask(driver, timedelta(milliseconds=100))
        assert await driver.poll_workflow(timedelta(milliseconds=50)) is None


async def test_the_handler_fails() -> None:
    async with running() as driver:
        await driver.start()
        await driver.complete((await driver.take()).task_token)
        asked = ask(driver)
        task = await driver.take()
        await driver.engine.respond_query_task_completed(
            r.RespondQueryTaskCompletedRequest(task_token=task.task_token, failure=failure("no such handler"))
        )
        with pytest.raises(QueryFailed, match="no such handler"):
            await asked


async def test_who_has_read_an_event_is_never_answered_from_before_it() -> None:
    """MS-20: a store shows a commit a moment before the engine knows that it is there."""
    async with running() as driver:
        await driver.start()
        await driver.complete((await driver.take()).task_token)
        driver.store.reset()
        held = driver.store.hold = asyncio.Event()
        signalled = asyncio.ensure_future(driver.signal())
        while not driver.store.commits:
            await asyncio.sleep(0)
        reading = asyncio.ensure_future(driver.history())
        assert not (await asyncio.wait([reading], timeout=0.2))[0]
        held.set()
        driver.store.hold = None
        await signalled
        assert "WorkflowExecutionSignaled" in types(await reading)
        asked = ask(driver)
        task = await driver.take()
        assert task.query is None
        await driver.complete(task.task_token)
        await answer(driver, await driver.take(), "told")
        assert (await asked).result == payload("told")
