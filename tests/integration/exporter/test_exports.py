"""Exports of histories (LC-47) to a folder and to the emulated S3: each run once, whatever dies, and back again."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import ExportFormat, ExportState
from stepwell.api.errors import FailedPrecondition, InvalidArgument, NotFound
from stepwell.replay.history import WorkflowHistory

from stepwell_server.adapters.aws.s3_objects import PREFIX, S3Objects
from stepwell_server.adapters.folder_objects import FolderObjects
from stepwell_server.exporter.exports import Exports
from stepwell_server.history.ports import StoreUnavailable
from tests.integration.batcher.places import Place, embedded, on_aws
from tests.support.cases import until
from tests.support.engine import ShiftedClock, running

State = ExportState


def later() -> ShiftedClock:
    """Lists show all by then."""
    clock = ShiftedClock()
    clock.shift = timedelta(minutes=30)
    return clock


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with embedded(tmp_path / "orders.db", ShiftedClock()) as place:
        yield place


@pytest.fixture(params=["sqlite", "dynamodb"])
async def each_place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    clock = ShiftedClock()
    if request.param == "sqlite":
        async with embedded(tmp_path / "orders.db", clock) as place:
            yield place
    else:
        async with on_aws(request.getfixturevalue("cell"), clock) as place:
            yield place


async def ended(place: Place, *workflow_ids: str) -> list[WorkflowExecution]:
    runs = await place.runs(*workflow_ids)
    for run in runs:
        await place.engine.terminate_workflow(r.TerminateWorkflowRequest(execution=run, reason="done"))
    passes(place, minutes=30)
    return runs


def passes(place: Place, minutes: float) -> None:
    """Lists show all that closed before, and the next look is due."""
    clock = place.backend.clock
    assert isinstance(clock, ShiftedClock)
    clock.shift += timedelta(minutes=minutes)


async def export(place: Place, job_id: str = "nightly", **more: Any) -> str:
    values = {"job_id": job_id, "destination": "2026/orders"} | more
    response: r.StartExportResponse = await place.call("StartExport", r.StartExportRequest(**values))
    return response.location


async def described(place: Place, job_id: str = "nightly") -> r.DescribeExportResponse:
    found: r.DescribeExportResponse = await place.call("DescribeExport", r.DescribeExportRequest(job_id=job_id))
    return found


async def over(place: Place, job_id: str = "nightly") -> r.DescribeExportResponse:
    """Once it is over."""

    async def has_begun() -> bool:
        return (await described(place, job_id)).info.exported_until is not None

    async def is_over() -> bool:
        return (await described(place, job_id)).info.state is not State.RUNNING

    await until(has_begun)
    passes(place, minutes=15)
    await until(is_over)
    return await described(place, job_id)


async def objects(place: Place) -> dict[str, bytes]:
    """All that was written, by key below the destination."""
    target, prefix = place.backend.exports, "default/2026/orders/"
    if isinstance(target, FolderObjects):
        root = Path(target.location(prefix))
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert isinstance(target, S3Objects)
    found: dict[str, bytes] = {}
    listed = await target._s3.call("list_objects_v2", Bucket=target._bucket, Prefix=PREFIX + prefix)
    for entry in listed.get("Contents", ()):
        answer = await target._s3.call("get_object", Bucket=target._bucket, Key=entry["Key"])
        found[entry["Key"].removeprefix(PREFIX + prefix)] = answer["Body"]
    return found


def histories(found: dict[str, bytes]) -> list[WorkflowHistory]:
    names = [name for name in found if name.startswith("histories/")]
    return [WorkflowHistory.from_json("", found[name]) for name in sorted(names)]


def lines(found: dict[str, bytes]) -> list[dict[str, Any]]:
    parts = [found[name] for name in sorted(found) if name.startswith("jobs/") and name.endswith(".jsonl")]
    return [json.loads(line) for part in parts for line in part.splitlines()]


async def test_closed_runs_of_a_filter_are_written_each_with_its_place_in_the_list(each_place: Place) -> None:
    place = each_place
    runs = await ended(place, "order-1", "order-2", "../../etc/passwd", "ünïcödé " + "x" * 200)
    await place.runs("order-3")  # open
    await export(place)
    info = (await over(place)).info
    assert (info.state, info.exported_count, info.failure_count) == (State.COMPLETED, 4, 0)
    found = await objects(place)
    by_run = {history.run_id: history for history in histories(found)}
    assert by_run.keys() == {run.run_id for run in runs}
    for run in runs:
        assert list(by_run[run.run_id].events) == await place.history(run)
        assert by_run[run.run_id].workflow_id == run.workflow_id
    listed = {line["run_id"]: line for line in lines(found)}
    assert listed.keys() == by_run.keys()
    for line in listed.values():
        data = found[line["object"]]
        assert (line["bytes"], line["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
        assert line["status"] == "TERMINATED" and line["workflow_type"] == "order"
    (manifest,) = [json.loads(data) for name, data in found.items() if name.endswith("manifest.json")]
    assert (manifest["exported"], manifest["failed"], manifest["job_id"]) == (4, 0, "nightly")
    assert info.exported_bytes == sum(line["bytes"] for line in listed.values()) == manifest["bytes"]


async def test_back_in_another_installation(place: Place) -> None:
    await ended(place, "order-1", "order-2")
    await export(place, query="WorkflowId = 'order-1'", format=ExportFormat.JSON)
    assert (await over(place)).info.exported_count == 1
    (history,) = histories(await objects(place))
    async with running(clock=later()) as there:
        execution = WorkflowExecution(workflow_id=history.workflow_id)
        await there.engine.import_workflow(r.ImportWorkflowRequest(execution=execution, events=tuple(history.events)))
        assert await there.history() == list(history.events)
        assert (await there.describe()).info.status.value == "TERMINATED"


async def test_a_window_is_of_the_close_and_may_end_later(place: Place) -> None:
    await ended(place, "before")
    begins = place.backend.clock.now()
    (inside,) = await ended(place, "inside")
    await export(place, closed_after=begins, closed_before=begins + timedelta(hours=1))
    passes(place, minutes=60)
    await ended(place, "behind")
    found = await over(place)
    assert found.info.exported_count == 1 and found.info.exported_until == begins + timedelta(hours=1)
    assert [history.run_id for history in histories(await objects(place))] == [inside.run_id]


async def test_one_that_goes_on_writes_what_closes_until_it_is_stopped(place: Place) -> None:
    await export(place, continuous=True)
    for number in (1, 2, 3):
        await ended(place, f"order-{number}")

        async def is_written(number: int = number) -> bool:
            return (await described(place)).info.exported_count == number

        await until(is_written)
    assert (await described(place)).continuous
    await place.call("StopExport", r.StopExportRequest(job_id="nightly", reason="enough", identity="ops"))
    found = await described(place)
    assert (found.info.state, found.close_reason) == (State.STOPPED, "stopped by ops: enough")
    await place.call("StopExport", r.StopExportRequest(job_id="nightly"))
    listed = [line["workflow_id"] for line in lines(await objects(place))]
    assert sorted(listed) == ["order-1", "order-2", "order-3"]


async def test_what_cannot_be_written_is_written_when_it_can(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    target, broken = place.backend.exports, True
    assert target is not None
    put = type(target).put

    async def sometimes(self: Any, key: str, data: bytes) -> None:
        if broken and not key.endswith("8.jsonl.gz"):
            raise StoreUnavailable("the disk is full")
        await put(self, key, data)

    monkeypatch.setattr(type(target), "put", sometimes)
    await ended(place, *(f"order-{number}" for number in range(3)))
    await export(place)

    async def is_told() -> bool:
        return "the disk is full" in (await described(place)).trouble

    await until(is_told)
    assert (await described(place)).info.exported_count == 0
    broken = False
    found = await over(place)
    assert (found.info.exported_count, found.info.failure_count, found.trouble) == (3, 0, "")
    assert len(histories(await objects(place))) == 3


async def test_killed_in_the_middle_another_process_does_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    stuck = asyncio.Event()
    async with embedded(path, ShiftedClock()) as place:
        runs = await ended(place, *(f"order-{number}" for number in range(3)))
        exports, target = place.engine.attached(Exports), place.backend.exports
        assert target is not None
        count = 0

        class Dies:
            async def put(self, key: str, data: bytes) -> None:
                nonlocal count
                count += 1
                if count == 2:
                    stuck.set()
                    await asyncio.Event().wait()
                await target.put(key, data)

            def location(self, prefix: str) -> str:
                return target.location(prefix)

        exports._target = Dies()
        await export(place)
        await asyncio.wait_for(stuck.wait(), 20)
        clock = place.backend.clock
    assert isinstance(clock, ShiftedClock)
    clock.shift += timedelta(minutes=5)  # the burst of who died is written again by then
    async with embedded(path, clock) as place:
        found = await over(place)
        assert (found.info.state, found.info.exported_count) == (State.COMPLETED, 3)
        written = await objects(place)
        assert {history.run_id for history in histories(written)} == {run.run_id for run in runs}
        assert len(lines(written)) == 3


async def test_a_run_that_is_gone_is_reported(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, _ = await ended(place, "order-1", "order-2")
    read = place.engine.get_history

    async def history(request: r.GetHistoryRequest) -> r.GetHistoryResponse:
        if request.execution == gone:
            raise NotFound("retention was faster")
        return await read(request)

    monkeypatch.setattr(place.engine, "get_history", history)
    await export(place)
    found = await over(place)
    assert (found.info.exported_count, found.info.failure_count) == (1, 1)
    (failure,) = found.failures
    assert (failure.execution, failure.code) == (gone, "NOT_FOUND")
    assert [line["error"]["message"] for line in lines(await objects(place)) if "error" in line] == [failure.message]


async def test_where_all_is_in_memory_there_is_no_place_for_them() -> None:
    async with embedded(clock=ShiftedClock()) as place:
        with pytest.raises(FailedPrecondition, match="no place for exports"):
            await export(place)


async def test_repeats_and_lists(tmp_path: Path) -> None:
    async with embedded(tmp_path / "orders.db", ShiftedClock()) as place:
        location = await export(place, query="WorkflowType = 'order'")
        assert location == f"{tmp_path / 'orders.db.exports'}/default/2026/orders"
        assert await export(place, query="WorkflowType = 'order'") == location
        others: Sequence[dict[str, Any]] = (
            {},
            {"query": "WorkflowType = 'order'", "continuous": True},
            {"query": "WorkflowType = 'order'", "destination": "elsewhere"},
        )
        for other in others:
            with pytest.raises(FailedPrecondition, match="another one; use another job_id"):
                await export(place, **other)
        await export(place, "second")
        page = await place.call("ListExports", r.ListExportsRequest(page_size=1))
        assert [info.job_id for info in page.exports] == ["nightly"]
        rest = r.ListExportsRequest(page_size=1, next_page_token=page.next_page_token)
        assert [info.job_id for info in (await place.call("ListExports", rest)).exports] == ["second"]
        for number in range(18):
            await export(place, f"many-{number}")
        with pytest.raises(FailedPrecondition, match="20 exports are running"):
            await export(place, "one too many")
        with pytest.raises(NotFound, match="there is no export 'never'"):
            await described(place, "never")


BAD: tuple[tuple[dict[str, Any], str], ...] = (
    *(
        ({"destination": text}, "destination")
        for text in ("", "/tmp", "../up", "a/../b", "a//b", "a/", ".hidden", "a\\b", "s3://other", "a b", "a" * 201)
    ),
    ({"job_id": ""}, "job_id"),
    ({"query": "WorkflowType ="}, "query"),
    ({"query": "WorkflowType = 'order' ORDER BY StartTime"}, "query"),
    ({"identity": "x" * 1_001}, "identity"),
)


async def test_what_cannot_be_is_refused_by_name(tmp_path: Path) -> None:
    async with embedded(tmp_path / "orders.db", ShiftedClock()) as place:
        now = place.backend.clock.now()
        window = {"closed_after": now, "closed_before": now}
        naive = {"closed_after": now.replace(tzinfo=None)}
        endless = {"continuous": True, "closed_before": now}
        more = ((window, "closed_before"), (naive, "closed_after"), (endless, "closed_before"))
        for values, field in (*BAD, *more):
            with pytest.raises(InvalidArgument) as refused:
                await export(place, **values)
            assert refused.value.details["field"] == field, values
        assert (await place.call("ListExports", r.ListExportsRequest())).exports == ()
    assert not (tmp_path / "orders.db.exports").exists()


async def test_no_link_leads_out_of_the_folder(tmp_path: Path) -> None:
    root, outside = tmp_path / "exports", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "here").symlink_to(outside)
    target = FolderObjects(root)
    await target.put("there/one.json", b"1")
    await target.put("there/one.json", b"2")
    assert (root / "there/one.json").read_bytes() == b"2" and len(list((root / "there").iterdir())) == 1
    with pytest.raises(StoreUnavailable, match="leads out of"):
        await target.put("here/one.json", b"1")
    assert list(outside.iterdir()) == []
    for key in ("../up", "/tmp/x", "a/./b", ""):
        with pytest.raises(ValueError, match="is no key"):
            await target.put(key, b"")
