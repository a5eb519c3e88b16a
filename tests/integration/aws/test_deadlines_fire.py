"""A timer of a workflow on DynamoDB, fired by either feeder: armed by the store with its commit, found, fired, handed
to the worker; and a row whose commit never came changes nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from stepwell.api.commands import StartTimer

from stepwell_server.adapters.aws.backend import aws_backend
from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.aws.sqs_delay_queue import SqsDelayQueue
from stepwell_server.adapters.aws.timer_leases import TimerLeases
from stepwell_server.adapters.aws.timer_rows import TimerRows
from stepwell_server.adapters.system import SystemClock
from stepwell_server.common.settings import EngineSettings, ProcessKind
from stepwell_server.history.commit import Awaited, ExecutionKey
from stepwell_server.history.engine import Engine
from stepwell_server.timer_sweeper.arming import Arming
from stepwell_server.timer_sweeper.bucket_sweeper import BucketSweeper
from stepwell_server.timer_sweeper.buckets import TimerRow
from stepwell_server.timer_sweeper.due_messages import DueMessages, Postponed
from stepwell_server.timer_sweeper.minute_tick import MinuteTick
from tests.support.aws.cells import Cell
from tests.support.counting import CountingStore
from tests.support.engine import Driver, types

KEY = ExecutionKey("default", "order-1")
SETTINGS = EngineSettings(process=ProcessKind.ONE_OF_MANY, sweeps=False)


class Installation(NamedTuple):
    engine: Engine
    rows: TimerRows
    leases: TimerLeases
    queue: SqsDelayQueue
    sqs: Any
    clock: SystemClock

    async def fire(self, row: TimerRow) -> bool:
        return await self.engine.fire(row.key, row.fire_at, row.awaited)

    def driver(self) -> Driver:
        store: Any = None
        return Driver(self.engine, CountingStore(store))


@asynccontextmanager
async def installation(cell: Cell, *, functions: bool) -> AsyncIterator[Installation]:
    clients, clock = AwsClients(), SystemClock()
    dynamodb, sqs = clients.service("dynamodb"), clients.service("sqs")
    queue = SqsDelayQueue(sqs, cell.names.timer_queue)
    backend = await aws_backend(
        AwsSettings(cell.names.cell, cell.bucket), clients=clients, hands_on="W", soon=queue if functions else None
    )
    engine = Engine(
        log=backend.log,
        timers=backend.timers,
        visibility=backend.visibility,
        clock=clock,
        ids=backend.ids,
        token_key=backend.token_key,
        settings=SETTINGS,
    )
    await engine.start()
    rows = TimerRows(dynamodb, cell.names.timer_table)
    try:
        yield Installation(engine, rows, TimerLeases(dynamodb, cell.names.ctl_table), queue, sqs, clock)
    finally:
        await engine.stop()
        await backend.close()


async def wait_for_timer(driver: Driver) -> None:
    await driver.start()
    task = await driver.take()
    await driver.complete(task.task_token, StartTimer(timer_id="t", start_to_fire_timeout=timedelta(milliseconds=500)))
    task = await driver.take(timedelta(seconds=60))
    assert "TimerFired" in types(task.events)


async def test_by_the_sweeper(cell: Cell) -> None:
    async with installation(cell, functions=False) as parts:
        sweeper = BucketSweeper(parts.rows, parts.leases, parts.clock, parts.fire, "test")
        sweeper.start()
        await sweeper.ready()
        await wait_for_timer(parts.driver())
        await sweeper.stop()
        left = await parts.leases.held(0) + await parts.leases.held(1)
        assert len(left) == 20 and not any(lease.owner for lease in left)


async def test_by_the_delay_queue(cell: Cell) -> None:
    async with installation(cell, functions=True) as parts:
        pump = asyncio.create_task(_deliver(parts, cell))
        try:
            await wait_for_timer(parts.driver())
        finally:
            pump.cancel()
            await asyncio.wait([pump])


async def _deliver(parts: Installation, cell: Cell) -> None:
    """What the mapping of the queue to the function does."""
    messages = DueMessages(parts.rows, parts.queue, parts.clock, parts.fire)
    url = (await parts.sqs.call("get_queue_url", QueueName=cell.names.timer_queue))["QueueUrl"]
    while True:
        answer = await parts.sqs.call(
            "receive_message", QueueUrl=url, WaitTimeSeconds=1, MessageSystemAttributeNames=["ApproximateReceiveCount"]
        )
        for message in answer.get("Messages", []):
            try:
                deliveries = int(message["Attributes"]["ApproximateReceiveCount"])
                await messages.handle(message["Body"], message["ReceiptHandle"], deliveries, message["MessageId"])
            except Postponed:
                continue
            await parts.sqs.call("delete_message", QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


async def test_the_tick_sends_what_a_dead_container_has_left(cell: Cell) -> None:
    async with installation(cell, functions=False) as parts:
        row = await Arming(parts.rows, parts.clock).arm(KEY, parts.clock.now() + timedelta(seconds=30), Awaited(1))
        report = await MinuteTick(parts.rows, parts.leases, parts.queue, parts.clock).run()
        assert report.sent == 1 and not report.failures
        again = await MinuteTick(parts.rows, parts.leases, parts.queue, parts.clock).run()
        assert again.sent == 0
        assert not await parts.fire(row)  # its start never came


@pytest.mark.parametrize("missing", ["timer", "ctl"])
async def test_a_missing_table_is_named_and_tried_again(cell: Cell, missing: str, caplog: Any) -> None:
    clients = AwsClients()
    dynamodb = clients.service("dynamodb")
    names = {"timer": cell.names.timer_table, "ctl": cell.names.ctl_table, missing: f"no-such-{missing}"}
    rows, leases = TimerRows(dynamodb, names["timer"]), TimerLeases(dynamodb, names["ctl"])

    async def fire(row: TimerRow) -> bool:
        return True

    sweeper = BucketSweeper(rows, leases, SystemClock(), fire, "test")
    sweeper.start()
    async with asyncio.timeout(30):
        while f"no-such-{missing}" not in caplog.text:
            await asyncio.sleep(0.05)
    await sweeper.stop()
    await clients.close()
