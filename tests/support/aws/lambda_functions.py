"""The functions of an installation, run as Lambda runs them, on whatever emulator the cell is on: one event at a time
in each process, and nothing between two events. API events come from the client, the others from pumps on the stream
and the delay queue, since the emulators do not call functions (or not as the platform does).
"""

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import boto3
from stepwell.api.codec import decode_json
from stepwell.api.errors import ErrorBody, error_from
from stepwell.api.operations import Operation
from stepwell.client import Client
from stepwell.transport import Transport
from stepwell.transport.queue_fed import QueueFedTransport
from stepwell.transport.sqs import SqsQueues

from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.entrypoints import aws_feed, aws_frontend, aws_timer_tick, aws_timers
from stepwell_server.entrypoints.aws_process import FunctionProcess, open_process
from tests.support.aws.cells import Cell
from tests.support.aws.event_pump import Faults, QueuePump, StreamPump, as_event_record
from tests.support.http_events import http_event

HandlerOf = Callable[[FunctionProcess], Callable[[Any, Any], Any]]
_API_INSTANCES = 3
_PAUSE = 0.05
TICK_SECONDS = 20.0


class Functions:
    """Made by :func:`running_functions`. ``failed`` has what the mappings gave up."""

    def __init__(self, cell: Cell, seed: int, faults: Faults) -> None:
        self._settings = AwsSettings(cell.names.cell, cell.bucket)
        self.cell = cell
        self._rng = random.Random(seed)
        self._faults = faults
        self._local = threading.local()
        self._api = ThreadPoolExecutor(_API_INSTANCES, thread_name_prefix="api")
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._processes: list[FunctionProcess] = []
        self.failed: list[Any] = []
        self.troubles: list[BaseException] = []
        self.lines: list[str] = []
        """Written for CloudWatch."""

    def client(self, **options: Any) -> Client:
        """Through the functions; its workers receive from SQS."""
        return Client(QueueFedTransport(_ApiEvents(self), SqsQueues()), **options)

    def transport(self) -> Transport:
        """Through the functions, and no more than that."""
        return _ApiEvents(self)

    def api_event(self, event: dict[str, Any]) -> dict[str, Any]:
        handler = getattr(self._local, "handler", None)
        if handler is None:
            handler = self._local.handler = self._function(aws_frontend.handler_of)
        answer: dict[str, Any] = handler(event, None)
        return answer

    async def call(self, event: dict[str, Any]) -> dict[str, Any]:
        return await asyncio.get_running_loop().run_in_executor(self._api, self.api_event, event)

    def _function(self, handler_of: HandlerOf, *, hands_on: bool = False) -> Callable[[Any, Any], Any]:
        process = open_process(self._settings, hands_on=hands_on, write=self.lines.append)
        self._processes.append(process)
        return handler_of(process)

    # --- event sources ---

    def start(self) -> None:
        for work in (self._read_stream, self._read_timers, self._tick):
            thread = threading.Thread(target=self._guarded, args=(work,), name=work.__name__)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._api.shutdown()
        closing = threading.Thread(target=lambda: [process.close() for process in self._processes])
        closing.start()
        closing.join()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.troubles.append(error)

    def _read_stream(self) -> None:
        pump = StreamPump(self._function(aws_feed.handler_of), self._rng, self._faults)
        dynamodb, streams = boto3.client("dynamodb"), boto3.client("dynamodbstreams")
        arn = dynamodb.describe_table(TableName=self.cell.names.exec_table)["Table"]["LatestStreamArn"]
        (shard,) = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
        iterator = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        while not self._stop.is_set():
            answer = streams.get_records(ShardIterator=iterator)
            iterator = answer["NextShardIterator"]
            pump.feed([as_event_record(record) for record in answer["Records"]])
            if not pump.run(rounds=5):
                self._stop.wait(_PAUSE)
        self.failed += pump.failed
        dynamodb.close()
        streams.close()

    def _read_timers(self) -> None:
        sqs = boto3.client("sqs")
        url = sqs.get_queue_url(QueueName=self.cell.names.timer_queue)["QueueUrl"]
        pump = QueuePump(sqs, url, self._function(aws_timers.handler_of, hands_on=True), self._rng, tries=1_000)
        while not self._stop.is_set():
            if not pump.run():
                self._stop.wait(_PAUSE)
        self.failed += pump.failed
        sqs.close()

    def _tick(self) -> None:
        handler = self._function(aws_timer_tick.handler_of)
        while True:
            handler({}, None)
            if self._stop.wait(TICK_SECONDS):
                return


class _ApiEvents:
    """The transport: every call is an API event."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions

    async def call(self, operation: Operation[Any, Any], request: Any) -> Any:
        answer = await self._functions.call(http_event(operation, request))
        body = answer["body"].encode()
        if answer["statusCode"] != 200:
            raise error_from(decode_json(body, ErrorBody))
        return decode_json(body, operation.response_type)

    async def close(self) -> None:
        return None


@contextmanager
def running_functions(cell: Cell, *, seed: int = 0, faults: Faults | None = None) -> Iterator[Functions]:
    functions = Functions(cell, seed, faults or Faults())
    functions.start()
    try:
        yield functions
    finally:
        functions.stop()
    assert functions.troubles == []


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "did not come true in time"
        time.sleep(0.05)
