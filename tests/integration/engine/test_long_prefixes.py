"""The history that a reset keeps may be long: it is written in parts, and read as far as it is needed."""

from pathlib import Path
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.events import HistoryEvent

from tests.integration.engine.test_resets import checked
from tests.support.engine import Driver, activity, payload, running


async def pages(driver: Driver, run_id: str, size: int) -> list[HistoryEvent]:
    events: list[HistoryEvent] = []
    token: Any = b""
    while True:
        page = await driver.engine.get_history(
            r.GetHistoryRequest(
                execution=WorkflowExecution(workflow_id="order-1", run_id=run_id),
                maximum_page_size=size,
                next_page_token=token,
            )
        )
        events += page.events
        token = page.next_page_token
        if not token:
            return events


async def test_a_long_prefix_is_kept_in_parts_and_read_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepwell_server.history.machines.reset.PART_EVENTS", 4)
    async with running() as driver:
        await driver.start()
        for number in range(10):
            await driver.signal(name=f"s{number}")
            task = await driver.take()
            await driver.complete(task.task_token, activity(str(number), eager=False))
        driver.store.reset()
        second = await driver.reset()
        assert driver.store.writes["put_prefix"] > 5 and driver.store.writes["append"] == 1
        events = await checked(driver, second)
        for size in (1, 3, 4, 7, 1_000):
            assert await pages(driver, second, size) == events
        charges = await driver.poll_activities(maximum=10)
        assert sorted(charge.input[0].data for charge in charges) == [f'"{number}"'.encode() for number in range(9)]
        task = await driver.take()
        assert task.events[0].event_id == task.previous_started_event_id + 2
        point = next(event.event_id for event in events if event.event_type == "WorkflowTaskFailed")
        third = await driver.reset(point, run_id=second)
        assert (await checked(driver, third))[: point - 1] == events[: point - 1]


async def test_the_first_workflow_task_behind_a_long_prefix_reads_no_more_than_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Budget: also in a process that has nothing of the run in memory."""
    monkeypatch.setattr("stepwell_server.history.machines.reset.PART_EVENTS", 4)
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        await driver.start()
        for number in range(20):
            await driver.signal(name=f"s{number}")
            task = await driver.take()
            await driver.complete(task.task_token, activity(str(number), eager=False))
        second = await driver.reset()
    async with running(path) as driver:
        assert (await driver.describe()).info.execution.run_id == second and len(await driver.history()) > 80
        driver.store.events_read = 0
        (charge,) = await driver.poll_activities()
        assert charge.input == payload("0") and driver.store.events_read == 4
    async with running(path) as driver:
        driver.store.events_read = 0
        task = await driver.take()
        assert len(task.events) - 4 <= driver.store.events_read <= len(task.events) + 4
