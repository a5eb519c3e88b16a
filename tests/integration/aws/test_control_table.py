"""The control store on DynamoDB when answers are lost, writers die between their two writes, and rows fire early."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import pytest

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
        for record in (FIRST, SECOND):
            proxy.planned.append("cut")
            await backend.control.put(record)
            assert await backend.control.get(*FIRST[:3]) == record
        proxy.planned.append("cut")
        await backend.control.delete(SECOND)
        assert await backend.control.get(*FIRST[:3]) is None and proxy.done["cut"] == 3


async def test_somebody_elses_write_of_the_same_bytes_is_one(cell: Cell) -> None:
    async with behind(cell) as (backend, proxy), behind(cell) as (other, _):
        await other.control.put(FIRST)
        proxy.planned.append("throttling")
        with pytest.raises(ControlConflict) as refused:
            await backend.control.put(FIRST)
        assert refused.value.existing == FIRST


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
        assert row.key == KEY and row.fire_at == at and row.awaited == Awaited(seq=1)
        assert not await engine.fire(row.key, row.fire_at, row.awaited) and woken == []
        await backend.control.put(FIRST)
        assert await engine.fire(row.key, row.fire_at, row.awaited) and woken == ["t"]
        await engine.stop()
