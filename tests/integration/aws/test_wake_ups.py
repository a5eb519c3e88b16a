"""Wake-ups of control records on DynamoDB: armed with their write, fired by the sweeper of a container and by the
function on the delay queue, again after a death, and from the table when every message is lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from stepwell.client import Client, RPCError

from stepwell_server.adapters.aws.backend import aws_backend
from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.aws.sqs_delay_queue import SqsDelayQueue
from stepwell_server.adapters.aws.timer_leases import TimerLeases
from stepwell_server.adapters.aws.timer_rows import TimerRows
from stepwell_server.adapters.backend import Backend
from stepwell_server.common.control import ControlRecord
from stepwell_server.common.settings import EngineSettings, ProcessKind
from stepwell_server.entrypoints.aws_parts import fire_of
from stepwell_server.entrypoints.making import make_engine
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.engine import Engine
from stepwell_server.timer_sweeper.bucket_sweeper import BucketSweeper
from stepwell_server.timer_sweeper.due_messages import DueMessages, Postponed
from tests.support.aws.cells import Cell
from tests.support.aws.containers import served_container

FIRST = ControlRecord("counter", "default", "日本/1", 1, b"")
SOON = timedelta(milliseconds=300)
SETTINGS = EngineSettings(process=ProcessKind.ONE_OF_MANY, sweeps=False)


class Process:
    """Counts a record up to version 3, each time by a wake-up; ``dies`` in so many of its first calls."""

    def __init__(self, cell: Cell, backend: Backend, clients: AwsClients, dies: int) -> None:
        self.cell, self.backend, self.clients, self.dies = cell, backend, clients, dies
        self.engine: Engine = make_engine(backend, SETTINGS)
        assert self.engine.wake_ups is not None
        self.engine.wake_ups.register("counter", self.count)
        self.rows = TimerRows(clients.service("dynamodb"), cell.names.timer_table)
        self.queue = SqsDelayQueue(clients.service("sqs"), cell.names.timer_queue)
        self.calls = 0

    async def count(self, namespace: str, id: str, due_at: datetime) -> None:
        self.calls += 1
        control = self.backend.control
        record = await control.get("counter", namespace, id)
        assert record is not None
        if record.version < 3:
            now = self.backend.clock.now()
            await control.put(record._replace(version=record.version + 1), arm=now + SOON)
        if self.calls <= self.dies:
            raise RuntimeError("the process ends here")

    async def counted(self) -> None:
        async with asyncio.timeout(60):
            while (record := await self.backend.control.get(*FIRST[:3])) is None or record.version < 3:
                await asyncio.sleep(0.05)

    async def messages(self, *, drop: bool) -> None:
        """What the mapping of the queue to the function does."""
        handler = DueMessages(self.rows, self.queue, self.backend.clock, fire_of(self.engine))
        sqs = self.clients.service("sqs")
        url = (await sqs.call("get_queue_url", QueueName=self.cell.names.timer_queue))["QueueUrl"]
        while True:
            answer = await sqs.call(
                "receive_message",
                QueueUrl=url,
                WaitTimeSeconds=1,
                MessageSystemAttributeNames=["ApproximateReceiveCount"],
            )
            for message in answer.get("Messages", []):
                deliveries = int(message["Attributes"]["ApproximateReceiveCount"])
                try:
                    if not drop:
                        await handler.handle(message["Body"], message["ReceiptHandle"], deliveries, "m")
                except Postponed:
                    continue
                await sqs.call("delete_message", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


@asynccontextmanager
async def process(cell: Cell, *, functions: bool, dies: int = 0) -> AsyncIterator[Process]:
    clients = AwsClients()
    soon = SqsDelayQueue(clients.service("sqs"), cell.names.timer_queue) if functions else None
    backend = await aws_backend(AwsSettings(cell.names.cell, cell.bucket), clients=clients, soon=soon)
    made = Process(cell, backend, clients, dies)
    await made.engine.start()
    try:
        yield made
    finally:
        await made.engine.stop()
        await backend.close()


@asynccontextmanager
async def swept(parts: Process) -> AsyncIterator[None]:
    leases = TimerLeases(parts.clients.service("dynamodb"), parts.cell.names.ctl_table)
    sweeper = BucketSweeper(parts.rows, leases, parts.backend.clock, fire_of(parts.engine), "test")
    sweeper.start()
    await sweeper.ready()
    yield
    await sweeper.stop()


@asynccontextmanager
async def delivered(parts: Process, *, drop: bool) -> AsyncIterator[None]:
    pump: asyncio.Task[Any] = asyncio.create_task(parts.messages(drop=drop))
    yield
    pump.cancel()
    await asyncio.wait([pump])
    assert pump.cancelled()


async def test_by_the_sweeper_of_a_container_also_after_deaths(cell: Cell) -> None:
    async with process(cell, functions=False, dies=2) as parts, swept(parts):
        await parts.backend.control.put(FIRST, arm=parts.backend.clock.now() + SOON)
        await parts.counted()
        assert parts.calls >= 2


async def test_by_the_function_on_the_delay_queue_also_after_a_death(cell: Cell) -> None:
    async with process(cell, functions=True, dies=1) as parts, delivered(parts, drop=False):
        await parts.backend.control.put(FIRST, arm=parts.backend.clock.now() + SOON)
        await parts.counted()
        assert parts.calls >= 2


async def test_from_the_table_when_every_message_is_lost(cell: Cell) -> None:
    async with process(cell, functions=True) as parts, delivered(parts, drop=True):
        await parts.backend.control.put(FIRST, arm=parts.backend.clock.now() + SOON)
        async with swept(parts):
            await parts.counted()


async def test_a_namespace_is_emptied_by_wake_ups(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-03 on DynamoDB: lists come late, the name is free when nothing was found for a while."""
    monkeypatch.setattr("stepwell_server.entrypoints.making.SETTLE", timedelta(seconds=3))
    async with served_container(cell) as served:
        async with await Client.connect(served.address, namespace="shop") as client:
            backend = served.container.parts.backend
            await client.namespaces.register("shop")
            for number in range(4):
                await client.start_workflow("t", id=f"w-{number}", task_queue="q")
            async with asyncio.timeout(60):
                while len([each async for each in client.list_workflows()]) < 4:
                    await asyncio.sleep(0.5)
            await client.namespaces.delete("shop", force=True)
            with pytest.raises(RPCError, match="'shop' is deleted"):
                await client.start_workflow("t", id="w-9", task_queue="q")
            async with asyncio.timeout(90):
                while await backend.control.get("namespace", "", "shop") is not None:
                    await asyncio.sleep(0.5)
            for number in range(4):
                key = ExecutionKey("shop", f"w-{number}")
                head = await backend.log.head(key)
                assert head is None or head.state.deleted
            await client.namespaces.register("shop")
            assert [each async for each in client.list_workflows()] == []
