"""The timer loop: on time, bounded, woken by what is armed earlier, undisturbed by clocks that jump."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.ports import StoreUnavailable
from stepwell_server.timer_sweeper import sweeper
from stepwell_server.timer_sweeper.sweeper import Row, TimerSweeper


class JumpingClock:
    """Real time plus an offset that a test changes."""

    def __init__(self) -> None:
        self.offset = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def monotonic(self) -> float:
        return time.monotonic()


class Index:
    """A timer index as rows in a set; ``down`` makes it refuse."""

    def __init__(self) -> None:
        self.rows: set[Row] = set()
        self.down = False
        self.struck_off: list[Row] = []
        self.reads = 0

    async def arm(self, key: ExecutionKey, fire_at: datetime) -> None:
        self.rows.add((fire_at, key))

    async def due(self, now: datetime, limit: int) -> list[Row]:
        self._read()
        return sorted(row for row in self.rows if row[0] <= now)[:limit]

    async def next_fire(self) -> datetime | None:
        self._read()
        return min((row[0] for row in self.rows), default=None)

    async def fired(self, rows: Sequence[Row]) -> None:
        self._read()
        self.struck_off += rows
        self.rows.difference_update(rows)

    def _read(self) -> None:
        self.reads += 1
        if self.down:
            raise StoreUnavailable("down")


def key_of(number: int) -> ExecutionKey:
    return ExecutionKey("default", f"order-{number}")


class World:
    def __init__(self, concurrency: int = 16) -> None:
        self.clock = JumpingClock()
        self.index = Index()
        self.lags: dict[ExecutionKey, float] = {}
        self.failures = 0
        self.running = self.most_running = 0
        self.takes = 0.0
        self.sweeper = TimerSweeper(self.index, self.clock, self.fire, concurrency)

    async def fire(self, key: ExecutionKey, fire_at: datetime) -> None:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(self.takes)
            if self.failures:
                self.failures -= 1
                raise StoreUnavailable("not now")
            self.lags[key] = (self.clock.now() - fire_at).total_seconds()
        finally:
            self.running -= 1

    async def arm(self, number: int, seconds: float) -> None:
        fire_at = self.clock.now() + timedelta(seconds=seconds)
        await self.index.arm(key_of(number), fire_at)
        self.sweeper.notify(fire_at, key_of(number))

    async def until(self, condition: Callable[[], bool], seconds: float = 30.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(0.005)


@asynccontextmanager
async def sweeping(concurrency: int = 16) -> AsyncIterator[World]:
    world = World(concurrency)
    world.sweeper.start()
    await asyncio.sleep(0.01)
    yield world
    await world.sweeper.stop()


async def test_fires_within_100_ms_of_due() -> None:
    """Beyond what a plain sleep to the same moment is late on this machine."""
    late: dict[ExecutionKey, float] = {}

    async def sleep(number: int, seconds: float) -> None:
        ends = time.monotonic() + seconds
        await asyncio.sleep(seconds)
        late[key_of(number)] = time.monotonic() - ends

    async with sweeping() as world, asyncio.TaskGroup() as group:
        for number in range(5):
            seconds = 0.1 + number * 0.07
            group.create_task(sleep(number, seconds))
            await world.arm(number, seconds)
        await world.until(lambda: len(world.lags) == len(late) == 5)
        assert all(0.0 <= lag < late[key] + 0.1 for key, lag in world.lags.items()), (world.lags, late)
        await world.until(lambda: not world.index.rows)


@pytest.fixture
def looks_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not told it does not find by itself before the test is over."""
    monkeypatch.setattr(sweeper, "_LONGEST_SLEEP", 60.0)


async def test_something_earlier_wakes_the_sleeper(looks_rarely: None) -> None:
    async with sweeping() as world:
        await world.arm(1, 60.0)
        await asyncio.sleep(0.05)
        await world.arm(2, 0.1)
        await world.until(lambda: key_of(2) in world.lags)
        assert key_of(1) not in world.lags


async def test_concurrency_is_bounded_and_all_fire_once() -> None:
    async with sweeping(concurrency=4) as world:
        world.takes = 0.002
        for number in range(100):
            await world.arm(number, -1.0)
        await world.until(lambda: len(world.lags) == 100 and not world.index.rows)
        assert world.most_running == 4
        assert len(world.index.struck_off) == len(set(world.index.struck_off)) == 100


async def test_a_handler_that_fails_is_called_again_and_holds_up_nothing() -> None:
    async with sweeping() as world:
        world.failures = 1
        await world.arm(1, 0.0)
        await world.until(lambda: world.failures == 0)
        await world.arm(2, 0.05)
        await world.until(lambda: key_of(2) in world.lags)
        assert list(world.lags) in ([key_of(2)], [key_of(2), key_of(1)])
        await world.until(lambda: key_of(1) in world.lags)
        await world.until(lambda: not world.index.rows)


async def test_a_jump_of_the_wall_clock_is_noticed_within_a_second() -> None:
    async with sweeping() as world:
        await world.arm(1, 3600.0)
        await asyncio.sleep(0.05)
        world.clock.offset = timedelta(hours=2)
        await world.until(lambda: key_of(1) in world.lags, 5.0)
        await world.arm(2, 0.1)
        world.clock.offset = timedelta(hours=1)
        await asyncio.sleep(0.3)
        assert key_of(2) not in world.lags
        world.clock.offset = timedelta(hours=2)
        await world.until(lambda: key_of(2) in world.lags, 5.0)


async def test_goes_on_when_the_index_comes_back() -> None:
    async with sweeping() as world:
        world.index.down = True
        await world.arm(1, 0.0)
        await asyncio.sleep(0.1)
        world.index.down = False
        await world.until(lambda: key_of(1) in world.lags)


async def test_a_slow_handler_does_not_delay_others_or_spin() -> None:
    async with sweeping() as world:
        world.takes = 1.0
        await world.arm(1, 0.0)
        await world.until(lambda: world.running == 1)
        world.takes = 0.0
        await world.arm(2, 0.1)
        reads = world.index.reads
        await world.until(lambda: key_of(2) in world.lags)
        assert next(iter(world.lags)) == key_of(2) and world.index.reads - reads < 10
        await world.until(lambda: key_of(1) in world.lags)


async def test_stop_finishes_what_is_being_handled() -> None:
    world = World()
    world.sweeper.start()
    world.takes = 0.1
    await world.arm(1, 0.0)
    await world.until(lambda: world.running == 1)
    await world.sweeper.stop()
    assert key_of(1) in world.lags and not world.index.rows


async def test_of_many_that_are_due_together_the_first_are_through_before_the_last_are_begun() -> None:
    async with sweeping(concurrency=256) as world:
        world.takes = 0.001
        begun: list[int] = []
        fire = world.fire

        async def noting(key: ExecutionKey, fire_at: datetime) -> None:
            begun.append(len(world.lags))
            await fire(key, fire_at)

        world.sweeper._fire = noting
        for number in range(200):
            await world.arm(number, -1.0)
        await world.until(lambda: len(world.lags) == 200)
        # How many had been begun before each and were not through.
        waited_for = [position - done for position, done in enumerate(begun)]
        assert max(waited_for) < 128 and max(waited_for[:16]) < 16, waited_for


async def test_a_slow_store_is_given_more_and_more_at_a_time() -> None:
    async with sweeping(concurrency=256) as world:
        world.takes = 0.3
        for number in range(200):
            await world.arm(number, -1.0)
        await world.until(lambda: world.most_running == 200)


async def test_what_is_due_soon_is_read_from_the_index_once() -> None:
    async with sweeping(concurrency=256) as world:
        for number in range(400):
            await world.index.arm(key_of(number), world.clock.now() + timedelta(seconds=0.3 + number * 0.001))
        world.sweeper.notify(world.clock.now() + timedelta(seconds=0.3), key_of(0))
        world.index.reads = 0
        await world.until(lambda: len(world.lags) == 400)
        strikes = 400 / world.sweeper._concurrency
        assert (
            world.index.reads <= 8 + strikes + 400 / 20
        )  # most are idle moments, at which what has fired is struck off


async def test_what_is_armed_while_the_index_is_read_is_not_missed(looks_rarely: None) -> None:
    world = World()
    next_fire = world.index.next_fire

    async def answered_late() -> datetime | None:
        answer = await next_fire()
        if not world.lags and not world.index.rows:
            await world.arm(1, 0.05)
        return answer

    world.index.next_fire = answered_late  # type: ignore[method-assign]
    world.sweeper.start()
    await world.until(lambda: key_of(1) in world.lags)
    await world.sweeper.stop()


async def test_rows_of_another_process_are_found_within_a_second_or_so() -> None:
    """The index may be shared: nobody tells this process what others arm."""
    async with sweeping() as world:
        await asyncio.sleep(0.05)
        await world.index.arm(key_of(1), world.clock.now() + timedelta(seconds=0.1))
        await world.until(lambda: key_of(1) in world.lags, 5.0)
