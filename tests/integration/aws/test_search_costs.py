"""What lists cost on DynamoDB, and what it costs to be found, counted by item size."""

from random import Random

import pytest

from stepwell_server.adapters.aws import visibility_search
from stepwell_server.history.tasks import RecordVisibility
from stepwell_server.visibility.pages import Page, Position
from stepwell_server.visibility.query import parse
from tests.integration.aws.conftest import Store
from tests.support import queries
from tests.support.queries import TYPES, Run
from tests.support.sample_commits import SampleRun

RUNS = 60
STATUSES = 8
UNINDEXED = {"Tags", "Note"}


async def project(store: Store, count: int) -> list[Run]:
    runs = queries.runs(Random(3), count)
    for run in runs:
        for commit in run.commits:
            await store.backend.visibility.project(commit)
    store.counter.reset()
    return runs


async def page(store: Store, text: str, after: Position | None = None, limit: int = 20) -> Page:
    return await store.backend.visibility.search("default", parse(text, TYPES), after=after, limit=limit)


async def test_pages(store: Store) -> None:
    runs = await project(store, RUNS)
    customer = next(run.values["Customer"] for run in runs if run.values.get("Customer") == "acme")
    id = runs[0].values["WorkflowId"].replace("'", "''")
    expected = {
        "": {"vis batch_get_item": 1, "vis query": 2 * STATUSES},
        "ExecutionStatus = 'Running'": {"vis batch_get_item": 1, "vis query": 2},
        "ExecutionStatus IN ('Failed', 'TimedOut') AND StartTime > '2030-01-01T00:00:00Z'": {"vis query": 4},
        f"WorkflowId = '{id}'": {"vis query": 1},
        f"Customer = '{customer}'": {"vis batch_get_item": 1, "vis query": 2},
    }
    for text, calls in expected.items():
        store.counter.reset()
        found = await page(store, text)
        assert store.counter.calls == calls, text
        # Half a unit a query that finds something, half a unit a record that is read for what it shows.
        assert store.counter.total.read_units <= calls["vis query"] + (len(found.executions) + 1) / 2, text


async def test_a_filter_that_no_index_leads_to_stops_at_its_budget(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = await project(store, RUNS)
    monkeypatch.setattr(visibility_search, "LIST_UNITS", 4)
    wanted = sorted(run.values["RunId"] for run in runs if "red" in run.values.get("Tags", ()))
    found: list[str] = []
    after: Position | None = None
    pages = 0
    while True:
        store.counter.reset()
        part = await page(store, "Tags = 'red'", after, limit=1_000)
        found += [info.execution.run_id for info in part.executions]
        # The first reads of all partitions, and one lot of records.
        assert store.counter.total.read_units <= STATUSES + 30
        pages += 1
        after = part.reached
        if after is None:
            break
    assert pages > 1 and sorted(found) == wanted


async def scanned(store: Store, text: str = "", limit: int = 20) -> tuple[list[str], int]:
    """Run ids, and in how many pages."""
    found: list[str] = []
    after: Position | None = None
    pages = 0
    while True:
        part = await store.backend.visibility.scan("default", parse(text, TYPES).filter, after=after, limit=limit)
        found += [info.execution.run_id for info in part.executions]
        after, pages = part.reached, pages + 1
        assert len(part.executions) <= limit
        if after is None:
            return found, pages


@pytest.mark.parametrize("limit", [1, 7, 20, 1_000])
async def test_a_scan_finds_each_once_and_reads_each_partition_once_and_once_a_page(store: Store, limit: int) -> None:
    runs = await project(store, RUNS)
    found, pages = await scanned(store, limit=limit)
    assert sorted(found) == sorted(run.values["RunId"] for run in runs)
    assert pages == -(-RUNS // limit)
    partitions = 2 * STATUSES
    assert store.counter.calls["vis query"] <= partitions + 5 * pages, "of a list it would be all partitions a page"


async def test_a_scan_obeys_its_filter_and_its_budget(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = await project(store, RUNS)
    for text in (
        "ExecutionStatus = 'Running'",
        "Tags = 'red'",
        "Customer = 'acme'",
        "StartTime > '2030-01-01T00:00:00Z'",
    ):
        found, _ = await scanned(store, text)
        expected = await page(store, text, limit=1_000)
        assert sorted(found) == sorted(info.execution.run_id for info in expected.executions), text
    monkeypatch.setattr(visibility_search, "LIST_UNITS", 2)
    found, pages = await scanned(store, "Tags = 'red'", limit=1_000)
    assert pages > 1 and sorted(found) == sorted(r.values["RunId"] for r in runs if "red" in r.values.get("Tags", ()))


async def test_a_run_that_closes_between_two_pages_is_not_missed(store: Store) -> None:
    run = next(run for run in queries.runs(Random(3), RUNS) if len(run.commits) == 2)
    start, end = run.commits
    await store.backend.visibility.project(start)
    for other in range(3):
        (commit, *_) = SampleRun(other).commits()
        await store.backend.visibility.project(commit)
    everything = parse("", TYPES).filter
    part = await store.backend.visibility.scan("default", everything, after=None, limit=1)
    await store.backend.visibility.project(end)
    found = [info.execution.run_id for info in part.executions]
    while part.reached is not None:
        part = await store.backend.visibility.scan("default", everything, after=part.reached, limit=1)
        found += [info.execution.run_id for info in part.executions]
    assert run.values["RunId"] in found


async def test_a_count_stops_at_its_budget_and_goes_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = await project(store, RUNS)
    monkeypatch.setattr(visibility_search, "COUNT_UNITS", 4)
    total, calls, after = 0, 0, None
    groups: dict[str | None, int] = {}
    query = parse("Amount IS NOT NULL OR Amount IS NULL GROUP BY WorkflowType", TYPES, counts=True)
    while True:
        counted = await store.backend.visibility.count("default", query, after=after)
        total, calls, after = total + counted.count, calls + 1, counted.reached
        for group in counted.groups:
            groups[group.value] = groups.get(group.value, 0) + group.count
        if after is None:
            break
    assert calls > 1 and total == RUNS == sum(groups.values())
    assert groups["order"] == len([run for run in runs if run.values["WorkflowType"] == "order"])


async def test_to_be_found_costs_one_unit_an_attribute(store: Store) -> None:
    plain = list(SampleRun(1).commits())
    for commit in plain:
        await store.backend.visibility.project(commit)
    assert store.counter.total.write_units == 2 + 3  # the record, and its row of the index, which moves at the close
    (start, end) = next(run for run in queries.runs(Random(3), RUNS) if len(run.commits) == 2).commits
    (record,) = (task for task in start.tasks if isinstance(task, RecordVisibility))
    indexed = record.search_attributes.keys() - UNINDEXED
    assert indexed
    store.counter.reset()
    await store.backend.visibility.project(start)
    assert store.counter.total.write_units == 2 + len(indexed)
    store.counter.reset()
    await store.backend.visibility.project(end)
    (record,) = (task for task in end.tasks if isinstance(task, RecordVisibility))
    assert store.counter.total.write_units >= 3 + len(
        [n for n in record.search_attributes if n not in ("Tags", "Note")]
    )
    store.counter.reset()
    await store.backend.visibility.project(end)  # the feed says it again
    assert not store.counter.total.written_bytes
