"""VI-16: an installation moves to a second visibility table while everything runs, and back."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from stepwell_server.adapters.aws.backend import aws_backend
from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.aws.tables import create_tables
from stepwell_server.adapters.aws.visibility_choice import VisibilityChoice
from stepwell_server.adapters.aws.visibility_table import VisibilityTable
from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.second_visibility import MAX_SHADOWS, SecondVisibility
from stepwell_server.common import metric_names as names
from stepwell_server.common.metrics import Gathered
from stepwell_server.entrypoints import aws_filling
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.ports import StoreRefused, StoreUnavailable
from stepwell_server.visibility.filters import Query
from tests.support.aws.cells import Cell, Provisioning
from tests.support.aws.clock import StandingClock
from tests.support.sample_commits import EPOCH, SampleRun

EVERYTHING = Query()
RETENTION = timedelta(days=7)


@pytest.fixture
async def clients() -> AsyncIterator[AwsClients]:
    made = AwsClients()
    yield made
    await made.close()


@pytest.fixture
def two_tables(cell: Cell, provisioning: Provisioning) -> Cell:
    create_tables(provisioning.dynamodb, cell.names, visibility=VisibilityChoice(second="vis2"))
    return cell


async def opened(cell: Cell, clients: AwsClients, choice: VisibilityChoice) -> Backend:
    settings = AwsSettings(cell.names.cell, cell.bucket, visibility=choice)
    return await aws_backend(settings, clients=clients, clock=StandingClock(EPOCH))


def tables_of(cell: Cell, clients: AwsClients) -> tuple[VisibilityTable, VisibilityTable]:
    dynamodb, clock = clients.service("dynamodb"), StandingClock(EPOCH)
    first, second = (
        VisibilityTable(dynamodb, table, clock, lambda namespace: RETENTION)
        for table in VisibilityChoice(second="vis2").tables(cell.names)
    )
    return first, second


async def written(backend: Backend, run: SampleRun) -> None:
    """Its start."""
    await write(backend, next(run.commits()))


async def write(backend: Backend, *commits: Commit) -> None:
    for commit in commits:
        await backend.log.append(commit)
        await backend.visibility.project(commit)


async def runs_in(store: Any) -> set[str]:
    page = await store.search("default", EVERYTHING, after=None, limit=100)
    return {each.execution.run_id for each in page.executions}


def key_of(run: SampleRun) -> ExecutionKey:
    return ExecutionKey("default", run.workflow_id)


def shadows(metrics: Gathered) -> dict[str, float]:
    return {
        series.dimensions[names.OUTCOME]: series.values[0]
        for series in metrics.take()
        if series.name == names.SHADOW_READS
    }


class Broken:
    """A table that cannot be written or read for now."""

    def __init__(self, table: VisibilityTable) -> None:
        self._table = table
        self.broken = True

    def __getattr__(self, name: str) -> Any:
        if self.broken and name in ("project", "remove", "search", "count"):
            return self._refuse
        return getattr(self._table, name)

    async def _refuse(self, *_: object, **__: object) -> None:
        raise StoreUnavailable("the table is throttled")


async def test_both_are_written_one_is_read_and_shadows_are_counted(two_tables: Cell, clients: AwsClients) -> None:
    clients.metrics = metrics = Gathered()
    backend = await opened(two_tables, clients, VisibilityChoice(second="vis2", shadow_percent=100))
    runs = [SampleRun(number) for number in range(3)]
    for run in runs:
        await written(backend, run)
    first, second = tables_of(two_tables, clients)
    assert await runs_in(first) == await runs_in(second) == {run.run_id for run in runs}
    assert await runs_in(backend.visibility) == {run.run_id for run in runs}
    assert (await backend.visibility.count("default", EVERYTHING, after=None)).count == 3
    assert shadows(metrics) == {names.EQUAL: 2}

    await second.remove(key_of(runs[0]), runs[0].run_id, EPOCH)
    assert len(await runs_in(backend.visibility)) == 3
    assert (await backend.visibility.count("default", EVERYTHING, after=None)).count == 3
    assert shadows(metrics) == {names.DIFFERENT: 2}


async def test_a_share_of_the_reads_has_a_shadow(two_tables: Cell, clients: AwsClients) -> None:
    clients.metrics = metrics = Gathered()
    backend = await opened(two_tables, clients, VisibilityChoice(second="vis2", shadow_percent=25))
    for _ in range(8):
        await runs_in(backend.visibility)
    assert shadows(metrics) == {names.EQUAL: 2}


async def test_a_write_that_one_table_missed_is_made_good_by_the_next_try(
    two_tables: Cell, clients: AwsClients
) -> None:
    """As the feed tries again: with either of them, and whatever the other one has by then."""
    tables = tables_of(two_tables, clients)
    for number in range(2):
        broken = Broken(tables[number])
        stores = [broken if other == number else tables[other] for other in range(2)]
        both = SecondVisibility(*stores, shadow_percent=0, waits=True, metrics=Gathered())  # type: ignore[arg-type]
        run = SampleRun(number)
        commit = next(run.commits())
        with pytest.raises(StoreUnavailable):
            await both.project(commit)
        assert run.run_id in await runs_in(tables[1 - number])
        assert run.run_id not in await runs_in(tables[number])
        broken.broken = False
        await both.project(commit)
        assert run.run_id in await runs_in(tables[number])

        broken.broken = True
        with pytest.raises(StoreUnavailable):
            await both.remove(key_of(run), run.run_id, EPOCH)
        broken.broken = False
        await both.remove(key_of(run), run.run_id, EPOCH)
        assert await runs_in(tables[0]) == await runs_in(tables[1]) == set()


@pytest.mark.parametrize("waits", [True, False])
async def test_a_shadow_that_fails_is_counted_and_nobody_is_told(
    two_tables: Cell, clients: AwsClients, waits: bool
) -> None:
    first, second = tables_of(two_tables, clients)
    metrics = Gathered()
    both = SecondVisibility(first, Broken(second), shadow_percent=100, waits=waits, metrics=metrics)  # type: ignore[arg-type]
    assert await runs_in(both) == set()
    await both.close()
    assert shadows(metrics) == {names.FAILED: 1}


async def test_who_stops_waiting_for_a_shadow_leaves_room_for_the_next(two_tables: Cell, clients: AwsClients) -> None:
    first, second = tables_of(two_tables, clients)
    answered = asyncio.Event()

    class Answers(Broken):
        async def _refuse(self, *asked: Any, **more: Any) -> Any:
            page = await first.search(*asked, **more)
            answered.set()
            return page

    class Hangs(Broken):
        async def _refuse(self, *_: object, **__: object) -> None:
            await asyncio.Event().wait()

    chosen, other, metrics = Answers(first), Hangs(second), Gathered()
    both = SecondVisibility(chosen, other, shadow_percent=100, waits=True, metrics=metrics)  # type: ignore[arg-type]
    for _ in range(MAX_SHADOWS):
        answered.clear()
        asked = asyncio.create_task(runs_in(both))
        await answered.wait()
        await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
    other.broken = False
    assert await runs_in(both) == set()
    assert shadows(metrics) == {names.EQUAL: 1}


async def test_to_the_second_table_and_back(two_tables: Cell, clients: AwsClients) -> None:
    """Writes to both, a copy of what was there before, reads from the second; pages go on across the switch."""
    old = await opened(two_tables, clients, VisibilityChoice())
    runs = [SampleRun(number) for number in range(7)]
    rest_of_first = runs[0].commits()
    await write(old, next(rest_of_first))
    for run in runs[1:5]:
        await written(old, run)
    await old.visibility.remove(key_of(runs[4]), runs[4].run_id, EPOCH)
    both = await opened(two_tables, clients, VisibilityChoice(second="vis2"))
    await written(both, runs[5])
    await write(both, *list(rest_of_first))
    first, second = tables_of(two_tables, clients)
    assert await runs_in(second) == {runs[5].run_id, runs[0].run_id}

    told: list[int] = []
    assert await aws_filling.fill(first, second, both.control, "vis2", told.append) == told[-1] == 6
    there = {run.run_id for number, run in enumerate(runs[:6]) if number != 4}
    assert await runs_in(first) == await runs_in(second) == there
    closed = await second.search("default", EVERYTHING, after=None, limit=100)
    assert {each.status.value for each in closed.executions if each.execution.run_id == runs[0].run_id} == {"COMPLETED"}

    page = await both.visibility.search("default", EVERYTHING, after=None, limit=2)
    switched = await opened(two_tables, clients, VisibilityChoice(second="vis2", reads="second"))
    rest = await switched.visibility.search("default", EVERYTHING, after=page.reached, limit=100)
    assert {each.execution.run_id for each in (*page.executions, *rest.executions)} == there
    await written(switched, runs[6])
    alone = await opened(two_tables, clients, VisibilityChoice(first="vis2"))
    assert await runs_in(alone.visibility) == await runs_in(old.visibility) == {*there, runs[6].run_id}


async def test_a_run_is_found_that_the_table_read_first_does_not_have(two_tables: Cell, clients: AwsClients) -> None:
    old = await opened(two_tables, clients, VisibilityChoice())
    run = SampleRun(1)
    await written(old, run)
    early = await opened(two_tables, clients, VisibilityChoice(second="vis2", reads="second"))
    assert await runs_in(early.visibility) == set()
    assert await early.log.find_run(key_of(run), run.run_id) is not None
    gone = ExecutionKey("default", "nobody")
    assert await early.log.find_run(gone, run.run_id) is None


async def test_a_copy_goes_on_where_it_was(
    two_tables: Cell, clients: AwsClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws_filling, "PAGE", 2)
    old = await opened(two_tables, clients, VisibilityChoice())
    for number in range(7):
        await written(old, SampleRun(number))
    first, second = tables_of(two_tables, clients)

    def dies(copied: int) -> None:
        if copied >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await aws_filling.fill(first, second, old.control, "vis2", dies)
    rest = await aws_filling.fill(first, second, old.control, "vis2", lambda copied: None)
    assert rest == 5  # the last page is looked at again
    assert await runs_in(second) == await runs_in(first)
    assert await aws_filling.fill(first, second, old.control, "vis2", lambda copied: None) == 7


async def test_a_copy_to_a_table_that_is_not_there_says_so(cell: Cell, clients: AwsClients) -> None:
    first, second = tables_of(cell, clients)
    control = (await opened(cell, clients, VisibilityChoice())).control
    with pytest.raises(StoreRefused, match="vis2"):
        await aws_filling.fill(first, second, control, "vis2", lambda copied: None)
