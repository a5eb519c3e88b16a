"""Cron schedules: what they may say, when the next time is, and clocks that are put forward and back (LC-24)."""

from datetime import UTC, datetime, timedelta

import pytest

from stepwell_server.history.cron import BadCron, next_time, parse

NOON = datetime(2026, 3, 20, 12, 0, 5, tzinfo=UTC)
BRUSSELS = "CRON_TZ=Europe/Brussels 30 2 * * *"


def at(month: int, day: int, hour: int, minute: int = 0, second: int = 0, year: int = 2026) -> datetime:
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("*/15 * * * *", at(3, 20, 12, 15)),
        ("0 12 * * MON", at(3, 23, 12)),
        ("0 0 1 */2 *", at(5, 1, 0)),
        ("0 0 29 2 *", at(2, 29, 0, year=2028)),
        ("5,35 8-9 * * 1-5", at(3, 23, 8, 5)),
        ("0 0 13 * FRI", at(3, 27, 0)),  # either day, as in crontab
        ("0 0 * * 7", at(3, 22, 0)),
        ("@hourly", at(3, 20, 13)),
        ("@daily", at(3, 21, 0)),
        ("@midnight", at(3, 21, 0)),
        ("@weekly", at(3, 22, 0)),
        ("@monthly", at(4, 1, 0)),
        ("@yearly", at(1, 1, 0, year=2027)),
        ("@every 90m", at(3, 20, 13, 30, 5)),
        ("@every 1h30m10s", at(3, 20, 13, 30, 15)),
        ("CRON_TZ=Asia/Tokyo 0 9 * * *", at(3, 21, 0)),
        ("TZ=Asia/Tokyo 0 9 * * *", at(3, 21, 0)),
    ],
)
def test_the_next_time(text: str, time: datetime) -> None:
    assert next_time(text, NOON, NOON) == time


def test_what_was_missed_is_left_out() -> None:
    late = NOON + timedelta(hours=5, minutes=1)
    assert next_time("0 * * * *", NOON, late) == at(3, 20, 18)
    assert next_time("@every 1h", NOON, late) == at(3, 20, 18, 0, 5)


def test_a_time_that_is_now_counts_once() -> None:
    exact = at(3, 20, 13)
    assert next_time("0 * * * *", at(3, 20, 12), exact) == exact
    assert next_time("0 * * * *", exact, exact) == at(3, 20, 14)
    assert next_time("@every 1h", at(3, 20, 12), exact) == exact
    assert next_time("@every 1h", exact, exact) == at(3, 20, 14)


def test_a_clock_behind_the_scheduled_time_repeats_nothing() -> None:
    assert next_time("0 * * * *", at(3, 20, 13), at(3, 20, 12, 59)) == at(3, 20, 14)
    assert next_time("@every 1h", at(3, 20, 13), at(3, 20, 12, 59)) == at(3, 20, 14)


def test_the_next_time_costs_nothing_behind_a_long_run() -> None:
    """Minutes of ten years are not counted one by one."""
    assert next_time("* * * * *", at(1, 1, 0, year=2016), at(1, 1, 0, second=1)) == at(1, 1, 0, 1)
    assert next_time("@every 1s", at(1, 1, 0, year=2016), at(1, 1, 0)) == at(1, 1, 0)


def test_a_missing_hour_runs_right_behind_the_gap() -> None:
    """On 29 March 2026 clocks in Brussels go from 2:00 to 3:00 at 1:00 UTC."""
    assert next_time(BRUSSELS, at(3, 28, 1, 30), at(3, 28, 2)) == at(3, 29, 1)
    assert next_time(BRUSSELS, at(3, 29, 1), at(3, 29, 2)) == at(3, 30, 0, 30)


def test_a_repeated_hour_runs_once() -> None:
    """On 25 October 2026 clocks go from 3:00 back to 2:00 at 1:00 UTC."""
    assert next_time(BRUSSELS, at(10, 24, 0, 30), at(10, 24, 1)) == at(10, 25, 0, 30)
    for now in (at(10, 25, 0, 30), at(10, 25, 0, 59), at(10, 25, 1, 10), at(10, 25, 1, 45)):
        assert next_time(BRUSSELS, at(10, 25, 0, 30), now) == at(10, 26, 1, 30)


def test_every_hour_of_a_zone_runs_in_both_of_the_repeated_ones() -> None:
    times, now = [], at(10, 24, 23, 30)
    for _ in range(3):
        found = next_time("CRON_TZ=Europe/Brussels 0 * * * *", now, now)
        assert found is not None
        times.append(found)
        now = found
    assert times == [at(10, 25, 0), at(10, 25, 1), at(10, 25, 2)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has not five fields"),
        ("* * * *", "has not five fields"),
        ("* * * * * *", "has not five fields"),
        ("@sometimes", "has not five fields"),
        ("60 * * * *", "cannot be read: Bad minute"),
        ("0 0 30 2 *", "never comes: no month that it names has such a day"),
        ("0 0 31 4,6 *", "never comes"),
        ("0 0 32 2 *", "cannot be read: Bad day-of-month"),
        ("0 0 30 13 *", "cannot be read: Bad month"),
        ("*/0 * * * *", "cannot be read"),
        ("@every", "needs a time behind @every"),
        ("@every 0s", "needs a time behind @every"),
        ("@every 5", "needs a time behind @every"),
        ("@every 87601h", "needs a time behind @every"),
        ("@every 9999999999h", "over 3650 days"),
        ("CRON_TZ=Mars/Crater @daily", "names the time zone 'Mars/Crater', which this system does not have"),
        ("CRON_TZ=../../etc/hosts @daily", "which this system does not have"),
        ("CRON_TZ= @daily", "which this system does not have"),
        ("0 " * 600, "is longer than 1000 bytes"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, says: str) -> None:
    with pytest.raises(BadCron, match=says):
        parse(text)
