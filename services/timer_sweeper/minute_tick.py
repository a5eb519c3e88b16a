"""Hands what fires within the next two minutes to the delay queue: the feeder of an installation that scales to zero.

Called once a minute. It holds no lease, it only moves the cursors of partitions that no sweeper reads; two that run at
the same time send twice. Its cursor is ahead of the clock; what is put behind it was sent to the queue by its writer
(``arming``), and says so. After an outage it goes on at its cursor, oldest first, as far as its time allows.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from ..common.clock import Clock
from ..history.ports import StoreUnavailable
from . import buckets
from .arming import Arming
from .buckets import FAR, Partition
from .layouts import Layouts
from .messages import delay_of
from .ports import Delayed, DelayQueue, Lease, Leases, RowsPage, TimerBuckets
from .progress import Span, spans_ahead
from .promotion import promote

log = logging.getLogger(__name__)

AHEAD_MS = 120_000

OWNER = "tick"
"""In leases, which it does not hold: whose cursor it is."""

SWEPT_MS = 600_000
"""So long behind the end of a sweeper's lease its process may still arm deadlines, which it sends to no queue: it stood
still and goes on, or its clock is slow and it reads on. Until then the lease is left as it is, and what is near is read
and sent again with each tick."""

_PARTITIONS_AT_ONCE = 8
_SPANS_AT_ONCE = 8
_TRIES = 3
_RETRY_SECONDS = 0.5


@dataclass(slots=True)
class Report:
    """What one tick did, for logs and metrics."""

    sent: int = 0
    swept: int = 0
    """Partitions that a sweeper reads."""
    behind_seconds: float = 0.0
    """By how much the partition that is the furthest behind is behind the clock; more than zero: the tick ran out of
    time, or was not called."""
    failures: list[Exception] = field(default_factory=list)


class MinuteTick:
    def __init__(
        self,
        rows: TimerBuckets,
        leases: Leases,
        queue: DelayQueue,
        clock: Clock,
        layouts: Layouts | None = None,
    ) -> None:
        self._rows = rows
        self._leases = leases
        self._queue = queue
        self._clock = clock
        self._layouts = layouts or Layouts()
        self._arming = Arming(rows, clock, queue)

    async def run(self, seconds: float = 45.0) -> Report:
        """Ends after about ``seconds``, or when all is handed on. What one partition fails with does not keep others
        from being read: it is in the report, and its cursor stays."""
        report = Report()
        ends = self._clock.monotonic() + seconds
        slots = asyncio.Semaphore(_PARTITIONS_AT_ONCE)

        async def one(partition: Partition, lease: Lease | None) -> None:
            async with slots:
                try:
                    await self._partition(partition, lease, report, lambda: self._clock.monotonic() < ends)
                except Exception as error:
                    log.warning("Timers of %s are left to the next tick", partition, exc_info=error)
                    report.failures.append(error)

        try:
            await self._layouts.refresh()
        except Exception as error:
            log.warning("Whether the timer table has grown is left to the next tick", exc_info=error)
            report.failures.append(error)
        layouts = self._layouts.of_readers(buckets.to_ms(self._clock.now()))
        # What is promoted may be near, and is then sent by itself; so the order does not matter.
        groups = [(0, FAR)] + [(layout.version, buckets.partitions_of(layout)) for layout in layouts]
        for version, partitions in groups:
            there = {lease.partition: lease for lease in await self._leases.held(version)}
            await asyncio.gather(*(one(partition, there.get(partition)) for partition in partitions))
        return report

    async def _partition(
        self, partition: Partition, lease: Lease | None, report: Report, goes_on: Callable[[], bool]
    ) -> None:
        now_ms = buckets.to_ms(self._clock.now())
        if lease is not None and lease.is_held(now_ms):
            report.swept += 1
            return
        there = lease or Lease(partition, OWNER, 0, 0, 0)
        cursor_ms = there.cursor_ms or self._layouts.since(partition.version) or await self._rows.since()
        if partition.is_far:
            cursor_ms = await promote(self._rows, self._arming, partition, cursor_ms, now_ms, goes_on=goes_on)
        else:
            cursor_ms = await self._hand_on(partition, there._replace(cursor_ms=cursor_ms), now_ms, report, goes_on)
            report.behind_seconds = max(report.behind_seconds, (now_ms - cursor_ms) / 1_000)
        if cursor_ms != there.cursor_ms and not _was_swept(there, now_ms):
            moved = Lease(partition, OWNER, there.counter + 1, 0, cursor_ms)
            if not await self._leases.change(moved):
                log.info("The cursor of %s was moved by another feeder meanwhile", partition)

    async def _hand_on(
        self, partition: Partition, there: Lease, now_ms: int, report: Report, goes_on: Callable[[], bool]
    ) -> int:
        """The new cursor, which is as far as it came when it failed again and again."""
        spans = list(spans_ahead(there.cursor_ms, now_ms, AHEAD_MS, own=there.owner == OWNER))
        cursor_ms, failures = there.cursor_ms, 0
        while spans and goes_on():
            some = spans[:_SPANS_AT_ONCE]
            try:
                pages = await asyncio.gather(*(self._page(partition, span) for span in some))
                for span, page in zip(some, pages, strict=True):
                    report.sent += await self._send(page)
                    while page.after:
                        if not goes_on():
                            return page.rows[-1].place_ms
                        page = await self._page(partition, span, page.after)
                        report.sent += await self._send(page)
                    cursor_ms = span.to_ms
                    spans.remove(span)
            except StoreUnavailable as error:
                failures += 1
                if failures == _TRIES:
                    report.failures.append(error)
                    break
                await asyncio.sleep(_RETRY_SECONDS)
        return cursor_ms

    async def _page(self, partition: Partition, span: Span, after: str = "") -> RowsPage:
        return await self._rows.read(partition, span.bucket_ms, span.from_ms, span.to_ms, after=after)

    async def _send(self, page: RowsPage) -> int:
        now_ms = buckets.to_ms(self._clock.now())
        delayed = [Delayed(row, delay_of(row, now_ms)) for row in page.rows if not row.queued]
        if delayed:
            await self._queue.send(delayed)
        return len(delayed)


def _was_swept(lease: Lease, now_ms: int) -> bool:
    """Not long ago."""
    return lease.owner not in ("", OWNER) and now_ms < lease.until_ms + SWEPT_MS
