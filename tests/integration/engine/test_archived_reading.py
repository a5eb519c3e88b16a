"""Runs whose retention is over are read from the archive, and found there (OP-08, VI-17)."""

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.common import Memo, WorkflowExecution
from stepwell.api.errors import FailedPrecondition, InvalidArgument, NotFound, WorkflowExecutionAlreadyStarted
from stepwell.api.events import HistoryEvent
from stepwell.api.limits import MAX_ARCHIVE_SCAN
from stepwell.api.payloads import Payload
from stepwell.client import Client, RPCError, WorkflowFailureError

from stepwell_server.entrypoints.inspecting import open_inspection
from stepwell_server.frontend.routes import HANDLERS
from stepwell_server.history import archive_objects
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.engine import Engine
from stepwell_server.visibility.attributes import ValueType
from stepwell_server.visibility.evaluate import matches
from stepwell_server.visibility.query import parse
from tests.support.archived import LONG, SHOP, Shop, shop
from tests.support.cases import until

KEY = ExecutionKey(SHOP, "w")


@pytest.fixture
async def store() -> AsyncIterator[Shop]:
    async with shop() as made:
        yield made


def city(name: str) -> Memo:
    return {"City": Payload(metadata={"type": "Keyword"}, data=f'"{name}"'.encode())}


async def removed(store: Shop, *workflow_ids: str) -> None:
    """Their retention is over."""
    for workflow_id in workflow_ids or ("w",):
        await store.paid(workflow_id)
    store.clock.shift += LONG
    await store.sweep()


async def found(store: Shop, query: str = "", **more: Any) -> r.ListArchivedWorkflowsResponse:
    request = r.ListArchivedWorkflowsRequest(namespace=SHOP, query=query, **more)
    return await store.engine.list_archived_workflows(request)


async def test_a_history_is_read_as_it_was(store: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """In parts, in pages, backwards, and its end alone."""
    monkeypatch.setattr(archive_objects, "PART_EVENTS", 4)
    run_id = await store.start()
    for number in range(9):
        await store.signal(f"{number}")
    await store.end()
    events = await store.pages(run_id)
    await removed(store)
    assert len(events) > 8
    store.blobs.gets.clear()
    assert await store.pages(run_id, maximum_page_size=3) == events
    assert await store.pages(run_id) == events
    assert await store.pages(run_id, reverse=True) == events[::-1]
    assert await store.pages(run_id, reverse=True, maximum_page_size=3) == events[::-1]
    assert await store.pages(run_id, close_event_only=True, wait_new_event=True) == events[-1:]
    with pytest.raises(NotFound):
        await store.pages(run_id, skip_archival=True)
    with pytest.raises(NotFound):
        await store.pages("")


async def test_a_page_costs_one_object(store: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_objects, "PART_EVENTS", 4)
    run_id = await store.start()
    for number in range(12):
        await store.signal(f"{number}")
    await store.end()
    await removed(store)
    execution = WorkflowExecution(workflow_id="w", run_id=run_id)
    page = await store.engine.get_history(r.GetHistoryRequest(namespace=SHOP, execution=execution))
    while page.next_page_token:
        store.blobs.gets.clear()
        asked = r.GetHistoryRequest(namespace=SHOP, execution=execution, next_page_token=page.next_page_token)
        page = await store.engine.get_history(asked)
        assert len(store.blobs.gets) == 1


async def test_who_was_reading_when_retention_came_is_told_to_begin_anew(store: Shop) -> None:
    run_id = await store.ended()
    execution = WorkflowExecution(workflow_id="w", run_id=run_id)
    first = r.GetHistoryRequest(namespace=SHOP, execution=execution, maximum_page_size=1)
    token = (await store.engine.get_history(first)).next_page_token
    assert token
    await removed(store)
    with pytest.raises(NotFound, match="without next_page_token"):
        await store.engine.get_history(
            r.GetHistoryRequest(namespace=SHOP, execution=execution, next_page_token=token, maximum_page_size=1)
        )
    page = await store.engine.get_history(first)
    other = WorkflowExecution(workflow_id="another")
    with pytest.raises(InvalidArgument, match="another workflow"):
        await store.engine.get_history(
            r.GetHistoryRequest(namespace=SHOP, execution=other, next_page_token=page.next_page_token)
        )


async def test_what_describe_says_and_what_a_deletion_leaves(store: Shop) -> None:
    run_id = await store.ended()
    await removed(store)
    execution = WorkflowExecution(workflow_id="w", run_id=run_id)
    with pytest.raises(NotFound, match="its history is in the archive"):
        await store.engine.describe_workflow(r.DescribeWorkflowRequest(namespace=SHOP, execution=execution))
    await store.engine.delete_workflow(r.DeleteWorkflowRequest(namespace=SHOP, execution=execution))
    with pytest.raises(NotFound):
        await store.pages(run_id)
    assert not (await found(store)).executions
    with pytest.raises(NotFound):
        await store.engine.delete_workflow(r.DeleteWorkflowRequest(namespace=SHOP, execution=execution))


QUERIES = [
    "WorkflowType = 'order'",
    "WorkflowId STARTS_WITH 'w1' AND ExecutionStatus = 'Terminated'",
    "City IN ('a', 'b')",
    "City IS NULL OR City = 'c'",
    "NOT (TaskQueue = 'q' AND HistoryLength > 100)",
    "ExecutionDuration < '1h' AND RootWorkflowId = 'w3'",
]


async def test_it_finds_what_the_filter_language_means(store: Shop) -> None:
    """Compared with the evaluation of the same filter over what lists showed; newest close first."""
    names = [f"w{number}" for number in range(12)]
    for number, name in enumerate(names):
        await store.ended(name, search_attributes=city("abcd"[number % 4]) if number % 5 else {})
    listed = (await store.engine.list_workflows(r.ListWorkflowsRequest(namespace=SHOP))).executions
    await removed(store, *names)
    everything = (await found(store)).executions
    assert sorted(everything, key=lambda info: info.start_time, reverse=True) == list(listed)
    closes = [info.close_time for info in everything if info.close_time is not None]
    assert closes == sorted(closes, reverse=True)
    rows = [run for run in await store.archives.indexed((await store.archives.index(SHOP, "", 99)).names) if run]
    for query in QUERIES:
        filter_ = parse(query, {"City": ValueType.KEYWORD}).filter
        expected = [row.workflow_id for row in rows if matches(filter_, archive_objects.values_of(row))]
        assert [info.execution.workflow_id for info in (await found(store, query)).executions] == expected, query
    assert len({query: None for query in QUERIES if (await found(store, query)).executions}) == len(QUERIES)


async def test_bounds_of_the_close_decide_what_is_looked_at(store: Shop) -> None:
    for number in range(6):
        store.clock.shift = timedelta(hours=5 * number)
        await store.ended(f"w{number}")
    for number in range(6):
        await store.paid(f"w{number}")
    closes = [info.close_time for info in (await found(store)).executions]
    assert None not in closes and len(closes) == 6
    third, last_but_one = (f"{time:%Y-%m-%dT%H:%M:%S.%fZ}" for time in (closes[2], closes[4]) if time is not None)
    page = await found(store, f"CloseTime <= '{third}' AND CloseTime >= '{last_but_one}'")
    assert [info.close_time for info in page.executions] == closes[2:5] and page.scanned_count == 3
    assert not page.next_page_token
    assert (await found(store, f"CloseTime = '{third}'")).scanned_count == 1
    assert (await found(store, "CloseTime > '2999-01-01T00:00:00Z'")).scanned_count == 0


async def test_pages_are_stable_while_others_are_archived(store: Shop) -> None:
    for number in range(7):
        await store.ended(f"w{number}")
        await store.paid(f"w{number}")
    expected = [f"w{number}" for number in reversed(range(7))]
    ids: list[str] = []
    token = b""
    while True:
        page = await found(store, page_size=3, next_page_token=token)
        ids += [info.execution.workflow_id for info in page.executions]
        assert len(page.executions) <= 3
        await store.ended(f"later{len(ids)}")
        await store.paid(f"later{len(ids)}")
        token = page.next_page_token
        if not token:
            break
    assert ids == expected
    token = (await found(store, page_size=3)).next_page_token
    with pytest.raises(InvalidArgument, match="another list"):
        await found(store, "WorkflowType = 'x'", next_page_token=token)


async def test_a_call_looks_at_so_many_and_says_so(store: Shop) -> None:
    """However many there are, and however few it finds."""
    await store.ended()
    await store.paid()
    run = await store.archives.run(KEY, (await found(store)).executions[0].execution.run_id)
    assert run is not None
    line = archive_objects.packed([archive_objects.run_line(run)])
    for number in range(1, MAX_ARCHIVE_SCAN + 50):
        closed = run.closed - timedelta(minutes=number)
        await store.blobs.put(archive_objects.index_name(SHOP, closed, f"r{number}"), line)
    store.blobs.gets.clear()
    store.blobs.lists = 0
    page = await found(store, "WorkflowType = 'no such'")
    assert page.executions == () and page.next_page_token
    assert page.scanned_count == len(store.blobs.gets) == MAX_ARCHIVE_SCAN and store.blobs.lists == 1
    rest = await found(store, "WorkflowType = 'no such'", next_page_token=page.next_page_token)
    assert rest.scanned_count == 50 and not rest.next_page_token
    few = await found(store, page_size=1)
    assert len(few.executions) == 1 and few.next_page_token and few.scanned_count == 1


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("WorkflowType = 'order' ORDER BY StartTime", "newest close first; leave it out"),
        ("NoSuch = 1", "NoSuch"),
        ("WorkflowType = ", "line 1"),
        ("GROUP BY WorkflowType", "GROUP BY"),
    ],
)
async def test_what_it_cannot_evaluate_is_refused(store: Shop, query: str, says: str) -> None:
    with pytest.raises(InvalidArgument, match=re.escape(says)) as refused:
        await found(store, query)
    assert refused.value.details["field"] == "query"


class _InProcess:
    """A transport without a server."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def call(self, operation: Any, request: Any) -> Any:
        return await HANDLERS[operation.name](self._engine, request)

    async def close(self) -> None:
        return None


async def test_what_a_client_makes_of_it(store: Shop) -> None:
    client = Client(_InProcess(store.engine), namespace=SHOP)
    await client.namespaces.update(SHOP, archival=False)
    assert not (await client.namespaces.describe(SHOP)).archival
    assert (await client.namespaces.update(SHOP, archival=True)).archival
    runs = [await store.ended(f"w{number}") for number in range(3)]
    await removed(store, "w0", "w1", "w2")
    listed = [row async for row in client.list_archived_workflows(page_size=2)]
    assert [(row.id, row.run_id) for row in listed] == [(f"w{number}", runs[number]) for number in (2, 1, 0)]
    some = client.list_archived_workflows("WorkflowType = 'order'", workflow_id=["w0", "w2"], limit=1)
    assert [row.id async for row in some] == ["w2"]
    handle = client.get_workflow_handle("w1", run_id=runs[1])
    history = await handle.fetch_history()
    assert list(history.events) == await store.pages(runs[1], "w1")
    with pytest.raises(WorkflowFailureError):  # it was terminated; its end is waited for no more
        await handle.result()
    with pytest.raises(RPCError, match="no such workflow"):
        await handle.fetch_history(skip_archival=True)
    with pytest.raises(ValueError, match="limit is 0"):
        client.list_archived_workflows(limit=0)


async def test_who_looks_at_a_file_from_beside_finds_its_archive(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    async with shop(path) as store:
        run_id = await store.ended()
        await removed(store)
    transport = await open_inspection(path)
    client = Client(transport, namespace=SHOP)
    assert [row.run_id async for row in client.list_archived_workflows()] == [run_id]
    assert (await client.get_workflow_handle("w", run_id=run_id).fetch_history()).events
    await transport.close()


async def test_an_import_gives_no_archived_run_another_end(store: Shop) -> None:
    """Of which nothing would be kept: what is archived of a run stays as it is. The run itself may come back."""
    run_id = await store.start()
    await store.signal("a")
    cut = await store.pages(run_id)
    await store.end()
    whole = await store.pages(run_id)
    await removed(store)

    async def brought_in(events: list[HistoryEvent]) -> str:
        execution = WorkflowExecution(workflow_id="w")
        asked = r.ImportWorkflowRequest(namespace=SHOP, execution=execution, events=tuple(events), request_id="once")
        return (await store.engine.import_workflow(asked)).run_id

    with pytest.raises(WorkflowExecutionAlreadyStarted, match="is in the archive of namespace 'shop', with another"):
        await brought_in(cut)
    await store.engine.namespaces.update(r.UpdateNamespaceRequest(namespace=SHOP, retention=4 * LONG))
    assert await brought_in(whole) == await brought_in(whole) == run_id
    await store.paid()
    store.clock.shift += 4 * LONG
    await store.sweep()
    assert await store.backend.log.head(KEY) is None
    with pytest.raises(WorkflowExecutionAlreadyStarted):
        await brought_in(cut)
    assert await store.pages(run_id) == whole
    assert [each.execution.run_id for each in (await found(store)).executions] == [run_id]


async def test_a_namespace_without_an_archive_says_how_to_have_one() -> None:
    async with shop(archival=False) as store:
        with pytest.raises(FailedPrecondition, match="--archival"):
            await found(store)


async def test_a_deleted_namespace_takes_its_archive_with_it(store: Shop) -> None:
    run_id = await store.ended()
    await removed(store)
    await store.ended("kept")
    await store.paid("kept")
    await store.engine.namespaces.deprecate(r.DeprecateNamespaceRequest(namespace=SHOP))

    async def unused(name: str) -> bool:
        return False

    await store.engine.namespaces.delete(r.DeleteNamespaceRequest(namespace=SHOP, force=True), unused)

    async def empty() -> bool:
        return not (await store.blobs.list("")).keys and not store.engine.namespaces.is_registered(SHOP)

    await until(empty)
    await store.engine.namespaces.register(r.RegisterNamespaceRequest(namespace=SHOP, archival=True))
    with pytest.raises(NotFound):
        await store.pages(run_id)
