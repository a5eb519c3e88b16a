"""A model of the timers' surroundings on virtual time: writers that arm, commit and die; feeders that are killed; a
store that is slow and fails. What it checks is the one promise: a write that has landed is fired, in time.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any, TypeVar

from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.ports import StoreUnavailable
from stepwell_server.timer_sweeper import buckets
from stepwell_server.timer_sweeper.arming import Arming
from stepwell_server.timer_sweeper.bucket_sweeper import BucketSweeper
from stepwell_server.timer_sweeper.buckets import Awaited, Layout, Partition, TimerRow
from stepwell_server.timer_sweeper.due_messages import DueMessages, Postponed
from stepwell_server.timer_sweeper.layouts import Layouts, grown
from stepwell_server.timer_sweeper.messages import encode
from stepwell_server.timer_sweeper.minute_tick import MinuteTick
from stepwell_server.timer_sweeper.ports import Delayed, Lease, RowsPage
from tests.simulation.environment import SimulatedClock
from tests.simulation.loop import Process, SimulatedLoop
from tests.support.timer_ports import MemoryBuckets, MemoryDelayQueue, MemoryLeases

T = TypeVar("T")


class Trouble:
    """How slow and how unreliable calls are; may be changed while a test runs."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.longest = 0.0
        self.chance = 0.0

    async def call(self) -> None:
        if self.longest:
            await asyncio.sleep(self.random.random() * self.longest)
        else:
            await asyncio.sleep(0)
        if self.random.random() < self.chance:
            raise StoreUnavailable("injected")

    async def around(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """It may fail before the call, or behind it: then it was done all the same."""
        await self.call()
        result = await call()
        await self.call()
        return result


class WorldBuckets(MemoryBuckets):
    def __init__(self, layout: Layout, trouble: Trouble, since_ms: int) -> None:
        super().__init__(layout, since_ms)
        self._trouble = trouble
        self._noted = (layout,)

    def grow(self, noted: tuple[Layout, ...]) -> None:
        self._noted = noted

    async def put(self, row: TimerRow) -> None:
        if len(self._noted) > 1:  # a writer may not have heard of what was noted since it began
            self.layouts.known = self._noted[: 1 + self._trouble.random.randrange(len(self._noted))]
        await self._trouble.around(partial(super().put, row))

    async def read(
        self, partition: Partition, bucket_ms: int, from_ms: int, to_ms: int, *, after: str = "", limit: int = 500
    ) -> RowsPage:
        call = partial(super().read, partition, bucket_ms, from_ms, to_ms, after=after, limit=min(limit, 20))
        return await self._trouble.around(call)


class WorldLayouts(Layouts):
    """Of one process of readers, which knows what there was when it began."""

    def __init__(self, world: "TimerWorld") -> None:
        super().__init__(world.noted)
        self._world = world

    async def refresh(self) -> None:
        await self._world.leases.trouble.call()
        self.known = self._world.noted


class WorldLeases(MemoryLeases):
    def __init__(self, trouble: Trouble) -> None:
        super().__init__()
        self.trouble = trouble

    async def held(self, version: int) -> list[Lease]:
        return await self.trouble.around(partial(super().held, version))

    async def change(self, lease: Lease) -> bool:
        return await self.trouble.around(partial(super().change, lease))


class WorldQueue(MemoryDelayQueue):
    """Delivers what is sent, some of it twice, as long as there is a function to deliver to."""

    def __init__(self, world: "TimerWorld") -> None:
        super().__init__()
        self._world = world
        self._postponed: dict[str, int] = {}
        self.repeats = 0.0

    async def send(self, delayed: Sequence[Delayed]) -> None:
        await super().send(delayed)
        for row, seconds in delayed:
            for _ in range(2 if self._world.random.random() < self.repeats else 1):
                self._world.spawn(self._deliver(encode(row), f"r{len(self.sent)}-{row.sort_key}", seconds))

    async def postpone(self, receipt: str, seconds: int) -> None:
        self._postponed[receipt] = seconds

    async def _deliver(self, body: str, receipt: str, seconds: float) -> None:
        deliveries = 0
        messages = DueMessages(self._world.rows, self, self._world.clock, self._world.fire)
        while True:
            await asyncio.sleep(seconds + self._world.random.random() * 0.1)
            deliveries += 1
            try:
                return await messages.handle(body, receipt, deliveries, receipt)
            except Postponed:
                seconds = self._postponed.pop(receipt)
            except StoreUnavailable:
                seconds = 5.0  # the visibility timeout


class TimerWorld:
    def __init__(self, seed: int, *, layout: Layout = Layout(1, 2), pause: float = 0.0) -> None:  # noqa: B008
        self.random = Random(seed)
        self.loop = SimulatedLoop(self.random, pause=pause, hold=0.005 if pause else 0.0)
        self.clock = SimulatedClock(self.loop)
        self.layout = layout
        self.noted: tuple[Layout, ...] = (layout,)
        self.trouble = Trouble(self.random)
        self.rows = WorldBuckets(layout, self.trouble, self.now_ms - 60_000)
        self.leases = WorldLeases(self.trouble)
        self.queue = WorldQueue(self)
        self.told_lags: list[float] = []
        self.failing: set[ExecutionKey] = set()
        self.heads: dict[ExecutionKey, int] = {}
        self.landed: dict[tuple[ExecutionKey, int], datetime] = {}
        """When what landed became due: at its time, or when it landed if that was later."""
        self.fired: dict[tuple[ExecutionKey, int], list[datetime]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def now_ms(self) -> int:
        return buckets.to_ms(self.clock.now())

    def run(self, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            self.loop.run_until_complete(main())
        finally:
            self.loop.bury()
            self.loop.close()

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        # Of no process: what a killed one has sent is delivered all the same.
        task = self.loop.create_task(work, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def grow(self, partitions: int) -> None:
        """As the first process does that is told more."""
        self.noted = grown(self.noted, partitions, self.now_ms) or self.noted
        self.rows.grow(self.noted)

    def tick(self) -> MinuteTick:
        return MinuteTick(self.rows, self.leases, self.queue, self.clock, WorldLayouts(self))

    async def fire(self, row: TimerRow) -> bool:
        await self.trouble.call()
        if row.key in self.failing:
            raise StoreUnavailable("this one cannot be fired")
        assert row.fire_at <= self.clock.now() or self.clock.now() < row.fire_at + timedelta(hours=2)
        if self.heads.get(row.key, 0) < row.awaited.seq:
            return False
        self.fired.setdefault((row.key, row.awaited.seq), []).append(self.clock.now())
        return True

    def sweeper(self, name: str) -> tuple[Process, BucketSweeper]:
        """One that runs in a process of its own."""
        process = Process(name)
        sweeper = BucketSweeper(
            self.rows, self.leases, self.clock, self.fire, name, WorldLayouts(self), on_lag=self.told_lags.append
        )

        async def start() -> None:
            sweeper.start()

        process.spawn(start())
        return process, sweeper

    async def write(
        self,
        number: int,
        ahead: float,
        *,
        pause: float = 0.0,
        dies: str = "",
        near: bool = False,
        skew: float = 0.0,
    ) -> None:
        """Arms, is held up, commits, looks again; dies before or behind the commit. ``skew``: of the writer's clock."""
        key = ExecutionKey("default", f"w-{number}")
        clock = SimulatedClock(self.loop)
        clock.jump(self.clock.now() - clock.now() + timedelta(seconds=skew))
        arming = Arming(self.rows, self.clock if not skew else clock, self.queue if near else None)
        fire_at = self.clock.now() + timedelta(seconds=ahead + skew)
        seq = self.heads.get(key, 0) + 1
        try:
            row = await arming.arm(key, fire_at, Awaited(seq))
        except StoreUnavailable:
            return  # nothing was acknowledged
        await asyncio.sleep(pause)
        if dies == "before":
            return
        self.heads[key] = seq
        self.landed[key, seq] = max(fire_at, self.clock.now())
        if dies == "behind":
            return
        for _ in range(20):
            try:
                return await arming.landed(row)
            except StoreUnavailable:
                await asyncio.sleep(0.5)

    def lags(self) -> list[float]:
        """Seconds between due and fired, of all that landed. Fails when one has not been fired."""
        lags = []
        for write, due in self.landed.items():
            times = [time for time in self.fired.get(write, ()) if time >= due - timedelta(milliseconds=1)]
            assert times, f"{write} was due at {due} and never fired; tries: {self.fired.get(write)}"
            lags.append((min(times) - due).total_seconds())
        return sorted(lags)
