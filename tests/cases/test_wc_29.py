"""WC-29: many runs with one start time, and pages that end between them: each is found once, the last page says so."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import msgspec
import pytest
from stepwell.api import requests as r
from stepwell.api.enums import ScheduleOverlapPolicy
from stepwell.api.requests import WorkflowExecutionInfo
from stepwell.api.schedules import ScheduleState

from stepwell_server.adapters.backend import Backend
from stepwell_server.history.tasks import RecordVisibility
from stepwell_server.visibility.pages import Position
from stepwell_server.visibility.query import parse
from tests.contract.conftest import on_emulated_dynamodb, on_memory
from tests.support.queries import TYPES, payload
from tests.support.sample_commits import EPOCH, SampleRun
from tests.support.scheduled import T0, Scheduled, schedule, scheduled

BURST = 500
BACKFILLED = 250
SCHEDULES = 130
SIZES = (1, 7, 50, 100, 125, 250)
MINUTE = timedelta(minutes=1)
STORES: dict[str, Callable[[pytest.FixtureRequest], Awaitable[Backend]]] = {
    "sqlite": on_memory,
    "dynamodb-emulated": on_emulated_dynamodb,
}


@pytest.fixture(params=list(STORES))
async def burst(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    """Runs that all began at one moment; every tenth is in a hurry."""
    backend = await STORES[request.param](request)
    for number in range(BURST):
        start = next(SampleRun(number, start_time=EPOCH).commits())
        (record,) = (task for task in start.tasks if isinstance(task, RecordVisibility))
        values = {"Amount": payload(TYPES["Amount"], 1 if number % 10 == 0 else 0)}
        record = msgspec.structs.replace(record, search_attributes=values)
        await backend.log.append(msgspec.structs.replace(start, tasks=(record,)))
    yield backend
    await backend.close()


async def pages(backend: Backend, text: str, size: int) -> AsyncIterator[list[WorkflowExecutionInfo]]:
    query = parse(text, TYPES, ordered_by=backend.visibility.ordered_by)
    after: Position | None = None
    while True:
        page = await backend.visibility.search("default", query, after=after, limit=size)
        yield page.executions
        after = page.reached
        if after is None:
            return


@pytest.mark.parametrize("size", [7, 50, 100, 125, 250, 500])
async def test_each_once_whatever_the_page(burst: Backend, size: int) -> None:
    for text, expected in [
        ("", BURST),
        ("ORDER BY StartTime", BURST),
        ("Amount IS NOT NULL ORDER BY Amount DESC", BURST),
        ("Amount = 1", BURST // 10),
        ("Amount > 0", BURST // 10),
        ("Amount > 0 ORDER BY StartTime", BURST // 10),
        ("Amount IN (1, 7) AND ExecutionStatus = 'Running' ORDER BY Amount", BURST // 10),
    ]:
        ids = []
        async for page in pages(burst, text, size):
            # Enough is there for every page but the last to be full, and no page is empty.
            assert page and len(page) == min(size, expected - len(ids)), text
            ids += [info.execution.run_id for info in page]
        assert len(ids) == len(set(ids)) == expected, text
        if "ORDER" not in text:
            counted = await burst.visibility.count("default", parse(text, TYPES, counts=True), after=None)
            assert counted.count == expected
            assert ids == sorted(ids, reverse=True)


async def test_pages_of_one(burst: Backend) -> None:
    ids = [page[0].execution.run_id async for page in pages(burst, "Amount = 1 ORDER BY StartTime", 1)]
    assert ids == sorted(set(ids)) and len(ids) == BURST // 10


async def backfilled(s: Scheduled) -> None:
    """So many runs at one moment by a backfill; starts have a rate, so the moment lasts until all are there."""
    paused = ScheduleState(paused=True)
    await s.create(schedule=schedule(MINUTE, ScheduleOverlapPolicy.ALLOW_ALL, state=paused))
    await s.patch(backfill=(r.BackfillRequest(start_time=T0 - BACKFILLED * MINUTE, end_time=T0),))
    for second in range(1, 30):
        await s.at(T0 + timedelta(seconds=second))
        if (await s.describe()).info.action_count == BACKFILLED:
            return
    raise AssertionError("the backfill does not end")


async def found(s: Scheduled, query: str, size: int) -> list[WorkflowExecutionInfo]:
    infos: list[WorkflowExecutionInfo] = []
    token = b""
    while True:
        request = r.ListWorkflowsRequest(query=query, page_size=size, next_page_token=token)
        page = await s.engine.list_workflows(request)
        assert page.executions and len(page.executions) <= size
        infos += page.executions
        token = page.next_page_token
        if not token:
            return infos


async def test_a_burst_by_backfill() -> None:
    async with scheduled() as s:
        await backfilled(s)
        mine = "StepwellScheduledById = 's'"
        tenth = f"{mine} AND StepwellScheduledStartTime > '{(T0 - BACKFILLED // 10 * MINUTE).isoformat()}'"
        times = {info.start_time for info in await found(s, mine, 100)}
        assert len(times) < BACKFILLED / 20, "many have the same start time"
        for query, expected in [
            (mine, BACKFILLED),
            (f"{mine} ORDER BY StartTime", BACKFILLED),
            (f"{mine} ORDER BY StepwellScheduledStartTime DESC", BACKFILLED),
            (tenth, BACKFILLED // 10),
            (f"{tenth} ORDER BY StartTime", BACKFILLED // 10),
        ]:
            for size in SIZES:
                ids = [info.execution.workflow_id for info in await found(s, query, size)]
                assert len(ids) == len(set(ids)) == expected, (query, size)
            if "ORDER" not in query:
                counted = await s.engine.count_workflows(r.CountWorkflowsRequest(query=query))
                assert counted.count == expected


async def test_the_list_of_schedules() -> None:
    async with scheduled() as s:
        for number in range(SCHEDULES):
            await s.create(f"s{number}", schedule=schedule(state=ScheduleState(paused=number % 10 == 0)))
        for query, expected in [("", SCHEDULES), ("StepwellSchedulePaused = true", SCHEDULES // 10)]:
            for size in (*SIZES, SCHEDULES):
                ids: list[str] = []
                token = b""
                while True:
                    request = r.ListSchedulesRequest(query=query, page_size=size, next_page_token=token)
                    page = await s.call("ListSchedules", request)
                    assert page.schedules and len(page.schedules) <= size
                    ids += [entry.schedule_id for entry in page.schedules]
                    token = page.next_page_token
                    if not token:
                        break
                assert ids == sorted(set(ids)) and len(ids) == expected, (query, size)
