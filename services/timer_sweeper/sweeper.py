"""Fires armed deadlines when they are due: a loop over the timer index.

Sleeps until the earliest armed deadline, or until something earlier is armed (``notify``), but never longer than a
second at a time: so a jump of the wall clock and a machine that slept are noticed within a second of waking. A row is
struck off only after its handler has returned, that is, after the re-arm is committed; a handler that fails is called
again.

What is due within the next second is read once and kept in a heap, to which ``notify`` adds. Of many deadlines that are
due together only a burst is begun at a time, so that the first of them are through, up to workflow code, before the
last are begun; the next burst shares its commits with what follows from this one.
"""

import asyncio
import heapq
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from ..common.clock import Clock
from ..common.control import MARK
from ..history.commit import ExecutionKey
from ..history.ports import StoreUnavailable, TimerIndex

log = logging.getLogger(__name__)

Row = tuple[datetime, ExecutionKey]

_LONGEST_SLEEP = 1.0
_SHORTEST_SLEEP = 0.002
"""Deadlines that lie this close together are begun together."""

_BURST = 16
"""Deadlines begun at once. Their share of an fsync is small already, and what each needs before workflow code goes on
waits for the other fifteen at most."""

_LARGEST_BURST = 64
"""Bursts double up to this while more is due than they take: then it counts more how soon the last is through, and
larger ones cost less for each."""

_BURST_SECONDS = 0.005
"""A burst that takes longer waits for the store, and then it is better to give that more at a time."""

_PAGE = 512
"""Most rows read ahead."""

_FIRST_RETRY = 0.5
_LAST_RETRY = 30.0
_NEVER = datetime.max.replace(tzinfo=UTC)


class TimerSweeper:
    """``fire(key, fire_at)`` handles one due deadline; up to ``concurrency`` run at the same time.

    What ``fire`` raises leaves the row armed: it is called again after 0.5 s, doubling to 30 s.
    """

    def __init__(
        self,
        timers: TimerIndex,
        clock: Clock,
        fire: Callable[[ExecutionKey, datetime], Awaitable[object]],
        concurrency: int = 256,
    ) -> None:
        self._timers = timers
        self._clock = clock
        self._fire = fire
        self._concurrency = concurrency
        self._wake = asyncio.Event()
        self._sleeps_until: datetime | None = None
        self._ahead: list[Row] = []
        """A heap of all rows up to ``_known_until`` that need to be started; some may be repeated, or gone."""
        self._known_until: datetime | None = None
        self._running: dict[Row, asyncio.Task[None]] = {}
        self._retrying: dict[Row, asyncio.TimerHandle] = {}
        self._tries: dict[Row, int] = {}
        self._fired: list[Row] = []
        self._busy: set[Row] = set()
        """Rows that the index still has and that need no further start: running, retrying or fired."""
        self._burst: set[Row] = set()
        """What runs of the newest burst."""
        self._burst_size = _BURST
        self._starved = False
        """More was due than could be started."""
        self._loop_task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._loop_task = asyncio.create_task(self._run(), name="timer-sweeper")

    async def stop(self, grace: float = 5.0) -> None:
        """Ends the loop. Waits up to ``grace`` seconds for deadlines that are being handled; all others stay armed."""
        if self._loop_task is not None:
            self._loop_task.cancel()
            await asyncio.wait([self._loop_task])
            self._loop_task = None
        for handle in self._retrying.values():
            handle.cancel()
        self._retrying.clear()
        if self._running:
            _, late = await asyncio.wait(list(self._running.values()), timeout=grace)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        try:
            await self._strike_off()
        except StoreUnavailable as error:
            log.warning("Deadlines that were handled stay armed and will fire again (%s)", error)

    def notify(self, fire_at: datetime, key: ExecutionKey) -> None:
        """``key`` has armed something; wakes the loop when it would sleep past it."""
        if self._known_until is not None and fire_at <= self._known_until:
            heapq.heappush(self._ahead, (fire_at, key))
        if self._sleeps_until is None or fire_at < self._sleeps_until:
            self._wake.set()

    async def _run(self) -> None:
        failures = 0
        while True:
            self._wake.clear()
            try:
                pause = await self._sweep()
                failures = 0
            except Exception as error:
                pause = min(_FIRST_RETRY * 2**failures, _LAST_RETRY)
                failures = min(failures + 1, 10)
                log.warning("The timer index cannot be used; trying again in %.1f s", pause, exc_info=error)
            await self._sleep(pause)

    async def _sweep(self) -> float:
        """Starts what is due and returns how many seconds to sleep."""
        now = self._clock.now()
        if self._fired and (len(self._fired) >= self._concurrency or not self._is_due(now)):
            await self._strike_off()
            now = self._clock.now()
        if not self._is_due(now) and not self._knows(now):
            await self._look_ahead(now)
        self._starved = False
        room = min(self._concurrency - len(self._running), self._burst_size)
        self._burst.clear()
        while self._is_due(now):
            if len(self._burst) >= room:
                self._starved = len(self._running) >= self._concurrency
                self._burst_size = min(self._burst_size * 2, _LARGEST_BURST)
                self._sleeps_until = now  # what is armed now is not more urgent than what waits already
                return _LONGEST_SLEEP if self._starved else _BURST_SECONDS
            row = heapq.heappop(self._ahead)
            self._burst.add(row)
            self._launch(row)
        self._burst_size = _BURST
        return self._pause(self._ahead[0][0] if self._ahead else None)

    def _is_due(self, now: datetime) -> bool:
        """Whether the heap's first row is to be started now."""
        ahead = self._ahead
        while ahead and ahead[0] in self._busy:
            heapq.heappop(ahead)
        return bool(ahead) and ahead[0][0] <= now

    def _knows(self, now: datetime) -> bool:
        """Not when the clock went back either: the index may have rows of others behind what was read."""
        known = self._known_until
        return known is not None and now < known and (known - now).total_seconds() <= _LONGEST_SLEEP

    async def _look_ahead(self, now: datetime) -> None:
        self._ahead = []
        self._known_until = _NEVER  # what is armed meanwhile is noted beside what the index gives
        try:
            horizon = now + timedelta(seconds=_LONGEST_SLEEP)
            if not self._busy:
                upcoming = await self._timers.next_fire()
                if upcoming is None or upcoming > horizon:
                    self._known_until = horizon
                    return
            limit = len(self._busy) + _PAGE
            rows = await self._timers.due(horizon, limit)
        except BaseException:
            self._known_until = None
            raise
        self._ahead += [row for row in rows if row not in self._busy]
        heapq.heapify(self._ahead)
        # Of rows armed for the very time of the last, some may be missing.
        self._known_until = horizon if len(rows) < limit else rows[-1][0] - timedelta(microseconds=1)

    def _pause(self, upcoming: datetime | None) -> float:
        now = self._clock.now()
        latest = min(now + timedelta(seconds=_LONGEST_SLEEP), self._known_until or now)
        self._sleeps_until = latest if upcoming is None or upcoming > latest else upcoming
        return max((self._sleeps_until - now).total_seconds(), _SHORTEST_SLEEP)

    async def _sleep(self, seconds: float) -> None:
        timer = asyncio.get_running_loop().call_later(seconds, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()
            self._sleeps_until = None

    def _launch(self, row: Row) -> None:
        self._retrying.pop(row, None)
        self._busy.add(row)
        self._running[row] = asyncio.create_task(self._handle(row))

    async def _handle(self, row: Row) -> None:
        fire_at, key = row
        try:
            await self._fire(key, fire_at)
        except Exception as error:
            self._retry_later(row, error)
        else:
            self._tries.pop(row, None)
            self._fired.append(row)
            if key.workflow_id[:1] == MARK:
                self._known_until = None  # it has armed the next one, of which nobody has notified
                self._wake.set()
        finally:
            del self._running[row]
            if self._ends_burst(row) or (self._starved and len(self._running) * 2 <= self._concurrency):
                self._wake.set()

    def _ends_burst(self, row: Row) -> bool:
        if row not in self._burst:
            return not self._running
        self._burst.discard(row)
        return not self._burst

    def _retry_later(self, row: Row, error: Exception) -> None:
        tries = self._tries[row] = self._tries.get(row, -1) + 1
        delay = min(_FIRST_RETRY * 2 ** min(tries, 10), _LAST_RETRY)
        log.warning("The deadline of %r stays armed; trying again in %.1f s", row[1], delay, exc_info=error)
        self._retrying[row] = asyncio.get_running_loop().call_later(delay, self._launch, row)

    async def _strike_off(self) -> None:
        if not self._fired:
            return
        now = self._clock.now()
        rows = [row for row in self._fired if row[0] <= now]
        # The clock went back: what was armed for then is still needed, and fires again in its time.
        early = [row for row in self._fired if row[0] > now]
        self._busy.difference_update(early)
        for row in early:
            heapq.heappush(self._ahead, row)
        self._fired = []
        if not rows:
            return
        try:
            await self._timers.fired(rows)
        except BaseException:
            self._fired = rows + self._fired
            raise
        self._busy.difference_update(rows)
