"""The sweeper: in time, whoever holds the partitions, whatever fails; counted where it is idle. On virtual time."""

import asyncio
from datetime import timedelta
from itertools import pairwise

from stepwell_server.history.commit import ExecutionKey
from stepwell_server.timer_sweeper.buckets import FAR_PARTITIONS, Layout, partition_of
from tests.support.timer_world import TimerWorld


def test_what_is_armed_at_any_time_fires_within_a_second() -> None:
    world = TimerWorld(1)

    async def main() -> None:
        _, sweeper = world.sweeper("a")
        await sweeper.ready()
        for number in range(400):
            world.spawn(world.write(number, ahead=world.random.choice([0, 0, 0.05, 1, 7, 29.99])))
            await asyncio.sleep(0.05)
        await asyncio.sleep(40)
        await sweeper.stop()

    world.run(main)
    lags = world.lags()
    assert len(lags) == 400
    assert lags[int(len(lags) * 0.99)] <= 1.0 and lags[-1] <= 1.1
    assert all(len(times) == 1 for times in world.fired.values())
    assert len(world.told_lags) == 400 and 0 <= max(world.told_lags) <= 1.1


def test_what_is_due_in_days_is_promoted_and_fires_in_time() -> None:
    world = TimerWorld(2, layout=Layout(1, 1))
    due = (24.1, 24.5, 26.0)

    async def main() -> None:
        _, sweeper = world.sweeper("a")
        await sweeper.ready()
        for number, hours in enumerate(due):
            await world.write(number, hours * 3_600)
        assert all(row.is_far for row in world.rows.all())
        began = world.clock.now()
        for hours in due:
            world.clock.jump(began + timedelta(hours=hours, seconds=-150) - world.clock.now())
            await asyncio.sleep(160)  # the far partitions are looked at once a minute

    world.run(main)
    assert len(world.lags()) == 3 and world.lags()[-1] <= 1.0


def test_two_sweepers_share_and_one_that_dies_is_replaced_within_its_lease() -> None:
    world = TimerWorld(3, layout=Layout(1, 4))

    async def main() -> None:
        first, sweeper = world.sweeper("a")
        await sweeper.ready()
        world.sweeper("b")
        await asyncio.sleep(60)
        owners = [lease.owner for lease in world.leases.leases.values()]
        assert owners.count("a") == owners.count("b") == (4 + FAR_PARTITIONS) / 2
        first.kill()
        for number in range(40):
            world.spawn(world.write(number, ahead=1 + number / 4))
        await asyncio.sleep(60)
        assert {lease.owner for lease in world.leases.leases.values() if lease.partition.version} == {"b"}
        await asyncio.sleep(150)
        assert {lease.owner for lease in world.leases.leases.values()} == {"b"}

    world.run(main)
    assert world.lags()[-1] < 22


def test_a_stop_gives_the_partitions_free_and_the_next_goes_on_at_once() -> None:
    world = TimerWorld(4)

    async def main() -> None:
        _, first = world.sweeper("a")
        await first.ready()
        await first.stop()
        assert not any(lease.is_held(world.now_ms) for lease in world.leases.leases.values())
        await world.write(1, ahead=0.5)
        _, second = world.sweeper("b")
        await second.ready()
        await asyncio.sleep(2)

    world.run(main)
    assert world.lags()[-1] <= 1.0


def test_a_deadline_that_cannot_be_fired_is_put_off_and_keeps_no_cursor_back() -> None:
    world = TimerWorld(5)
    bad = ExecutionKey("default", "w-1")

    async def main() -> None:
        world.failing.add(bad)
        _, sweeper = world.sweeper("a")
        await sweeper.ready()
        await world.write(1, ahead=1)
        await asyncio.sleep(400)
        assert sweeper.firings.counts.put_off == 1
        lease = world.leases.leases[partition_of(bad, world.layout)]
        assert world.now_ms - lease.cursor_ms < 90_000
        world.failing.clear()
        await asyncio.sleep(520)

    world.run(main)
    assert len(world.lags()) == 1


def test_a_row_whose_write_never_comes_is_given_up_after_a_minute() -> None:
    world = TimerWorld(6)

    async def main() -> None:
        _, sweeper = world.sweeper("a")
        await sweeper.ready()
        await world.write(1, ahead=1, dies="before")
        await asyncio.sleep(50)
        kept = sweeper.firings.counts.kept
        assert 5 < kept < 15
        assert min(lease.cursor_ms for lease in world.leases.leases.values() if lease.partition.version) < (
            world.now_ms - 40_000
        )
        await asyncio.sleep(60)
        assert sweeper.firings.counts.kept <= kept + 1
        assert min(lease.cursor_ms for lease in world.leases.leases.values() if lease.partition.version) > (
            world.now_ms - 10_000
        )

    world.run(main)


def test_a_day_without_any_feeder_is_caught_up_oldest_first() -> None:
    world = TimerWorld(7)
    day = 86_400.0

    async def main() -> None:
        _, sweeper = world.sweeper("a")
        await sweeper.ready()
        await sweeper.stop()
        for number in range(1_000):
            await world.write(number, ahead=world.random.random() * day)
        await asyncio.sleep(day)
        _, sweeper = world.sweeper("b")
        await sweeper.ready()
        began = world.loop.time()
        while len(world.fired) < 1_000:
            await asyncio.sleep(1)
        assert world.loop.time() - began < 60
        assert sweeper.lag() < 5

    world.run(main)
    for number in range(world.layout.partitions):
        writes = [key for key, _ in world.fired if partition_of(key, world.layout).number == number]
        due = [world.landed[key, 1] for key in writes]
        # Those of one page are begun together.
        assert all(later > earlier - timedelta(minutes=30) for earlier, later in pairwise(due))


def test_an_idle_sweeper_counts_its_calls() -> None:
    """What a minute costs: one read per partition and tick, six looks back and a long one; a near lease is renewed
    every five seconds, one of hours' buckets every minute."""
    world = TimerWorld(8, layout=Layout(1, 4))

    async def main() -> None:
        _, sweeper = world.sweeper("a")
        await sweeper.ready()
        await asyncio.sleep(120)
        world.rows.reads = world.leases.reads = world.leases.writes = 0
        await asyncio.sleep(60)

    world.run(main)
    assert world.rows.reads <= 4 * (120 * 1.5 + 6 * 7 + 34)
    assert world.leases.reads <= 2 * 13
    assert world.leases.writes <= 4 * 13 + FAR_PARTITIONS * 2
