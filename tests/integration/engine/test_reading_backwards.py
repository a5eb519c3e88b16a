"""Histories newest first (LC-45): the same events as forward, whatever the pages cut through."""

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import ContinueAsNewWorkflowExecution
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import InvalidArgument, NotFound
from stepwell.api.events import HistoryEvent

from tests.support.engine import QUEUE, Driver, activity, running


async def backwards(driver: Driver, size: int, run_id: str = "") -> list[HistoryEvent]:
    events: list[HistoryEvent] = []
    token = b""
    while True:
        page = await driver.engine.get_history(
            r.GetHistoryRequest(
                execution=WorkflowExecution(workflow_id="order-1", run_id=run_id),
                maximum_page_size=size,
                next_page_token=token,
                reverse=True,
            )
        )
        assert len(page.events) <= size and (page.events or not page.next_page_token)
        events += page.events
        token = page.next_page_token
        if not token:
            return events


async def same(driver: Driver, run_id: str = "") -> None:
    forward = await driver.history(run_id=run_id)
    assert len(forward) > 3
    for size in (1, 3, 4, 7, 1_000):
        assert await backwards(driver, size, run_id) == forward[::-1]


async def test_pages_cut_through_commits_and_runs_share_one() -> None:
    async with running() as driver:
        first = await driver.start()
        await driver.complete((await driver.take()).task_token, *(activity(str(n), eager=False) for n in range(20)))
        await same(driver)
        await driver.signal()
        again = ContinueAsNewWorkflowExecution(workflow_type="order", task_queue=QUEUE)
        await driver.complete((await driver.take()).task_token, again)
        await driver.finish(await driver.take())
        await same(driver)
        await same(driver, first)


async def test_a_run_that_a_reset_made_reads_on_in_its_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepwell_server.history.machines.reset.PART_EVENTS", 4)
    async with running() as driver:
        first = await driver.start()
        for number in range(9):
            await driver.signal(name=f"s{number}")
            await driver.complete((await driver.take()).task_token, activity(str(number), eager=False))
        second = await driver.reset()
        await same(driver, second)
        await same(driver, first)


async def test_a_page_costs_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the history is."""
    async with running() as driver:
        await driver.start()
        for number in range(60):
            await driver.signal(name=f"s{number}")
            await driver.complete((await driver.take()).task_token, activity(str(number), eager=False))
        driver.store.reset()
        await driver.engine.get_history(
            r.GetHistoryRequest(execution=WorkflowExecution(workflow_id="order-1"), maximum_page_size=5, reverse=True)
        )
        assert driver.store.counts["get"] <= 16


async def test_what_comes_in_meanwhile_is_in_no_later_page() -> None:
    async with running() as driver:
        await driver.start()
        page = r.GetHistoryRequest(
            execution=WorkflowExecution(workflow_id="order-1"), maximum_page_size=1, reverse=True
        )
        first = await driver.engine.get_history(page)
        await driver.finish(await driver.take())
        rest = r.GetHistoryRequest(execution=page.execution, reverse=True, next_page_token=first.next_page_token)
        seen = [*first.events, *(await driver.engine.get_history(rest)).events]
        assert [event.event_id for event in seen] == [2, 1]


async def test_tokens_go_with_their_direction_and_their_run() -> None:
    async with running() as driver:
        await driver.start()
        await driver.start("order-2")
        page = r.GetHistoryRequest(
            execution=WorkflowExecution(workflow_id="order-1"), maximum_page_size=1, reverse=True
        )
        token = (await driver.engine.get_history(page)).next_page_token
        for other in (
            r.GetHistoryRequest(execution=page.execution, next_page_token=token),
            r.GetHistoryRequest(
                execution=WorkflowExecution(workflow_id="order-2"), next_page_token=token, reverse=True
            ),
        ):
            with pytest.raises(InvalidArgument, match="next_page_token"):
                await driver.engine.get_history(other)
        with pytest.raises(NotFound):
            await backwards(driver, 3, "11111111-1111-4111-8111-111111111111")


async def test_the_first_page_says_where_what_comes_is_read() -> None:
    async with running() as driver:
        run_id = await driver.start()
        execution = WorkflowExecution(workflow_id="order-1")
        request = r.GetHistoryRequest(execution=execution, maximum_page_size=1, reverse=True)
        newest = await driver.engine.get_history(request)
        assert [event.event_id for event in newest.events] == [2]
        await driver.complete((await driver.take()).task_token, activity("1", eager=False))
        driver.store.events_read = 0
        later = await driver.engine.get_history(
            r.GetHistoryRequest(execution=execution, next_page_token=newest.following_token, wait_new_event=True)
        )
        assert [event.event_id for event in later.events] == [3, 4, 5] and later.run_id == run_id
        assert driver.store.events_read == 3
