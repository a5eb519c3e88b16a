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
from ..common.clock import Clock
from ..history.engine import Engine
from ..history.feed import Feed
from ..history.hints import message_of, read_hint
from ..history.ports import StoreUnavailable
from ..matching.ports import QueuesUnavailable
from ..matching.queue_pump import QueuePump
from ..timer_sweeper.bucket_sweeper import BucketSweeper
from .aws_parts import AwsParts, container_engine, feed_of, fire_of, open_parts
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
    ) -> "AwsContainer":
        """Raises AwsRefused and StoreUnavailable, which say what is missing."""
        owner = owner or f"{socket.gethostname()}-{os.getpid()}"
        async with AsyncExitStack() as opening:
            parts = await open_parts(settings, stays=True, clock=clock, clients=clients)
            opening.push_async_callback(parts.backend.close)
            engine = container_engine(parts)
            await engine.start()
            pump = QueuePump(engine.matching, parts.queues, parts.clock, read_hint, message_of)
            pump.start()
            opening.push_async_callback(pump.stop)
            opening.push_async_callback(engine.stop)  # first, so that no poll takes more
            reader = await _reader(parts, feed_of(parts, engine), owner)
            reader.start()
            opening.push_async_callback(reader.stop)
            sweeper = BucketSweeper(parts.rows, parts.leases, parts.clock, fire_of(engine), owner)
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
    names, clients = parts.settings.names, parts.clients
    dynamodb, sqs = clients.service("dynamodb"), clients.service("sqs")
    stream_arn = await stream_of(dynamodb, names.exec_table)

    async def handle(record: Mapping[str, Any]) -> None:
        parsed = parse(record)
        if parsed is not None:
            await feed.handle(parsed)

    failed = FailedRecords(sqs, names, stream_arn, parts.clock)
    leases = ShardLeases(dynamodb, names.ctl_table, stream_arn, parts.clock)
    streams = clients.service("dynamodbstreams")
    return StreamReader(streams, stream_arn, leases, handle, failed.keep, parts.clock, owner, _passes)


def _passes(error: Exception) -> bool:
    return isinstance(error, StoreUnavailable | QueuesUnavailable | Unavailable)
