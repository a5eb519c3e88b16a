"""An installation whose every call is counted: what a client's or worker's request costs, and what it leaves to the
feed, to deadlines and to retention. Nothing runs by itself; so counts are the same each time.

``metered_functions`` has two frontend functions that take turns, so that no call finds what the last one left in
memory; ``metered_container`` is one process with a worker that polls it.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import boto3
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.codec import decode_json
from stepwell.api.enums import TaskQueueKind
from stepwell.api.errors import ErrorBody, error_from
from stepwell.api.operations import Operation
from stepwell.transport import Transport
from stepwell.transport.queue_fed import QueueFedTransport, Received
from stepwell.transport.sqs import SqsQueues

from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.aws.stream_records import parse
from stepwell_server.entrypoints import aws_feed, aws_frontend, aws_timer_tick, aws_timers
from stepwell_server.entrypoints.aws_parts import container_engine, feed_of, fire_of, function_engine, open_parts
from stepwell_server.entrypoints.aws_process import FunctionProcess
from stepwell_server.frontend.routes import ROUTES
from stepwell_server.history.hints import message_of, read_hint
from stepwell_server.matching.queue_name import QueueName
from stepwell_server.matching.queue_pump import QueuePump
from stepwell_server.timer_sweeper import messages
from stepwell_server.timer_sweeper.buckets import TimerRow
from tests.support.aws.cells import Cell
from tests.support.aws.event_pump import as_event_record
from tests.support.aws.meter import Counted, Meter
from tests.support.engine import ShiftedClock
from tests.support.http_events import http_event

BATCH = 10
_SETTLE_SECONDS = 20.0


@dataclass
class MeteredCell:
    """``transport`` is the client's and the worker's."""

    meter: Meter
    clock: ShiftedClock
    transport: Transport
    in_memory: Callable[[QueueName], bool] | None
    """Whether a poll waits; None where polls are of queues."""
    _feed: Callable[[Sequence[Any]], Awaitable[None]]
    _fire: Callable[[TimerRow], Awaitable[None]]
    _stream: Any
    _iterator: str

    async def call(self, operation: Operation[Any, Any], request: Any) -> Any:
        return await self.transport.call(operation, request)

    async def feed(self) -> int:
        """Hands on what has been committed; the number of commits."""
        count = 0
        while True:
            answer = await asyncio.to_thread(self._stream.get_records, ShardIterator=self._iterator)
            self._iterator = answer["NextShardIterator"]
            records = [as_event_record(each) for each in answer["Records"]]
            inserts = [
                each
                for each in records
                if each["eventName"] == "INSERT" and each["dynamodb"]["Keys"]["sk"]["S"].startswith("C#")
            ]
            if not records:
                return count
            count += len(inserts)
            for start in range(0, len(inserts), BATCH):
                await self._feed(inserts[start : start + BATCH])

    async def fire(self, within: timedelta | None = None) -> None:
        """The deadlines that are armed now, in the order of their times, with the clock put forward; or all that are
        due ``within`` a time from now, also those that are armed meanwhile."""
        ends = None if within is None else self.clock.now() + within
        due = self._due(ends)
        while due:
            for row in due:
                self.clock.shift += max(row.fire_at - self.clock.now(), timedelta(0)) + timedelta(milliseconds=2)
                await self._fire(row)
            due = [] if ends is None else self._due(ends)

    def _due(self, ends: datetime | None) -> list[TimerRow]:
        due = [row for row in self.meter.armed if ends is None or row.fire_at <= ends]
        self.meter.armed = [row for row in self.meter.armed if row not in due]
        return sorted(due, key=lambda row: row.fire_at)

    async def worker_takes(self, operation: Operation[Any, Any], request: Any, after: Awaitable[Any] | None) -> Any:
        """The task that ``after`` makes: taken by a poll that waits already where polls are held, from the queue else.
        ``after``: None when it was made before."""
        if self.in_memory is None:
            if after is not None:
                await after
            await self.feed()
            (task,) = (await self.call(operation, request)).tasks
            return task
        name = QueueName(request.namespace, request.task_queue, _KINDS[type(request)])
        poll = asyncio.ensure_future(self.call(operation, request))
        while after is not None and not self.in_memory(name):
            await asyncio.sleep(0)
        if after is not None:
            await after
        (task,) = (await poll).tasks
        return task

    def measured(self) -> "_Measuring":
        return _Measuring(self.meter)


class _Measuring:
    """``with cell.measured() as cost: …`` and then ``cost()``."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def __enter__(self) -> Callable[[], Counted]:
        before = self._meter.now()
        self._after: Counted | None = None

        def cost() -> Counted:
            return (self._after or self._meter.now()).minus(before)

        return cost

    def __exit__(self, *_: object) -> None:
        self._after = self._meter.now()


_KINDS: dict[type, TaskQueueKind] = {
    r.PollWorkflowTaskRequest: TaskQueueKind.WORKFLOW,
    r.PollActivityTaskRequest: TaskQueueKind.ACTIVITY,
}


class _CountedQueues:
    """The worker's own requests to SQS."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._queues = SqsQueues()

    async def receive(self, queue: str, maximum: int, wait: float, hold: int) -> Sequence[Received]:
        received = await self._queues.receive(queue, maximum, wait, hold)
        self._meter.sqs["receive_message"] += bool(received)
        return received

    async def delete(self, queue: str, handles: Sequence[str]) -> None:
        self._meter.sqs["delete_message_batch"] += 1
        await self._queues.delete(queue, handles)

    async def close(self) -> None:
        await self._queues.close()


class _ApiEvents:
    """The transport to functions: each call is an event of the API, handled in the thread of the functions."""

    def __init__(self, meter: Meter, handlers: Sequence[Any], thread: ThreadPoolExecutor) -> None:
        self._meter = meter
        self._handlers = handlers
        self._thread = thread
        self._turn = 0

    async def call(self, operation: Operation[Any, Any], request: Any) -> Any:
        self._meter.api[operation.name] += 1
        self._turn += 1
        handler = self._handlers[self._turn % len(self._handlers)]
        answer = await _in(self._thread, handler, http_event(operation, request), None)
        if answer["statusCode"] != 200:
            raise error_from(decode_json(answer["body"].encode(), ErrorBody))
        return decode_json(answer["body"].encode(), operation.response_type)

    async def close(self) -> None:
        return None


async def _in(thread: ThreadPoolExecutor, function: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(thread, function, *arguments)


def _open(settings: AwsSettings, clock: ShiftedClock, meter: Meter, hands_on: bool) -> FunctionProcess:
    """As ``aws_process`` does it, on the test's clock; what opening costs is paid once per process."""
    runner = asyncio.Runner()

    async def opened() -> tuple[Any, Any]:
        parts = await open_parts(settings, stays=False, hands_on=hands_on, clock=clock)
        parts.clients.observer = meter
        engine = function_engine(parts)
        await engine.start()
        return parts, engine

    return FunctionProcess(runner, *runner.run(opened()))


@asynccontextmanager
async def metered_functions(cell: Cell) -> AsyncIterator[MeteredCell]:
    settings = AwsSettings(cell.names.cell, cell.bucket)
    dynamodb, stream, iterator = _plain_clients(cell)
    meter, clock = Meter(dynamodb), ShiftedClock()
    thread = ThreadPoolExecutor(1, thread_name_prefix="functions")
    processes = [await _in(thread, _open, settings, clock, meter, hands_on) for hands_on in (False, False, False, True)]
    *fronts, feed, timers = processes
    feed_handler, timers_handler = aws_feed.handler_of(feed), aws_timers.handler_of(timers)
    handlers = [aws_frontend.handler_of(front) for front in fronts]

    async def feed_records(records: Sequence[Any]) -> None:
        meter.functions["feed"] += 1
        answer = await _in(thread, feed_handler, {"Records": list(records)}, None)
        assert answer["batchItemFailures"] == []

    async def fire(row: TimerRow) -> None:
        """By way of the delay queue, where its writer sent it, or the minute tick does."""
        meter.sqs["send_message_batch"] += not row.queued
        meter.sqs.update(("receive_message", "delete_message_batch"))
        meter.functions["timers"] += 1
        answer = await _in(thread, timers_handler, {"Records": [_message(messages.encode(row))]}, None)
        assert answer["batchItemFailures"] == []

    transport = QueueFedTransport(_ApiEvents(meter, handlers, thread), _CountedQueues(meter))
    try:
        yield MeteredCell(meter, clock, transport, None, feed_records, fire, stream, iterator)
    finally:
        await transport.close()
        for process in processes:
            await _in(thread, process.close)
        thread.shutdown()
        dynamodb.close()
        stream.close()


@asynccontextmanager
async def metered_container(cell: Cell) -> AsyncIterator[MeteredCell]:
    dynamodb, stream, iterator = _plain_clients(cell)
    meter, clock = Meter(dynamodb), ShiftedClock()
    parts = await open_parts(AwsSettings(cell.names.cell, cell.bucket), stays=True, clock=clock)
    parts.clients.observer = meter
    engine = container_engine(parts)
    await engine.start()
    pump = QueuePump(engine.matching, parts.queues, clock, read_hint, message_of)
    pump.start()
    feed, fire_row = feed_of(parts, engine), fire_of(engine)

    async def feed_records(records: Sequence[Any]) -> None:
        for record in records:
            parsed = parse(record)
            assert parsed is not None
            await feed.handle(parsed)
        assert await engine.settle(_SETTLE_SECONDS)

    async def fire(row: TimerRow) -> None:
        await fire_row(row)
        assert await engine.settle(_SETTLE_SECONDS)

    try:
        yield MeteredCell(
            meter,
            clock,
            _InProcess(meter, engine),
            engine.matching.has_waiting_poller,
            feed_records,
            fire,
            stream,
            iterator,
        )
    finally:
        await engine.stop()
        await pump.stop()
        await parts.backend.close()
        dynamodb.close()
        stream.close()


@asynccontextmanager
async def metered_tick(cell: Cell) -> AsyncIterator[tuple[Meter, Callable[[], Awaitable[Any]]]]:
    """The function of each minute: the first call is two minutes before an hour, each a minute after the last, however
    long that took."""
    dynamodb, stream, _ = _plain_clients(cell)
    meter, clock = Meter(dynamodb), ShiftedClock()
    thread = ThreadPoolExecutor(1, thread_name_prefix="tick")
    process = await _in(thread, _open, AwsSettings(cell.names.cell, cell.bucket), clock, meter, False)
    handler = aws_timer_tick.handler_of(process)

    hour = clock.now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    minutes = itertools.count(-2)

    async def tick() -> Any:
        clock.shift += hour + timedelta(minutes=next(minutes)) - clock.now()
        return await _in(thread, handler, {}, None)

    try:
        yield meter, tick
    finally:
        await _in(thread, process.close)
        thread.shutdown()
        dynamodb.close()
        stream.close()


class _InProcess:
    """The transport to a container: each call is a request to it. Polls are left open all the time, so they are not
    counted among the requests of a run."""

    def __init__(self, meter: Meter, engine: Any) -> None:
        self._meter = meter
        self._engine = engine
        self._handlers = {route.operation.name: route.handler for route in ROUTES}

    async def call(self, operation: Operation[Any, Any], request: Any) -> Any:
        self._meter.api[operation.name] += 1
        answer = await self._handlers[operation.name](self._engine, request)
        if operation not in (o.POLL_WORKFLOW_TASK, o.POLL_ACTIVITY_TASK):
            assert await self._engine.settle(_SETTLE_SECONDS)
        return answer

    async def close(self) -> None:
        return None


def _plain_clients(cell: Cell) -> tuple[Any, Any, str]:
    """Uncounted: to look things up, and to read the stream as a mapping does (which costs nothing there)."""
    dynamodb, streams = boto3.client("dynamodb"), boto3.client("dynamodbstreams")
    arn = dynamodb.describe_table(TableName=cell.names.exec_table)["Table"]["LatestStreamArn"]
    (shard,) = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    iterator = streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")
    return dynamodb, streams, iterator["ShardIterator"]


def _message(body: str) -> dict[str, Any]:
    return {
        "messageId": "1",
        "receiptHandle": "1",
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "timers",
    }
