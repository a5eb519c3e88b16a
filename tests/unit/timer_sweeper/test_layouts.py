"""Which layout a writer puts into, which ones are read, and that the number of partitions only grows."""

import asyncio
from datetime import timedelta

import pytest

from stepwell_server.history.commit import ExecutionKey
from stepwell_server.timer_sweeper import buckets
from stepwell_server.timer_sweeper.buckets import EPOCH, FAR, FAR_PARTITIONS, Layout, Partition, partitions_of
from stepwell_server.timer_sweeper.layouts import BEGINS_IN_MS, CLOCKS_MS, READ_FOR_MS, Layouts, grown
from stepwell_server.timer_sweeper.ports import Lease
from stepwell_server.timer_sweeper.progress import SKEW_MS
from tests.support.timer_world import TimerWorld

NOW = 1_800_000_000_000
FIRST = Layout()
SECOND = Layout(2, 8, NOW + BEGINS_IN_MS)
THIRD = Layout(3, 32, NOW + 20 * BEGINS_IN_MS)


def test_a_larger_number_is_a_new_layout_that_begins_when_all_readers_know_of_it() -> None:
    assert grown((FIRST,), 8, NOW) == (FIRST, SECOND)
    assert grown((FIRST, SECOND), 32, NOW + 19 * BEGINS_IN_MS) == (FIRST, SECOND, THIRD)
    assert BEGINS_IN_MS > 60_000 + SKEW_MS


@pytest.mark.parametrize("partitions", [8, 7, 4, 1])
def test_the_number_never_falls(partitions: int) -> None:
    assert grown((FIRST, SECOND), partitions, NOW) is None


def test_layouts_begin_one_after_the_other_whatever_the_clocks_say() -> None:
    noted = grown((FIRST, SECOND), 9, NOW - 50 * BEGINS_IN_MS)
    assert noted is not None and noted[-1].from_ms == SECOND.from_ms + 1


def test_writers_use_a_layout_from_its_beginning_on() -> None:
    layouts = Layouts((FIRST, SECOND, THIRD))
    assert layouts.of_writer(NOW) == FIRST
    assert layouts.of_writer(SECOND.from_ms - 1) == FIRST
    assert layouts.of_writer(SECOND.from_ms) == layouts.of_writer(THIRD.from_ms - 1) == SECOND
    assert layouts.of_writer(THIRD.from_ms + READ_FOR_MS) == THIRD


def test_readers_read_what_is_yet_to_begin_and_what_may_still_have_rows() -> None:
    layouts = Layouts((FIRST, SECOND, THIRD))
    assert layouts.of_readers(NOW) == (FIRST, SECOND, THIRD)
    assert layouts.of_readers(SECOND.from_ms + READ_FOR_MS - 1) == (FIRST, SECOND, THIRD)
    assert layouts.of_readers(SECOND.from_ms + READ_FOR_MS) == (SECOND, THIRD)
    assert layouts.of_readers(THIRD.from_ms + READ_FOR_MS) == (THIRD,)


def test_a_new_layout_is_read_from_its_beginning_and_not_from_that_of_the_table() -> None:
    layouts = Layouts((FIRST, SECOND))
    assert layouts.since(2) == SECOND.from_ms - CLOCKS_MS
    assert layouts.since(1) == layouts.since(0) == layouts.since(9) == 0


def test_a_sweeper_lets_go_of_a_layout_in_which_nothing_can_stand() -> None:
    world = TimerWorld(1, layout=FIRST)
    newest = Layout(2, 6, world.now_ms - READ_FOR_MS + 30_000)
    world.noted = (FIRST, newest)
    both = {*partitions_of(FIRST), *partitions_of(newest)}
    world.leases.leases = {each: Lease(each, "", 1, 0, world.now_ms) for each in both}

    def held() -> set[Partition]:
        return {lease.partition for lease in world.leases.leases.values() if lease.is_held(world.now_ms)}

    async def reads_in_ten_seconds() -> int:
        before = world.rows.reads
        await asyncio.sleep(10)
        return world.rows.reads - before

    async def main() -> None:
        _, sweeper = world.sweeper("a")
        await sweeper.ready()
        assert held() == both | set(FAR)
        before = await reads_in_ten_seconds()
        await asyncio.sleep(60)
        assert held() == {*partitions_of(newest), *FAR}
        assert await reads_in_ten_seconds() < 0.7 * before

    world.run(main)


def test_far_rows_are_promoted_into_the_layout_of_that_day() -> None:
    layouts = Layouts((FIRST, SECOND))
    key = ExecutionKey("default", "w")
    armed = EPOCH + timedelta(milliseconds=NOW)
    far = buckets.row(key, armed + timedelta(days=3), armed)
    assert far.partition(layouts.of_writer(far.armed_ms)).version == 0
    promoted = buckets.row(key, far.fire_at, armed + timedelta(days=2, hours=3))
    assert promoted.partition(layouts.of_writer(promoted.armed_ms)) in partitions_of(SECOND)
    assert len(FAR) == FAR_PARTITIONS and Partition(0, 0) in FAR
