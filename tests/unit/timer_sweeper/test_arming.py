"""A writer's part: the row before the write, near ones to the delay queue before the row, once more after a pause."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.ports import StoreUnavailable
from stepwell_server.timer_sweeper.arming import Arming
from stepwell_server.timer_sweeper.buckets import Awaited, Layout, TimerRow
from stepwell_server.timer_sweeper.ports import Delayed
from tests.support.timer_ports import MemoryBuckets, MemoryDelayQueue

KEY = ExecutionKey("default", "order")
SECOND = timedelta(seconds=1)


class Clock:
    def __init__(self) -> None:
        self.time = datetime(2026, 11, 30, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()


class SlowBuckets(MemoryBuckets):
    """A put takes as long as the next of ``takes`` says."""

    def __init__(self, clock: Clock, takes: Sequence[float]) -> None:
        super().__init__(Layout())
        self._clock = clock
        self._takes = list(takes)

    async def put(self, row: TimerRow) -> None:
        await super().put(row)
        self._clock.time += timedelta(seconds=self._takes.pop(0) if self._takes else 0)


class FailingQueue(MemoryDelayQueue):
    async def send(self, delayed: Sequence[Delayed]) -> None:
        raise StoreUnavailable("no queue")


async def test_what_is_far_enough_ahead_is_left_to_the_feeder() -> None:
    clock, queue = Clock(), MemoryDelayQueue()
    rows = MemoryBuckets(Layout())
    row = await Arming(rows, clock, queue).arm(KEY, clock.now() + 435 * SECOND, Awaited(4))
    assert not queue.sent and rows.all() == [row] and not row.queued and row.awaited == Awaited(4)


async def test_what_is_near_goes_to_the_queue_as_well_rounded_up_to_seconds() -> None:
    clock, queue = Clock(), MemoryDelayQueue()
    rows = MemoryBuckets(Layout())
    row = await Arming(rows, clock, queue).arm(KEY, clock.now() + timedelta(seconds=3, milliseconds=1))
    assert row.queued and rows.all() == [row] and queue.sent == [Delayed(row, 4)]


async def test_no_row_says_that_it_was_queued_when_it_was_not() -> None:
    clock = Clock()
    rows = MemoryBuckets(Layout())
    with pytest.raises(StoreUnavailable):
        await Arming(rows, clock, FailingQueue()).arm(KEY, clock.now())
    assert rows.all() == []


async def test_a_slow_put_is_repeated_where_readers_have_not_passed() -> None:
    clock = Clock()
    rows = SlowBuckets(clock, [6.0, 7.0, 0.1])
    fire_at = clock.now() + SECOND
    row = await Arming(rows, clock).arm(KEY, fire_at)
    assert row.fire_at == fire_at and rows.puts == 3
    assert row.place_ms == 1_000 * int((clock.now() - timedelta(seconds=0.1)).timestamp())


async def test_a_table_that_stays_slow_is_unavailable() -> None:
    clock = Clock()
    rows = SlowBuckets(clock, [6.0] * 9)
    with pytest.raises(StoreUnavailable, match="nothing was written; retry"):
        await Arming(rows, clock).arm(KEY, clock.now())
    assert rows.puts == 4


@pytest.mark.parametrize(("pause", "puts"), [(1.0, 1), (90.0, 2)])
async def test_a_write_that_lands_late_is_followed_by_another_row(pause: float, puts: int) -> None:
    clock = Clock()
    rows = MemoryBuckets(Layout())
    arming = Arming(rows, clock)
    row = await arming.arm(KEY, clock.now() + 2 * SECOND, Awaited(3))
    clock.time += timedelta(seconds=pause)
    await arming.landed(row)
    assert rows.puts == puts
    assert {row.awaited for row in rows.all()} == {Awaited(3)}
