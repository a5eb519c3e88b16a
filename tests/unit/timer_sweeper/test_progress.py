"""What a holder reads and where its cursor is, as plain arithmetic."""

from datetime import timedelta
from itertools import pairwise

from stepwell_server.history.commit import ExecutionKey
from stepwell_server.timer_sweeper import buckets, progress
from stepwell_server.timer_sweeper.buckets import TimerRow
from stepwell_server.timer_sweeper.progress import Progress, hours_due, is_caught_up, spans_ahead

NOW = 1_796_040_005_000
KEY = ExecutionKey("default", "order")


def row_at(place_ms: int, armed_ms: int = NOW) -> TimerRow:
    return TimerRow(KEY, buckets.from_ms(place_ms), place_ms, armed_ms)


def reading(holder: Progress, now_ms: int) -> tuple[int, int]:
    """Reads all that is due; from where to where."""
    first = last = 0
    while True:
        spans = holder.spans(now_ms, 8)
        assert all(one.to_ms == two.from_ms for one, two in pairwise(spans))
        for span in spans:
            holder.read(span)
        first, last = first or spans[0].from_ms, spans[-1].to_ms
        if is_caught_up(spans, now_ms):
            return first, last


def test_a_new_holder_begins_where_a_slow_clock_may_have_armed_also_when_the_cursor_is_ahead() -> None:
    assert reading(Progress(NOW - 5_000, NOW), NOW) == (NOW - 398_000, NOW + 1)
    assert reading(Progress(NOW + 120_000, NOW), NOW) == (NOW - 393_000, NOW + 1)


def test_it_reads_a_little_again_at_times_a_minute_and_at_times_more_but_not_behind_its_beginning() -> None:
    holder = Progress(NOW, NOW)
    reading(holder, NOW)
    assert reading(holder, NOW + 500) == (NOW + 1 - 3_000, NOW + 501)
    assert reading(holder, NOW + 10_000) == (NOW - 50_000, NOW + 10_001)
    assert reading(holder, NOW + 60_000) == (NOW - 330_000, NOW + 60_001)
    for second in range(61, 660):
        reading(holder, NOW + second * 1_000)
    assert reading(holder, NOW + 660_000) == (NOW + 270_000, NOW + 660_001)


def test_a_row_of_a_writer_whose_clock_is_five_minutes_slow_is_read_also_when_the_holder_changes() -> None:
    """It is put just behind a look back, and the holder dies just before the next one."""
    holder, place = Progress(NOW, NOW), NOW + 60_000 - buckets.CLOCKS_MS
    reading(holder, NOW)
    reading(holder, NOW + 60_000)
    for second in range(61, 120):
        first, _ = reading(holder, NOW + second * 1_000)
        assert first > place
    first, _ = reading(Progress(holder.cursor_ms, NOW + 120_000), NOW + 120_000)
    assert first <= place


def test_a_row_is_begun_once_unless_it_is_armed_again_for_the_same_time() -> None:
    holder = Progress(NOW, NOW)
    assert holder.begin(row_at(NOW)) and not holder.begin(row_at(NOW))
    assert holder.begin(row_at(NOW, armed_ms=NOW + 1))
    holder.done(row_at(NOW))
    assert not holder.begin(row_at(NOW))


def test_the_cursor_stays_before_what_is_not_done() -> None:
    holder = Progress(NOW, NOW)
    first, second = row_at(NOW - 700), row_at(NOW - 300)
    holder.begin(first)
    holder.begin(second)
    reading(holder, NOW)
    assert holder.cursor_ms == first.place_ms
    holder.done(first)
    assert holder.cursor_ms == second.place_ms
    holder.done(second)
    assert holder.cursor_ms == NOW + 1


def test_a_clock_that_went_back_is_followed() -> None:
    holder = Progress(NOW, NOW)
    reading(holder, NOW)
    back = NOW - int(timedelta(hours=1).total_seconds() * 1_000)
    first, last = reading(holder, back)
    assert first <= back and last == back + 1
    assert holder.cursor_ms == back + 1


def test_what_a_feeder_that_works_ahead_reads() -> None:
    def bounds(cursor_ms: int, *, own: bool) -> tuple[int, int]:
        spans = list(spans_ahead(cursor_ms, NOW, 120_000, own=own))
        return (spans[0].from_ms, spans[-1].to_ms) if spans else (0, 0)

    end = NOW + 120_000
    assert bounds(NOW + 60_000, own=True) == (NOW + 60_000, end)
    assert bounds(NOW - 999_000, own=True) == (NOW - 999_000, end)
    assert bounds(end, own=True) == (0, 0)
    assert bounds(NOW - 2_000, own=False) == (NOW - 392_000, end)
    assert bounds(NOW + 3_600_000, own=True) == (NOW - 390_000, end)  # the clock went back


def test_hours_are_due_twenty_two_hours_before_they_begin() -> None:
    hour = buckets.FAR_BUCKET_MS
    begin = buckets.bucket_of(NOW, far=True)
    due = hours_due(begin, begin, 99)
    assert due == [begin + number * hour for number in range(23)]
    assert hours_due(begin + 23 * hour, begin, 99) == []
    assert progress.hours_due(begin, begin, 5) == due[:5]
