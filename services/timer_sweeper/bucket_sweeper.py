"""Fires deadlines of the timer table every half second: the feeder of a service that runs all the time.

Any number of sweepers share the partitions by leases. Each reads its partitions from their cursors on, oldest first,
and hands what is due to ``DueFirings``; with the lease it stores how far everything is done. Whatever happens to it, at
whichever await: the next holder begins at that cursor, and repeats cost a read.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ..common.clock import Clock
from ..history.ports import StoreRefused, StoreUnavailable
from . import buckets, leasing
from .arming import Arming
from .buckets import FAR, Partition
from .due_firings import DueFirings
from .layouts import Layouts
from .ports import Fire, Lease, Leases, OnLag, RowsPage, TimerBuckets, ignore_lag
from .progress import Progress, Span, is_caught_up
from .promotion import promote

log = logging.getLogger(__name__)

TICK_SECONDS = 0.5
_PROMOTE_SECONDS = 60.0
_SPANS_AT_ONCE = 8
_FIRST_RETRY = 0.5
_LAST_RETRY = 15.0


@dataclass(slots=True, eq=False)
class _Held:
    """A partition that this sweeper reads."""

    lease: Lease
    cursor_ms: int = 0
    """Of an hours' partition; of a near one ``progress`` has it."""
    progress: Progress | None = None
    task: asyncio.Task[None] | None = None

    def cursor(self) -> int:
        return self.cursor_ms if self.progress is None else self.progress.cursor_ms


class BucketSweeper:
    """``owner``: a name that no other sweeper has."""

    def __init__(
        self,
        rows: TimerBuckets,
        leases: Leases,
        clock: Clock,
        fire: Fire,
        owner: str,
        layouts: Layouts | None = None,
        concurrency: int = 256,
        on_lag: OnLag = ignore_lag,
    ) -> None:
        self._rows = rows
        self._leases = leases
        self._clock = clock
        self._owner = owner
        self._layouts = layouts or Layouts()
        self._arming = Arming(rows, clock)
        self._firings = DueFirings(fire, rows.put, clock, concurrency, on_lag)
        self._held: dict[Partition, _Held] = {}
        self._watch = leasing.Watch()
        self._ready = asyncio.Event()
        self._loop_task: asyncio.Task[None] | None = None

    @property
    def firings(self) -> DueFirings:
        return self._firings

    def start(self) -> None:
        self._loop_task = asyncio.create_task(self._look_after_leases(), name="timer-leases")

    async def ready(self) -> None:
        """Returns when all partitions have a holder. A process must not take requests before: its near deadlines are
        left to sweepers."""
        await self._ready.wait()

    async def stop(self, grace: float = 5.0) -> None:
        """Ends the reading, waits for deadlines that are being handled, and gives the partitions free."""
        tasks = [held.task for held in self._held.values() if held.task is not None]
        if self._loop_task is not None:
            tasks.append(self._loop_task)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._firings.stop(grace)
        held, self._held, self._loop_task = list(self._held.values()), {}, None
        results = await asyncio.gather(
            *(self._leases.change(leasing.released(one.lease, one.cursor())) for one in held), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                log.warning("A partition of the timers stays leased until its lease ends (%s)", result)

    def lag(self) -> float:
        """Seconds by which the partition that is the furthest behind is behind the clock."""
        cursors = [held.cursor() for held in self._held.values() if held.progress is not None]
        return max((buckets.to_ms(self._clock.now()) - min(cursors)) / 1_000, 0.0) if cursors else 0.0

    # --- leases ---

    async def _look_after_leases(self) -> None:
        await _again_and_again(self._leases_once, leasing.LOOK_SECONDS, "The leases of the timers cannot be kept")

    async def _leases_once(self) -> bool:
        await self._layouts.refresh()
        layouts = self._layouts.of_readers(buckets.to_ms(self._clock.now()))
        groups = [(layout.version, buckets.partitions_of(layout)) for layout in layouts] + [(0, FAR)]
        self._let_go({version for version, _ in groups})
        covered = [await self._share(version, partitions) for version, partitions in groups]
        if all(covered):
            self._ready.set()
        return True

    def _let_go(self, read: set[int]) -> None:
        """Of layouts in which nothing can stand any more."""
        for partition in [each for each in self._held if each.version not in read]:
            if (task := self._held.pop(partition).task) is not None:
                task.cancel()

    async def _share(self, version: int, partitions: Sequence[Partition]) -> bool:
        """Renews what is held, takes what is due to this sweeper; whether every partition has a holder."""
        now_ms = buckets.to_ms(self._clock.now())
        mine = [held for held in self._held.values() if held.lease.partition.version == version]
        await asyncio.gather(*(self._renew(held) for held in mine if leasing.must_renew(held.lease, now_ms)))
        leases = await self._leases.held(version)
        now_ms = buckets.to_ms(self._clock.now())
        there = {lease.partition: self._as_known(lease, now_ms) for lease in leases}
        wanted = leasing.to_take(partitions, there, self._owner, now_ms)
        took = await asyncio.gather(*(self._take(lease) for lease in wanted))
        elsewhere = [lease.partition for lease in there.values() if lease.is_held(now_ms)]
        covered = {*elsewhere, *(lease.partition for lease, done in zip(wanted, took, strict=True) if done)}
        return covered.issuperset(partitions)

    def _as_known(self, lease: Lease, now_ms: int) -> Lease:
        """One that says to be this sweeper's, but is not known here, is free: an earlier change of it had no answer."""
        if lease.owner != self._owner:
            return self._watch.as_seen(lease, now_ms, int(self._clock.monotonic() * 1_000))
        return lease if lease.partition in self._held else lease._replace(until_ms=0)

    async def _renew(self, held: _Held) -> None:
        renewed = leasing.renewed(held.lease, held.cursor(), buckets.to_ms(self._clock.now()))
        if await self._leases.change(renewed):
            held.lease = renewed
            return
        log.info("Another sweeper has taken partition %s of the timers", held.lease.partition)
        del self._held[held.lease.partition]
        if held.task is not None:
            held.task.cancel()

    async def _take(self, lease: Lease) -> bool:
        since_ms = lease.cursor_ms or self._layouts.since(lease.partition.version) or await self._rows.since()
        lease = lease._replace(cursor_ms=since_ms)
        if not await self._leases.change(lease):
            return False
        held = _Held(lease, lease.cursor_ms)
        if lease.partition.is_far:
            held.task = asyncio.create_task(self._promote(held))
        else:
            held.progress = Progress(lease.cursor_ms, buckets.to_ms(self._clock.now()))
            held.task = asyncio.create_task(self._sweep(lease.partition, held.progress))
        self._held[lease.partition] = held
        return True

    # --- partitions ---

    async def _sweep(self, partition: Partition, progress: Progress) -> None:
        await _again_and_again(
            lambda: self._sweep_once(partition, progress), TICK_SECONDS, f"Timers of {partition} cannot be read"
        )

    async def _sweep_once(self, partition: Partition, progress: Progress) -> bool:
        """Whether nothing more is due."""
        now_ms = buckets.to_ms(self._clock.now())
        spans = progress.spans(now_ms, _SPANS_AT_ONCE)
        pages = await asyncio.gather(*(self._page(partition, span) for span in spans))
        for span, page in zip(spans, pages, strict=True):
            await self._begin(page, progress)
            while page.after:
                page = await self._page(partition, span, page.after)
                await self._begin(page, progress)
            progress.read(span)
        return is_caught_up(spans, now_ms)

    async def _page(self, partition: Partition, span: Span, after: str = "") -> RowsPage:
        return await self._rows.read(partition, span.bucket_ms, span.from_ms, span.to_ms, after=after)

    async def _begin(self, page: RowsPage, progress: Progress) -> None:
        for row in page.rows:
            if progress.begin(row):
                await self._firings.begin(row, progress.done)

    async def _promote(self, held: _Held) -> None:
        async def once() -> bool:
            now_ms = buckets.to_ms(self._clock.now())
            partition = held.lease.partition
            held.cursor_ms = await promote(
                self._rows, self._arming, partition, held.cursor_ms, now_ms, goes_on=lambda: False
            )
            return buckets.bucket_of(held.cursor_ms, far=True) > now_ms + buckets.PROMOTE_MS

        await _again_and_again(once, _PROMOTE_SECONDS, f"Deadlines of {held.lease.partition} cannot be promoted")


async def _again_and_again(once: Callable[[], Awaitable[bool]], seconds: float, trouble: str) -> None:
    """Every ``seconds``; at once after a round that says that more is to be done; after a failure with growing pauses.
    Never ends by itself."""
    loop = asyncio.get_running_loop()
    failures = 0
    while True:
        began = loop.time()
        try:
            pause = seconds - (loop.time() - began) if await once() else 0.0
            failures = 0
        except Exception as error:
            pause = min(_FIRST_RETRY * 2**failures, _LAST_RETRY)
            failures = min(failures + 1, 10)
            trace = None if isinstance(error, StoreRefused | StoreUnavailable) else error
            log.warning("%s (%s); trying again in %.1f s", trouble, error, pause, exc_info=trace)
        await asyncio.sleep(max(pause, 0.0))
