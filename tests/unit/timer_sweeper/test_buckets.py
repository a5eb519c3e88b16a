"""Where deadlines stand: in the right bucket and order, never before their time, found by who reads that time."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell_server.history.commit import ExecutionKey
from stepwell_server.timer_sweeper import buckets
from stepwell_server.timer_sweeper.buckets import Awaited, Layout, Partition, TimerRow

NOW = datetime(2026, 11, 30, 12, 0, 3, 250_000, UTC)
LAYOUT = Layout(3, 8)
KEY = ExecutionKey("default", "order-17")

times = st.integers(1_577_836_800_000_000, 3_786_912_000_000_000).map(
    lambda microseconds: datetime.fromtimestamp(0, UTC) + timedelta(microseconds=microseconds)
)
keys = st.builds(ExecutionKey, st.sampled_from(["default", "shop"]), st.text(max_size=8))


def test_the_text_of_keys() -> None:
    armed = buckets.row(KEY, NOW + timedelta(seconds=30, microseconds=1), NOW, Awaited(7))
    assert armed.partition_key(LAYOUT) == f"3#{buckets.partition_of(KEY, LAYOUT).number:03d}#01796040030"
    assert armed.sort_key == f"1796040033251#{buckets.hash_of(KEY)}"
    assert armed.expires == 1_796_040_033 + 7 * 86_400
    far = buckets.row(KEY, NOW + timedelta(days=2), NOW)
    assert far.is_far and far.partition_key(LAYOUT) == f"far#{far.partition(LAYOUT).number:03d}#01796212800"


@given(keys, times, times)
def test_a_row_is_not_due_before_its_deadline_nor_behind_the_time_of_arming(
    key: ExecutionKey, fire_at: datetime, now: datetime
) -> None:
    armed = buckets.row(key, fire_at, now)
    place = buckets.from_ms(armed.place_ms)
    assert place >= fire_at and armed.place_ms >= buckets.to_ms(now)
    latest = max(fire_at, now)
    assert place - latest < timedelta(milliseconds=1)
    assert armed.is_far is (armed.place_ms - buckets.to_ms(now) > buckets.FAR_MS)


@given(keys, times, times, st.integers(0, 100_000), st.integers(1, 100_000))
def test_a_reader_of_a_time_finds_what_stands_there(
    key: ExecutionKey, fire_at: datetime, now: datetime, before: int, behind: int
) -> None:
    armed = buckets.row(key, fire_at, now)
    low, high = armed.place_ms - before, armed.place_ms + behind
    partition = buckets.partition_of(key, LAYOUT)
    read = {buckets.bucket_key(partition, bucket) for bucket in buckets.buckets(low, high)}
    if not armed.is_far:
        assert armed.partition_key(LAYOUT) in read
    first, last = buckets.sort_bounds(low, high)
    assert first <= armed.sort_key <= last
    assert not first <= _moved(armed, high).sort_key <= last
    assert not first <= _moved(armed, low - 1).sort_key <= last


def _moved(armed: TimerRow, place_ms: int) -> TimerRow:
    return armed._replace(place_ms=place_ms)


@given(keys, times, st.integers(0, 7 * 86_400_000))
def test_an_hour_is_promoted_after_the_last_can_have_been_put_there_and_well_before_it_begins(
    key: ExecutionKey, now: datetime, ahead: int
) -> None:
    armed = buckets.row(key, now + timedelta(milliseconds=ahead), now)
    if armed.is_far:
        promoted = buckets.bucket_of(armed.place_ms, far=True) - buckets.PROMOTE_MS
        assert buckets.to_ms(now) < promoted - buckets.FAR_BUCKET_MS + 1_000
        assert armed.place_ms - promoted < buckets.FAR_MS


def test_sort_keys_are_in_the_order_of_time() -> None:
    rows = [buckets.row(KEY, NOW + timedelta(milliseconds=ms), NOW) for ms in (0, 1, 999, 86_000_000)]
    assert [armed.sort_key for armed in rows] == sorted(armed.sort_key for armed in rows)


def test_every_partition_has_its_share() -> None:
    counts = [0] * LAYOUT.partitions
    for number in range(800):
        counts[buckets.partition_of(ExecutionKey("default", f"w-{number}"), LAYOUT).number] += 1
    assert min(counts) > 60
    assert buckets.partitions_of(LAYOUT) == [Partition(3, number) for number in range(8)]


@pytest.mark.parametrize(
    ("held_up", "ahead", "again"),
    [(4.0, 1.0, False), (5.5, 1.0, True), (5.5, 9.0, True), (5.5, 60.0, False), (400.0, 1.0, True)],
)
def test_a_writer_that_was_held_up_until_its_deadline_arms_again(held_up: float, ahead: float, again: bool) -> None:
    armed = buckets.row(KEY, NOW + timedelta(seconds=ahead), NOW)
    assert buckets.must_arm_again(armed, NOW + timedelta(seconds=held_up)) is again


def test_a_write_may_still_come_for_a_minute_also_when_its_writer_says_that_it_is_minutes_old() -> None:
    assert [buckets.young_for(1_000, 1_000 + age) for age in (-200_000, 0, 60_000, 300_000)] == [60_000] * 4
    assert [buckets.young_for(1_000, 1_000 + age) for age in (320_000, 360_000, 999_000)] == [40_000, 0, 0]
