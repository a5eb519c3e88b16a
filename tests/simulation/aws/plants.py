"""Faults planted into what is of AWS alone, one at a time, to show that the simulation finds them."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from unittest import mock

from stepwell_server.adapters.aws import backend
from stepwell_server.adapters.aws.activity_items import ActivityItemsTable
from stepwell_server.adapters.aws.s3_blobs import S3Blobs
from stepwell_server.adapters.aws.shard_leases import ShardLease
from stepwell_server.adapters.aws.stream_reader import Record, StreamReader
from stepwell_server.adapters.aws.stream_records import number_of
from stepwell_server.history import blob_collector, feed
from stepwell_server.history.activity_item import ActivityItem
from stepwell_server.timer_sweeper import buckets, leasing, minute_tick, progress
from stepwell_server.timer_sweeper.buckets import TimerRow
from stepwell_server.timer_sweeper.due_firings import DueFirings
from stepwell_server.timer_sweeper.minute_tick import MinuteTick
from stepwell_server.timer_sweeper.ports import Lease, RowsPage

_put = S3Blobs.put
_encode = ActivityItemsTable.encode
_begin = DueFirings.begin
_send = MinuteTick._send
_handle_all = StreamReader._handle_all
_background: set[asyncio.Task[Any]] = set()


def _left_to_itself(work: Any) -> None:
    task = asyncio.get_running_loop().create_task(work)
    _background.add(task)
    task.add_done_callback(_background.discard)


def young_rows_skipped() -> Any:
    """A sweeper never looks back: what is put behind what it has read, by a slow write or clock, is left out."""
    return mock.patch.multiple(progress, OVERLAP_MS=0, _LOOKS_BACK=(), SKEW_MS=0)


def slow_clocks_forgotten() -> Any:
    """A sweeper looks back for slow writes alone."""
    return mock.patch.object(progress, "_LOOKS_BACK", progress._LOOKS_BACK[:1])


def writes_not_waited_for() -> Any:
    """A row whose write is not there when it is fired first needs no more."""
    return mock.patch.object(buckets, "YOUNG_MS", 0)


def rows_done_before_they_are_fired() -> Any:
    """The cursor does not wait for what is being fired."""

    async def begin(self: DueFirings, row: TimerRow, done: Callable[[TimerRow], None]) -> None:
        done(row)
        await _begin(self, row, lambda _: None)

    return mock.patch.object(DueFirings, "begin", begin)


def rows_done_before_they_are_sent() -> Any:
    """The cursor of a tick does not wait for what it sends."""

    async def send(self: MinuteTick, page: RowsPage) -> int:
        _left_to_itself(_send(self, page))
        return len(page.rows)

    return mock.patch.object(MinuteTick, "_send", send)


def swept_partitions_taken_at_once() -> Any:
    """A tick moves the cursor of a partition as soon as no sweeper has it."""
    return mock.patch.object(minute_tick, "_was_swept", return_value=False)


def cursors_not_taken_over() -> Any:
    """Who takes a lease begins at its own time."""
    taken = leasing.taken

    def anew(partition: buckets.Partition, there: Lease | None, owner: str, now_ms: int) -> Lease:
        return taken(partition, there, owner, now_ms)._replace(cursor_ms=now_ms)

    return mock.patch.object(leasing, "taken", anew)


def writers_never_arm_again() -> Any:
    """Who was held up between the row and the write does not look at the clock."""
    return mock.patch.object(buckets, "must_arm_again", return_value=False)


def late_writes_left_alone() -> Any:
    """The feed does not look whether a commit has landed behind its own deadline."""
    return mock.patch.object(feed, "LATE", timedelta(days=1))


def records_done_before_they_are_handled() -> Any:
    """The checkpoint of a shard does not wait for what is being handled."""

    async def handle_all(self: StreamReader, lease: ShardLease, records: Sequence[Record]) -> ShardLease | None:
        renewed = await self._renewed(lease, number_of(records[-1])) if records else lease
        return None if renewed is None else await _handle_all(self, renewed, records)

    return mock.patch.object(StreamReader, "_handle_all", handle_all)


def put_acknowledged_before_it_is_durable() -> Any:
    """An object is put behind the write that refers to it, or never."""

    async def put(self: S3Blobs, key: str, data: bytes) -> None:
        async def later() -> None:
            await asyncio.sleep(0.05)
            await _put(self, key, data)

        _left_to_itself(later())

    return mock.patch.object(S3Blobs, "put", put)


def young_objects_collected() -> Any:
    """What nothing refers to is garbage, though a write that refers to it may be under way."""
    return mock.patch.object(blob_collector, "_is_old", return_value=True)


class _WithoutItems:
    def __init__(self, log: Any) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def activities(self, *_: Any) -> list[ActivityItem]:
        return []


def items_overlooked_by_the_collector() -> Any:
    """What only an activity's item refers to is garbage."""
    collector = backend.BlobCollector
    return mock.patch.object(backend, "BlobCollector", lambda log, *more: collector(_WithoutItems(log), *more))


def items_put_on_any_version() -> Any:
    """Who puts an activity's item does not look at what is there."""

    def unconditional(self: ActivityItemsTable, item: ActivityItem) -> dict[str, Any]:
        return {name: part for name, part in _encode(self, item).items() if name in ("TableName", "Item")}

    return mock.patch.object(ActivityItemsTable, "encode", unconditional)
