"""A container's own reader of the stream of commits: what the feed's function is elsewhere.

Theory of operation. Shards are leased, parents before their children, each read in order from the last record that
was handled, or from the oldest that is there. Of a batch all records are handled side by side, as none depends on
another; those that fail are tried again a few times with pauses and then set aside, so that the shard goes on. While
the store or the queues are out of order nothing is set aside, for some minutes: that passes. Only then the checkpoint
moves; a reader that dies leaves its shards to others when its leases end, and they handle some records again.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from ...common.clock import Clock
from ...history.ports import StoreUnavailable
from ...timer_sweeper.buckets import to_ms
from . import stream_records
from .client import ServiceClient
from .faults import AwsRefused
from .shard_leases import ShardLeases
from .stream_records import Record
from .stream_shards import Shard, ShardLease, to_read

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=30)
_LOOK_SECONDS = 5.0
"""Between looks for shards that are new, or that another reader has left."""

_IDLE_SECONDS = 0.25
"""Between reads of a shard that has nothing new."""

_BATCH = 200
_TRIES = 5
_FIRST_PAUSE = 0.2
_LAST_PAUSE = 5.0

_PASSES_SECONDS = 300.0
"""How long an error that should pass is waited for; what one record meets for ever must not hold up all."""

Handle = Callable[[Record], Awaitable[None]]
SetAside = Callable[[Record, str, Exception], Awaitable[None]]
"""Record, shard and why; raises when it could not be kept."""

Passes = Callable[[Exception], bool]


class StreamReader:
    """``handle(record)`` may be called again with the same one. ``set_aside`` keeps what it has refused ``_TRIES``
    times, other than with errors that pass (``passes``)."""

    def __init__(
        self,
        streams: ServiceClient,
        stream_arn: str,
        leases: ShardLeases,
        handle: Handle,
        set_aside: SetAside,
        clock: Clock,
        owner: str,
        passes: Passes,
    ) -> None:
        self._streams = streams
        self._stream_arn = stream_arn
        self._leases = leases
        self._handle = handle
        self._set_aside = set_aside
        self._clock = clock
        self._owner = owner
        self._passes = passes
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._look = asyncio.Event()
        self._loop_task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._loop_task = asyncio.get_running_loop().create_task(self._run(), name="stream-reader")

    async def stop(self) -> None:
        """What is being handled is left, and handled again by whoever reads the shard next."""
        tasks = [*self._reading.values(), *([self._loop_task] if self._loop_task is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # --- shards ---

    async def _run(self) -> None:
        while True:
            self._look.clear()
            try:
                await self._take_shards()
            except Exception as error:
                log.warning(
                    "The shards of the stream of commits cannot be looked at (%s); trying again",
                    error,
                    exc_info=_trace(error),
                )
            timer = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look.set)
            try:
                await self._look.wait()
            finally:
                timer.cancel()

    async def _take_shards(self) -> None:
        shards = await self._shards()
        leases = await self._leases.all()
        for lease in to_read(shards, leases, self._reading, to_ms(self._clock.now())):
            mine = lease.changed(self._owner, self._lease_end())
            if await self._leases.change(mine):
                task = asyncio.get_running_loop().create_task(self._read(mine))
                self._reading[mine.shard_id] = task
                task.add_done_callback(partial(self._ended, mine.shard_id))

    async def _shards(self) -> list[Shard]:
        found: list[Shard] = []
        where: dict[str, Any] = {"StreamArn": self._stream_arn}
        while True:
            description = (await self._streams.call("describe_stream", **where))["StreamDescription"]
            found += [Shard(shard["ShardId"], shard.get("ParentShardId", "")) for shard in description["Shards"]]
            if not (last := description.get("LastEvaluatedShardId")):
                return found
            where["ExclusiveStartShardId"] = last

    def _ended(self, shard_id: str, done: "asyncio.Task[None]") -> None:
        del self._reading[shard_id]
        if not done.cancelled():
            if (error := done.exception()) is not None:
                log.error(
                    "Reading shard %s of the stream of commits failed (%s); it is read again when its lease ends",
                    shard_id,
                    error,
                    exc_info=_trace(error),
                )
            self._look.set()

    # --- one shard ---

    async def _read(self, lease: ShardLease) -> None:
        """Until its end, or until somebody else has it."""
        iterator: str | None = ""
        while iterator is not None:
            try:
                if not iterator:
                    iterator = await self._iterator(lease)
                answer = await self._streams.call("get_records", ShardIterator=iterator, Limit=_BATCH)
            except StoreUnavailable as error:
                log.warning("Shard %s cannot be read now (%s)", lease.shard_id, error)
                await asyncio.sleep(_LAST_PAUSE)
                continue
            except AwsRefused as refused:
                if refused.code not in ("ExpiredIteratorException", "TrimmedDataAccessException"):
                    raise
                lease = self._begin_again(lease, refused)
                iterator = ""
                continue
            records: Sequence[Record] = answer["Records"]
            iterator = answer.get("NextShardIterator")
            renewed = await self._handle_all(lease, records)
            if renewed is None:
                return
            lease = renewed
            if not records and iterator is not None:
                await asyncio.sleep(_IDLE_SECONDS)
        await self._leases.change(lease.changed("", 0, done=True))

    async def _iterator(self, lease: ShardLease) -> str:
        behind = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": lease.after}
        where = behind if lease.after else {"ShardIteratorType": "TRIM_HORIZON"}
        answer = await self._streams.call(
            "get_shard_iterator", StreamArn=self._stream_arn, ShardId=lease.shard_id, **where
        )
        iterator: str = answer["ShardIterator"]
        return iterator

    def _begin_again(self, lease: ShardLease, refused: AwsRefused) -> ShardLease:
        if refused.code == "ExpiredIteratorException":
            return lease
        log.error(
            "Shard %s was not read for a day: the oldest of it is gone, and what it was to hand on waits for deadlines",
            lease.shard_id,
        )
        return lease._replace(after="")

    async def _handle_all(self, lease: ShardLease, records: Sequence[Record]) -> ShardLease | None:
        """The lease behind the records, or as it was while it needs no renewal; None when it is another's by now."""
        loop = asyncio.get_running_loop()
        work = {loop.create_task(self._handle_one(lease.shard_id, record)) for record in records}
        try:
            waiting = work
            while waiting:
                _, waiting = await asyncio.wait(waiting, timeout=LEASE.total_seconds() / 3)
                if waiting:
                    renewed = await self._renewed(lease, lease.after)
                    if renewed is None:
                        return None
                    lease = renewed
        finally:
            for task in work:
                task.cancel()
        if records:
            return await self._renewed(lease, stream_records.number_of(records[-1]))
        if lease.until_ms - to_ms(self._clock.now()) > LEASE.total_seconds() * 500:
            return lease
        return await self._renewed(lease, lease.after)

    async def _renewed(self, lease: ShardLease, after: str) -> ShardLease | None:
        renewed = lease.changed(self._owner, self._lease_end(), after)
        while True:
            try:
                if await self._leases.change(renewed):
                    return renewed
            except StoreUnavailable as error:
                log.warning("The checkpoint of shard %s cannot be written (%s)", lease.shard_id, error)
                await asyncio.sleep(_FIRST_PAUSE)
                continue
            log.warning("Shard %s is read by somebody else by now", lease.shard_id)
            return None

    async def _handle_one(self, shard_id: str, record: Record) -> None:
        tries = 0
        pause = _FIRST_PAUSE
        ends = self._clock.monotonic() + _PASSES_SECONDS
        while True:
            try:
                await self._handle(record)
                return
            except Exception as error:
                tries += not self._passes(error)
                name = stream_records.name_of(record)
                if tries >= _TRIES or self._clock.monotonic() > ends:
                    log.error("A record of shard %s (%s) is set aside", shard_id, name, exc_info=error)
                    await self._keep(shard_id, record, error)
                    return
                log.warning("A record of shard %s (%s) failed (%s); trying again", shard_id, name, error)
            await asyncio.sleep(random.uniform(pause / 2, pause))
            pause = min(2 * pause, _LAST_PAUSE)

    async def _keep(self, shard_id: str, record: Record, error: Exception) -> None:
        for _ in range(_TRIES):
            try:
                await self._set_aside(record, shard_id, error)
                return
            except Exception as failed:
                log.warning("A record could not be kept in the queue of failures", exc_info=failed)
                await asyncio.sleep(_FIRST_PAUSE)
        log.error("Record %s of shard %s is passed over and kept nowhere", stream_records.number_of(record), shard_id)

    def _lease_end(self) -> int:
        return to_ms(self._clock.now() + LEASE)


def _trace(error: BaseException) -> BaseException | None:
    """What AWS says is all there is to know; of a mistake of ours it takes the place."""
    return None if isinstance(error, AwsRefused | StoreUnavailable) else error


async def stream_of(dynamodb: ServiceClient, table: str) -> str:
    """The ARN of the table's stream. Raises AwsRefused when it has none."""
    described: Mapping[str, Any] = (await dynamodb.call("describe_table", TableName=table))["Table"]
    arn: str = described.get("LatestStreamArn", "")
    if not arn or not described.get("StreamSpecification", {}).get("StreamEnabled"):
        raise AwsRefused("dynamodb", "describe_table", table, "NoStream", "the table has no stream; deploy the stack")
    return arn
