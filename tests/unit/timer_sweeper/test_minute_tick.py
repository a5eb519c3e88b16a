"""The idle feeder: what it sends and what it leaves, how it goes on after an outage, what an idle minute costs."""

import asyncio

from stepwell_server.timer_sweeper import minute_tick
from stepwell_server.timer_sweeper.buckets import Layout, partitions_of
from stepwell_server.timer_sweeper.minute_tick import MinuteTick, Report
from tests.support.timer_world import TimerWorld


def tick_of(world: TimerWorld) -> MinuteTick:
    return world.tick()


def test_it_sends_what_fires_within_two_minutes_and_no_writer_has_sent() -> None:
    world = TimerWorld(1)
    reports: list[Report] = []

    async def main() -> None:
        await world.write(1, 500, near=True)
        await world.write(2, 30, near=True)
        await world.write(3, 600, near=True)
        assert len(world.queue.sent) == 1
        await asyncio.sleep(390)
        reports.append(await tick_of(world).run())
        reports.append(await tick_of(world).run())
        await asyncio.sleep(60)
        reports.append(await tick_of(world).run())
        await asyncio.sleep(200)

    world.run(main)
    assert [report.sent for report in reports] == [1, 0, 0]
    assert [delayed.row.key.workflow_id for delayed in world.queue.sent] == ["w-2", "w-1"]
    assert world.queue.sent[1].seconds == 110
    assert not any(report.failures or report.behind_seconds for report in reports)


def test_it_leaves_what_a_sweeper_reads() -> None:
    world = TimerWorld(2)

    async def main() -> None:
        _, sweeper = world.sweeper("a")
        await sweeper.ready()
        await world.write(1, 30)
        report = await tick_of(world).run()
        assert report.sent == 0 and report.swept == 2 + 16
        await sweeper.stop()

    world.run(main)


def test_for_minutes_behind_a_sweeper_it_reads_again_what_a_late_writer_of_its_process_may_have_armed() -> None:
    """A container stands still until its leases are over, goes on, arms a deadline, and dies before it has them again:
    it sends nothing to the queue, and the cursor of a tick would be ahead of the row."""
    world = TimerWorld(6)

    async def main() -> None:
        host, sweeper = world.sweeper("a")
        await sweeper.ready()
        host.kill()
        await asyncio.sleep(20)
        first = await tick_of(world).run()
        assert first.swept == 16  # the hours' leases are longer
        await world.write(1, 10)
        await asyncio.sleep(60)
        assert (await tick_of(world).run()).sent == 1
        assert "tick" not in {lease.owner for lease in world.leases.leases.values()}
        await asyncio.sleep(minute_tick.SWEPT_MS / 1_000)
        assert [(await tick_of(world).run()).sent for _ in range(2)] == [1, 0]
        assert [world.leases.leases[partition].owner for partition in partitions_of(world.layout)] == ["tick", "tick"]

    world.run(main)


def test_after_an_outage_it_goes_on_at_its_cursor_as_far_as_its_time_allows() -> None:
    world = TimerWorld(3, layout=Layout(1, 1))

    async def main() -> None:
        await tick_of(world).run()
        for number in range(60):
            await world.write(number, number * 60, near=True)
        sent_by_writers = len(world.queue.sent)
        await asyncio.sleep(3_600)
        world.trouble.longest = 0.1
        behind = []
        for _ in range(40):
            report = await tick_of(world).run(seconds=1)
            behind.append(report.behind_seconds)
            if not report.behind_seconds:
                break
        assert behind == sorted(behind, reverse=True) and len(behind) > 3 and behind[-1] == 0
        assert len(world.queue.sent) == 60
        times = [delayed.row.place_ms for delayed in world.queue.sent[sent_by_writers:]]
        assert times == sorted(times)
        await asyncio.sleep(10)

    world.run(main)
    assert len(world.lags()) == 60


def test_a_failing_table_is_reported_and_no_cursor_moves() -> None:
    world = TimerWorld(4)

    async def main() -> None:
        await tick_of(world).run()
        before = dict(world.leases.leases)
        await asyncio.sleep(60)

        async def broken() -> None:
            raise minute_tick.StoreUnavailable("down")

        world.rows._trouble.call = broken  # type: ignore[method-assign]
        world.leases.trouble = type(world.trouble)(world.random)
        report = await tick_of(world).run()
        assert len(report.failures) == 2
        assert world.leases.leases == before

    world.run(main)


def test_when_the_layouts_cannot_be_read_those_that_are_known_are_read() -> None:
    world = TimerWorld(5)

    async def main() -> None:
        tick = tick_of(world)

        async def broken() -> None:
            raise minute_tick.StoreUnavailable("down")

        tick._layouts.refresh = broken  # type: ignore[method-assign]
        await world.write(1, 90.0)
        report = await tick.run()
        assert (report.sent, [str(failure) for failure in report.failures]) == (1, ["down"])

    world.run(main)


def test_an_idle_minute_counts_its_calls() -> None:
    """Four partitions: 4 x 6 or 7 reads of buckets, 2 of leases, 1 of the layouts, 4 writes of cursors. 43,200 minutes
    of that are a quarter of a dollar a month (docs/architecture/aws.md)."""
    world = TimerWorld(5, layout=Layout())

    async def main() -> None:
        await tick_of(world).run()
        world.rows.reads = world.leases.reads = world.leases.writes = 0
        for _ in range(10):
            await asyncio.sleep(60)
            await tick_of(world).run()

    world.run(main)
    assert world.rows.reads <= 10 * 4 * 7
    assert world.leases.reads == 10 * 2
    assert world.leases.writes == 10 * 4
    assert world.queue.calls == 0
