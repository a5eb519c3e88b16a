"""Fires rows that are due: so many at a time, again when it failed, for a minute while the write may still come.

What cannot be fired for minutes is armed anew further ahead, so that no cursor waits for it; nothing is given up but
rows whose write never came.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ..common.clock import Clock
from . import buckets
from .buckets import TimerRow
from .ports import Fire, OnLag, ignore_lag

log = logging.getLogger(__name__)

PUT_OFF_SECONDS = 300.0
"""A row that fails for so long is put off."""

PUT_OFF_BY_MS = 450_000
"""More than the idle feeder is ahead (``arming.SENT_AT_ONCE_MS``), so that it finds the row."""

_FIRST_RETRY = 0.5
_LAST_RETRY = 30.0
_OPEN = 4_096


@dataclass(slots=True)
class Counts:
    """Since the start, for metrics."""

    fired: int = 0
    failed: int = 0
    """Tries that raised."""
    kept: int = 0
    """Tries that found no write yet."""
    put_off: int = 0
    longest_lag: float = 0.0
    """Seconds from a row's time to the beginning of its first try."""


class DueFirings:
    """Up to ``concurrency`` run at a time. ``put`` stores a row that is put off."""

    def __init__(
        self,
        fire: Fire,
        put: Callable[[TimerRow], Awaitable[None]],
        clock: Clock,
        concurrency: int = 256,
        on_lag: OnLag = ignore_lag,
    ) -> None:
        self._fire = fire
        self._put = put
        self._clock = clock
        self._on_lag = on_lag
        self._slots = asyncio.Semaphore(concurrency)
        self._room = asyncio.Semaphore(max(_OPEN, concurrency))
        self._tasks: set[asyncio.Task[None]] = set()
        self.counts = Counts()

    async def begin(self, row: TimerRow, done: Callable[[TimerRow], None]) -> None:
        """Returns when the row has been taken up, which waits while too many are; ``done`` is called when it needs no
        more."""
        await self._room.acquire()
        task = asyncio.create_task(self._handle(row, done))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def stop(self, grace: float) -> None:
        """Waits up to ``grace`` seconds for those that run; the others are not done."""
        if self._tasks:
            _, late = await asyncio.wait(list(self._tasks), timeout=grace)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._room.release()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("A deadline is left to the next holder of its partition", exc_info=error)

    async def _handle(self, row: TimerRow, done: Callable[[TimerRow], None]) -> None:
        began = self._clock.monotonic()
        # Once for all, so that a clock that jumps then changes nothing.
        given_up = began + buckets.young_for(row.armed_ms, buckets.to_ms(self._clock.now())) / 1_000
        pause = _FIRST_RETRY
        async with self._slots:
            lag = (buckets.to_ms(self._clock.now()) - row.place_ms) / 1_000
            self.counts.longest_lag = max(self.counts.longest_lag, lag)
            self._on_lag(lag)
            over = await self._try(row, given_up)
        while not over:
            if self._clock.monotonic() - began >= PUT_OFF_SECONDS and await self._put_off(row):
                break
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LAST_RETRY)
            async with self._slots:
                over = await self._try(row, given_up)
        done(row)

    async def _try(self, row: TimerRow, given_up: float) -> bool:
        """Whether the row needs no more."""
        try:
            matched = await self._fire(row)
        except Exception as error:
            self.counts.failed += 1
            log.warning("The deadline of %r is fired again in a moment", row.key, exc_info=error)
            return False
        if matched:
            self.counts.fired += 1
            return True
        self.counts.kept += 1
        return self._clock.monotonic() >= given_up

    async def _put_off(self, row: TimerRow) -> bool:
        try:
            await self._put(put_off(row, buckets.to_ms(self._clock.now())))
        except Exception as error:
            log.warning("The deadline of %r can be neither fired nor put off", row.key, exc_info=error)
            return False
        self.counts.put_off += 1
        log.error("The deadline of %r cannot be fired; it is tried again every few minutes", row.key)
        return True


def put_off(row: TimerRow, now_ms: int) -> TimerRow:
    """The same deadline at a later place."""
    return row._replace(place_ms=now_ms + PUT_OFF_BY_MS, armed_ms=now_ms, queued=False)
