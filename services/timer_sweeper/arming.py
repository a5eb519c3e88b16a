"""What a writer does to arm a deadline, before the write that needs it and once more behind it.

The row is put first, so a writer that dies leaves a row without a write, never a write without a row. The feeder of an
installation that scales to zero looks once a minute at what fires within the next two; what is armed for about as soon
goes to its delay queue at once: **before** the row, which says so, so that the feeder need not send it again.

A writer may be held up between looking at the clock and having put the row, or between that and its write. Readers look
again at what they have passed, and keep rows whose write may still come, for a minute; a writer that was held up for
five seconds arms again.
"""

from datetime import datetime

from ..common.clock import Clock
from ..history.commit import ExecutionKey
from ..history.ports import StoreUnavailable
from . import buckets
from .buckets import Awaited, TimerRow
from .messages import delay_of
from .ports import Delayed, DelayQueue, TimerBuckets

SENT_AT_ONCE_MS = 435_000
"""The two minutes that the feeder is ahead, five by which a clock may be slow before AWS refuses its requests, and room
for a slow put."""

_TRIES = 4


class Arming:
    """``soon``: the delay queue, where this process' deadlines may have no sweeper; None where it runs one."""

    def __init__(self, rows: TimerBuckets, clock: Clock, soon: DelayQueue | None = None) -> None:
        self._rows = rows
        self._clock = clock
        self._soon = soon

    async def arm(self, key: ExecutionKey, fire_at: datetime, awaited: Awaited = buckets.UNKNOWN) -> TimerRow:
        """The row will be fired, whatever becomes of this process. Raises StoreUnavailable."""
        for _ in range(_TRIES):
            row = await self._put(buckets.row(key, fire_at, self._clock.now(), awaited))
            if not buckets.must_arm_again(row, self._clock.now()):
                return row
        raise StoreUnavailable(f"the timer table took too long for {key!r} {_TRIES} times; nothing was written; retry")

    async def landed(self, row: TimerRow) -> None:
        """To be called when the write that the row was armed for has landed, or may have."""
        if buckets.must_arm_again(row, self._clock.now()):
            await self.arm(row.key, row.fire_at, row.awaited)

    async def _put(self, row: TimerRow) -> TimerRow:
        if self._soon is not None and row.place_ms - row.armed_ms < SENT_AT_ONCE_MS:
            row = row._replace(queued=True)
            await self._soon.send([Delayed(row, delay_of(row, row.armed_ms))])
        await self._rows.put(row)
        return row
