"""``stepwell server --aws``: API, feed and sweeper of a cell in one process, for those who run containers.

Tasks go to workers that wait in this process, past the queues; what waits for nobody here goes to SQS, where other
containers and workers find it. Any number of such processes, and the functions, serve one cell side by side.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from stepwell.api.errors import Unavailable

from ..adapters.aws.client import AwsClients
from ..adapters.aws.failed_records import FailedRecords
from ..adapters.aws.settings import AwsSettings
from ..adapters.aws.shard_leases import ShardLeases
from ..adapters.aws.stream_reader import StreamReader, stream_of
from ..adapters.aws.stream_records import parse
from ..common import metric_names as names
from ..common.clock import Clock
from ..common.telemetry import Write, to_stdout
from ..history.engine import Engine
from ..history.feed import Feed
from ..history.hints import message_of, read_hint
from ..history.ports import StoreRefused, StoreUnavailable
from ..matching.ports import QueuesUnavailable
from ..matching.queue_pump import QueuePump
from ..timer_sweeper.bucket_sweeper import BucketSweeper
from ..timer_sweeper.ports import lag_recorder
from .aws_parts import AwsParts, container_engine, feed_of, fire_of, open_parts
from .aws_presence import check_cell
from .blob_collecting import keep_collecting

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AwsContainer:
    """A running process of a cell. ``stop`` once."""

    parts: AwsParts
    engine: Engine
    sweeper: BucketSweeper
    _running: AsyncExitStack

    @classmethod
    async def start(
        cls,
        settings: AwsSettings,
        *,
        clock: Clock | None = None,
        owner: str = "",
        clients: AwsClients | None = None,
        write: Write = to_stdout,
    ) -> "AwsContainer":
        """Raises AwsRefused, CellIncomplete and StoreUnavailable, which say what is missing."""
        owner = owner or f"{socket.gethostname()}-{os.getpid()}"
        async with AsyncExitStack() as opening:
            parts = await open_parts(settings, stays=True, clock=clock, clients=clients, write=write)
            opening.push_async_callback(parts.backend.close)
            parts.telemetry.start()
            opening.push_async_callback(parts.telemetry.stop)
            await check_cell(settings, parts.clients)
            engine = container_engine(parts)
            await engine.start()
            pump = QueuePump(engine.matching, parts.queues, parts.clock, read_hint, message_of)
            pump.start()
            opening.push_async_callback(pump.stop)
            opening.push_async_callback(engine.stop)  # first, so that no poll takes more
            reader = await _reader(parts, feed_of(parts, engine), owner)
            reader.start()
            opening.push_async_callback(reader.stop)
            lag = lag_recorder(parts.telemetry.metrics)
            sweeper = BucketSweeper(
                parts.rows, parts.leases, parts.clock, fire_of(engine), owner, parts.layouts, on_lag=lag
            )
            sweeper.start()
            opening.push_async_callback(sweeper.stop)
            await sweeper.ready()
            collecting = asyncio.create_task(keep_collecting(parts.backend))
            opening.push_async_callback(_end, collecting)
            return cls(parts, engine, sweeper, opening.pop_all())
        raise AssertionError("the block above returns or raises")

    async def stop(self) -> None:
        """Ends long polls, gives back what waits here, and frees leases."""
        await self._running.aclose()


async def _end(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _reader(parts: AwsParts, feed: Feed, owner: str) -> StreamReader:
    cell, clients = parts.settings.names, parts.clients
    dynamodb, sqs = clients.service("dynamodb"), clients.service("sqs")
    stream_arn = await stream_of(dynamodb, cell.exec_table)

    async def handle(record: Mapping[str, Any]) -> None:
        parsed = parse(record)
        if parsed is not None:
            await feed.handle(parsed)

    async def set_aside(record: Mapping[str, Any], shard_id: str, error: Exception) -> None:
        await failed.keep(record, shard_id, error)
        parts.telemetry.metrics.count(names.FEED_FAILURES)

    failed = FailedRecords(sqs, cell, stream_arn, parts.clock)
    leases = ShardLeases(dynamodb, cell.ctl_table, stream_arn, parts.clock)
    streams = clients.service("dynamodbstreams")
    return StreamReader(streams, stream_arn, leases, handle, set_aside, parts.clock, owner, _passes)


def _passes(error: Exception) -> bool:
    """Refusals that somebody can repair pass too: what is set aside for them has to be fetched back by hand."""
    curable = isinstance(error, StoreRefused) and error.curable
    return curable or isinstance(error, StoreUnavailable | QueuesUnavailable | Unavailable)
