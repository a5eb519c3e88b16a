"""Puts what stands in an hour's bucket among the near rows, a day before it fires. Both feeders do it."""

import asyncio
from collections.abc import Callable

from . import buckets, progress
from .arming import Arming
from .buckets import Partition
from .ports import TimerBuckets

_PAGE = 200
_AT_ONCE = 25


async def promote(
    rows: TimerBuckets,
    arming: Arming,
    partition: Partition,
    cursor_ms: int,
    now_ms: int,
    *,
    goes_on: Callable[[], bool],
) -> int:
    """The new cursor of a partition of hours' buckets. Rows up to it stand among the near ones; repeating some replaces
    them. Ends early, once it is further, when ``goes_on`` says no."""
    for hour in progress.hours_due(cursor_ms, now_ms, limit=24 * 14):
        end = hour + buckets.FAR_BUCKET_MS
        after = ""
        while True:
            page = await rows.read(partition, hour, max(cursor_ms, hour), end, after=after, limit=_PAGE)
            for first in range(0, len(page.rows), _AT_ONCE):
                some = page.rows[first : first + _AT_ONCE]
                await asyncio.gather(*(arming.arm(row.key, row.fire_at, row.awaited) for row in some))
            after = page.after
            reached = page.rows[-1].place_ms if after else end
            further, cursor_ms = reached > cursor_ms, reached
            if further and not goes_on():
                return cursor_ms
            if not after:
                break
    return cursor_ms
