"""The control store on DynamoDB when answers are lost, writers die between their two writes, and rows fire early."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import pytest

from stepwell_server.adapters.aws.attributes import to_attributes
from stepwell_server.adapters.aws.backend import aws_backend
from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.aws.timer_rows import TimerRows
from stepwell_server.adapters.backend import Backend
from stepwell_server.common.control import ControlConflict, ControlRecord, wake_up_id
from stepwell_server.common.settings import EngineSettings, ProcessKind
from stepwell_server.entrypoints.making import make_engine
from stepwell_server.history.commit import Awaited, ExecutionKey
from stepwell_server.history.ports import StoreUnavailable
from stepwell_server.timer_sweeper import buckets
from stepwell_server.timer_sweeper.buckets import Layout, TimerRow
from tests.support.aws.cells import Cell
from tests.support.aws.fault_proxy import FaultProxy, fault_proxy

FIRST = ControlRecord("thing", "default", "t", 1, b"one")
SECOND = FIRST._replace(version=2, value=b"two")
KEY = ExecutionKey("default", wake_up_id("thing", "t"))
SETTINGS = EngineSettings(process=ProcessKind.ONE_OF_MANY, sweeps=False)


@asynccontextmanager
async def behind(cell: Cell) -> AsyncIterator[tuple[Backend, FaultProxy]]:
    """A process whose calls go through a proxy."""
    async with fault_proxy(cell.environment["AWS_ENDPOINT_URL"], 1) as proxy:
        clients = AwsClients(endpoint_url=proxy.url)
        backend = await aws_backend(AwsSettings(cell.names.cell, cell.bucket, signs_tokens=False), clients=clients)
        yield backend, proxy
        await backend.close()


async def row_at(backend: Backend, cell: Cell, at: datetime) -> TimerRow:
    """The one row that stands there."""
    clients = AwsClients()
    rows = TimerRows(clients.service("dynamodb"), cell.names.timer_table)
    place = buckets.ceil_ms(at)
    partition = buckets.partition_of(KEY, Layout())
    page = await rows.read(partition, buckets.bucket_of(place), place, place + 1)
    await clients.close()
    (row,) = page.rows
    return row


async def test_ones_own_retry_behind_a_lost_answer_is_no_conflict(cell: Cell) -> None:
    async with behind(cell) as (backend, proxy):
        stored = FIRST._replace(version=0)
        for value in (b"one", b"two"):
            proxy.planned.append("cut")
            stored = await backend.control.put(stored._replace(version=stored.version + 1, value=value))
            assert await backend.control.get(*FIRST[:3]) == stored
        proxy.planned.append("cut")
        await backend.control.delete(stored)
        assert await backend.control.get(*FIRST[:3]) is None and proxy.done["cut"] == 3


async def test_somebody_elses_write_of_the_same_bytes_is_one(cell: Cell) -> None:
    async with behind(cell) as (backend, proxy), behind(cell) as (other, _):
        there = await other.control.put(FIRST)
        proxy.planned.append("throttling")
        with pytest.raises(ControlConflict) as refused:
            await backend.control.put(FIRST)
        assert refused.value.existing == there


async def test_a_delete_whose_answer_is_lost_leaves_what_was_made_anew_before_its_retry(cell: Cell) -> None:
    async with behind(cell) as (backend, _), behind(cell) as (other, _):
        known = await backend.control.put(FIRST)
        await other.control.delete(known)
        there = await other.control.put(FIRST)
        await backend.control.delete(known)
        assert await backend.control.get(*FIRST[:3]) == there


async def test_items_of_the_first_release_are_read_written_and_deleted(cell: Cell) -> None:
    """They have no incarnation, and get none; one that is made anew is another all the same."""
    async with behind(cell) as (backend, _):
        clients = AwsClients()
        dynamodb = clients.service("dynamodb")
        item = {"pk": "CTL#thing#default", "sk": "t", "i": 1, "v": b"one", "w": "nonce"}
        await dynamodb.call("put_item", TableName=cell.names.ctl_table, Item=to_attributes(item))
        await clients.close()
        control = backend.control
        assert await control.get(*FIRST[:3]) == FIRST and await control.list(*FIRST[:2], limit=9) == [FIRST]
        assert await control.put(SECOND) == SECOND == await control.get(*FIRST[:3])
        with pytest.raises(ControlConflict):
            await control.put(SECOND._replace(version=3, incarnation="of another"))
        await control.delete(SECOND)
        there = await control.put(FIRST)
        with pytest.raises(ControlConflict):
            await control.put(SECOND)
        await control.delete(FIRST)
        assert await control.get(*FIRST[:3]) == there


async def test_a_row_of_one_that_is_gone_takes_no_wake_up_away(cell: Cell) -> None:
    """It stands where that of the new one stood: same id, same instant. So what is there is woken, and the row is kept
    for as long as the write that it awaits may come."""
    async with behind(cell) as (backend, _):
        engine = make_engine(backend, SETTINGS)
        assert engine.wake_ups is not None
        woken: list[str] = []

        async def handler(namespace: str, id: str, due_at: datetime) -> None:
            woken.append(id)

        engine.wake_ups.register("thing", handler)
        at = backend.clock.now() + timedelta(minutes=20)
        known = await backend.control.put(FIRST)
        await backend.control.delete(known)
        there = await backend.control.put(FIRST, arm=at)
        row = await row_at(backend, cell, at)
        assert row.awaited == Awaited(seq=1, run_id=there.incarnation)
        with pytest.raises(ControlConflict):
            await backend.control.put(known._replace(version=2), arm=at)
        row = await row_at(backend, cell, at)
        assert row.awaited == Awaited(seq=2, run_id=known.incarnation)
        assert not await engine.fire(row.key, row.fire_at, row.awaited) and woken == ["t"]
        await backend.control.put(there._replace(version=2))
        assert not await engine.fire(row.key, row.fire_at, row.awaited) and woken == ["t", "t"]
        await engine.stop()


async def test_a_row_whose_write_never_came_wakes_nobody(cell: Cell) -> None:
    """Its writer died in between: the row is there, the record is not. When it comes after all, the same row serves."""
    async with behind(cell) as (backend, proxy):
        engine = make_engine(backend, SETTINGS)
        assert engine.wake_ups is not None
        woken: list[str] = []

        async def handler(namespace: str, id: str, due_at: datetime) -> None:
            woken.append(id)

        engine.wake_ups.register("thing", handler)
        at = backend.clock.now() + timedelta(minutes=20)
        proxy.refused["putitem"] = ("ValidationException", "not now")
        with pytest.raises(Exception, match="not now"):
            await backend.control.put(FIRST, arm=at)
        del proxy.refused["putitem"]
        proxy.planned += [""] + ["failure"] * 4  # the row, and not the record
        with pytest.raises(StoreUnavailable):
            await backend.control.put(FIRST, arm=at)
        row = await row_at(backend, cell, at)
        assert row.key == KEY and row.fire_at == at and row.awaited.seq == 1 and row.awaited.run_id
        assert not await engine.fire(row.key, row.fire_at, row.awaited) and woken == []
        await backend.control.put(FIRST, arm=at)
        row = await row_at(backend, cell, at)
        assert await engine.fire(row.key, row.fire_at, row.awaited) and woken == ["t"]
        await engine.stop()
