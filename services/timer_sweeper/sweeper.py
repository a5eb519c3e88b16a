"""Fires armed deadlines when they are due: a loop over the timer index.

Sleeps until the earliest armed deadline, or until something earlier is armed (``notify``), but never longer than a
second at a time: so a jump of the wall clock and a machine that slept are noticed within a second of waking. A row is
struck off only after its handler has returned, that is, after the re-arm is committed; a handler that fails is called
again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from ..common.clock import Clock
from ..history.commit import ExecutionKey
from ..history.ports import StoreUnavailable, TimerIndex

log = logging.getLogger(__name__)

Row = tuple[datetime, ExecutionKey]

_LONGEST_SLEEP = 1.0
_SHORTEST_SLEEP = 0.002
"""Deadlines that lie this close together are read from the index together."""

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
        fire: Callable[[ExecutionKey, datetime], Awaitable[None]],
        concurrency: int = 256,
    ) -> None:
        self._timers = timers
        self._clock = clock
        self._fire = fire
        self._concurrency = concurrency
        self._wake = asyncio.Event()
        self._sleeps_until: datetime | None = None
        self._running: dict[Row, asyncio.Task[None]] = {}
        self._retrying: dict[Row, asyncio.TimerHandle] = {}
        self._tries: dict[Row, int] = {}
        self._fired: list[Row] = []
        self._busy: set[Row] = set()
        """Rows that the index still has and that need no further start: running, retrying or fired."""
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
            await asyncio.wait(list(self._running.values()), timeout=grace)
            for task in list(self._running.values()):
                task.cancel()
        try:
            await self._strike_off()
        except StoreUnavailable as error:
            log.warning("Deadlines that were handled stay armed and will fire again (%s)", error)

    def notify(self, fire_at: datetime) -> None:
        """Something was armed; wakes the loop when it would sleep past it."""
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
        await self._strike_off()
        self._starved = False
        now = self._clock.now()
        if not self._busy:
            upcoming = await self._timers.next_fire()
            if upcoming is None or upcoming > now:
                return self._pause(upcoming)
        room = self._concurrency - len(self._running)
        if room <= 0:
            self._starved = True
            return self._pause(None)
        # One more than fits, to see whether anything is left; and a look ahead, to know how long to sleep.
        horizon = now + timedelta(seconds=_LONGEST_SLEEP)
        rows = await self._timers.due(horizon, len(self._busy) + room + 1)
        for row in rows:
            if row in self._busy:
                continue
            if row[0] > now:
                return self._pause(row[0])
            if room == 0:
                self._starved = True
                break
            room -= 1
            self._launch(row)
        return self._pause(None)

    def _pause(self, upcoming: datetime | None) -> float:
        self._sleeps_until = upcoming or _NEVER
        if upcoming is None:
            return _LONGEST_SLEEP
        return min(max((upcoming - self._clock.now()).total_seconds(), _SHORTEST_SLEEP), _LONGEST_SLEEP)

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
        finally:
            del self._running[row]
            # Waking for each end would read the index once per row.
            if not self._running or (self._starved and len(self._running) * 2 <= self._concurrency):
                self._wake.set()

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
        self._busy.difference_update(row for row in self._fired if row[0] > now)
        self._fired = []
        if not rows:
            return
        try:
            await self._timers.fired(rows)
        except BaseException:
            self._fired = rows + self._fired
            raise
        self._busy.difference_update(rows)
