"""Histories by page and long poll, lists."""

import asyncio
from datetime import timedelta

import pytest
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.errors import InvalidArgument, NotFound, Unavailable
from stepwell.api.limits import POLL_TIMEOUT
from stepwell.api.payloads import Payload

from tests.support.engine import activity, running, types

ORDER = WorkflowExecution(workflow_id="order-1")


async def test_pages_cut_through_a_large_commit() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        await driver.complete(task.task_token, *(activity(str(n), eager=False) for n in range(50)))
        token, seen = b"", []
        while True:
            page = await driver.engine.get_history(
                r.GetHistoryRequest(execution=ORDER, maximum_page_size=7, next_page_token=token)
            )
            assert len(page.events) <= 7
            seen += page.events
            token = page.next_page_token
            if not token:
                break
        assert [event.event_id for event in seen] == list(range(1, 55))


async def test_long_poll_gets_news_and_ends_with_the_run() -> None:
    async with running() as driver:
        await driver.start()
        first = await driver.engine.get_history(r.GetHistoryRequest(execution=ORDER, wait_new_event=True))
        assert types(first.events) == ["WorkflowExecutionStarted", "WorkflowTaskScheduled"]
        follow = r.GetHistoryRequest(execution=ORDER, wait_new_event=True, next_page_token=first.next_page_token)
        empty = await driver.engine.get_history(
            r.GetHistoryRequest(
                execution=ORDER,
                wait_new_event=True,
                next_page_token=first.next_page_token,
                timeout=timedelta(milliseconds=30),
            )
        )
        assert empty.events == () and empty.next_page_token == first.next_page_token
        waiting = asyncio.ensure_future(driver.engine.get_history(follow))
        await driver.finish(await driver.take())
        last = await asyncio.wait_for(waiting, 30)
        assert types(last.events)[-1] == "WorkflowExecutionCompleted" and last.next_page_token == b""


async def test_a_thousand_callers_wait_for_one_result() -> None:
    async with running() as driver:
        await driver.start()
        waiting = [asyncio.ensure_future(driver.result()) for _ in range(1_000)]
        await asyncio.sleep(0)
        await driver.finish(await driver.take())
        assert {event.event_type for event in await asyncio.gather(*waiting)} == {"WorkflowExecutionCompleted"}


async def test_the_result_of_an_earlier_run() -> None:
    async with running() as driver:
        first = await driver.start()
        await driver.finish(await driver.take(), "first")
        second = await driver.start()
        await driver.finish(await driver.take(), "second")
        for run_id, text in ((first, b'"first"'), (second, b'"second"')):
            page = await driver.engine.get_history(
                r.GetHistoryRequest(
                    execution=WorkflowExecution(workflow_id="order-1", run_id=run_id), close_event_only=True
                )
            )
            assert page.events[0].attributes.result[0].data == text  # type: ignore[union-attr]
        with pytest.raises(NotFound):
            await driver.history(run_id="no such run")
        with pytest.raises(InvalidArgument, match="next_page_token"):
            await driver.engine.get_history(r.GetHistoryRequest(execution=ORDER, next_page_token=b"forged"))


async def test_lists_by_page_newest_first() -> None:
    async with running() as driver:
        for number in range(5):
            await driver.start(f"order-{number}")
        found: list[str] = []
        token = b""
        while True:
            page = await driver.engine.list_workflows(r.ListWorkflowsRequest(page_size=2, next_page_token=token))
            found += [info.execution.workflow_id for info in page.executions]
            token = page.next_page_token
            if not token:
                break
        assert found == [f"order-{number}" for number in reversed(range(5))]
        await driver.finish(await driver.take())
        done = r.ListWorkflowsRequest(status=WorkflowExecutionStatus.COMPLETED)
        assert len((await driver.engine.list_workflows(done)).executions) == 1


async def test_open_long_polls_end_empty_when_the_engine_stops() -> None:
    async with running() as driver:
        await driver.start()
        await driver.complete((await driver.take()).task_token)
        ask = r.GetHistoryRequest(execution=ORDER, wait_new_event=True, close_event_only=True)
        waiting = [
            asyncio.ensure_future(driver.engine.get_history(ask)),
            asyncio.ensure_future(driver.poll_workflow(POLL_TIMEOUT)),
            asyncio.ensure_future(driver.poll_activities(timeout=POLL_TIMEOUT)),
        ]
        await asyncio.sleep(0.01)
        await driver.engine.stop()
        history, task, attempts = await asyncio.wait_for(asyncio.gather(*waiting), POLL_TIMEOUT.total_seconds() / 2)
        assert history.events == () and history.next_page_token and task is None and attempts == ()


async def test_pages_of_large_events_are_smaller() -> None:
    async with running() as driver:
        await driver.start()
        large = Payload(metadata={"encoding": "binary/plain"}, data=b"x" * 1_000_000)
        for _ in range(12):
            await driver.complete((await driver.take()).task_token)
            await driver.signal(input=(large,))
        page = await driver.engine.get_history(r.GetHistoryRequest(execution=ORDER))
        assert len(page.events) < 25 and page.next_page_token
        assert types(await driver.history()).count("WorkflowExecutionSignaled") == 12


async def test_a_stopping_engine_refuses_to_wait() -> None:
    async with running() as driver:
        await driver.start()
        await driver.engine.stop()
        with pytest.raises(Unavailable):
            await driver.poll_workflow()
        with pytest.raises(Unavailable):
            await driver.result()
        assert len(await driver.history()) == 2
