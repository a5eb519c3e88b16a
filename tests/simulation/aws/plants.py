"""Faults planted into what is of AWS alone, one at a time, to show that the simulation finds them."""

import asyncio
from collections.abc import Callable
from typing import Any
from unittest import mock

from stepwell_server.adapters.aws.s3_blobs import S3Blobs
from stepwell_server.history import blob_collector
from stepwell_server.timer_sweeper import due_firings, leasing, progress
from stepwell_server.timer_sweeper.buckets import TimerRow
from stepwell_server.timer_sweeper.ports import Lease

_taken = leasing.taken
_put = S3Blobs.put
_handle = due_firings.DueFirings._handle
_background: set[asyncio.Task[None]] = set()


def young_rows_skipped() -> Any:
    """A sweeper never looks back: what is put behind what it has read, by a slow write or clock, is left out."""
    return mock.patch.multiple(progress, OVERLAP_MS=0, _LOOKS_BACK=(), SKEW_MS=0)


def done_before_it_fired() -> Any:
    """A row counts as done when its firing begins: the cursor passes it, and whoever dies then leaves it behind."""

    async def handle(self: due_firings.DueFirings, row: TimerRow, done: Callable[[TimerRow], None]) -> None:
        done(row)
        await _handle(self, row, lambda _: None)

    return mock.patch.object(due_firings.DueFirings, "_handle", handle)


def writes_never_waited_for() -> Any:
    """A row whose write is not there yet is dropped at its first firing."""
    return mock.patch.object(due_firings.buckets, "young_for", return_value=0)


def lease_taken_from_now_on() -> Any:
    """A new holder trusts its own clock: what was due before the lease ended was done by the one before."""

    def taken(partition: Any, there: Lease | None, owner: str, now_ms: int) -> Lease:
        lease = _taken(partition, there, owner, now_ms)
        return lease._replace(cursor_ms=max(lease.cursor_ms, now_ms + progress.SKEW_MS))

    return mock.patch.object(leasing, "taken", taken)


def put_acknowledged_before_it_is_durable() -> Any:
    """An object is put behind the write that refers to it, or never."""

    async def put(self: S3Blobs, key: str, data: bytes) -> None:
        async def later() -> None:
            await asyncio.sleep(0.05)
            await _put(self, key, data)

        task = asyncio.get_running_loop().create_task(later())
        _background.add(task)
        task.add_done_callback(_background.discard)

    return mock.patch.object(S3Blobs, "put", put)


def fresh_objects_taken_for_garbage() -> Any:
    """The collector deletes what nothing refers to yet, however young it is."""
    return mock.patch.object(blob_collector, "_is_old", return_value=True)


def items_forgotten_by_the_collector() -> Any:
    """What only activity items refer to is taken for garbage."""
    return mock.patch.object(blob_collector, "ActivityTaskScheduled", object)
