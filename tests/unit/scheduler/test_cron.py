"""Cron strings of schedules: what each form means, and what is refused, at which character (LC-25, WC-14)."""

from datetime import timedelta

import pytest
from stepwell.api.schedules import ScheduleCalendarSpec, ScheduleIntervalSpec, ScheduleRange

from stepwell_server.scheduler.cron import BadCron, parse

EVERY_MINUTE = (ScheduleRange(0, 59, 1),)
EVERY_HOUR = (ScheduleRange(0, 23, 1),)
NOON = {"minute": (ScheduleRange(0, 0, 1),), "hour": (ScheduleRange(12, 12, 1),)}
ANY_DAY = {
    "day_of_month": (ScheduleRange(1, 31, 1),),
    "month": (ScheduleRange(1, 12, 1),),
    "day_of_week": (ScheduleRange(0, 6, 1),),
}


def calendar(**parts: tuple[ScheduleRange, ...]) -> ScheduleCalendarSpec:
    return ScheduleCalendarSpec(**{**NOON, **ANY_DAY, **parts})


def only(number: int) -> tuple[ScheduleRange, ...]:
    return (ScheduleRange(number, number, 1),)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("0 12 * * *", calendar()),
        ("  0\t12 * * *  ", calendar()),
        ("0 12 * * * 2027", calendar(year=only(2027))),
        ("0 12 * * * *", calendar()),
        ("30 0 12 * * * 2027-2031/2", calendar(second=only(30), year=(ScheduleRange(2027, 2031, 2),))),
        ("*/15 * * * *", calendar(minute=(ScheduleRange(0, 59, 15),), hour=EVERY_HOUR)),
        ("5/20 12 * * *", calendar(minute=(ScheduleRange(5, 59, 20),))),
        ("0 12 1,15,28-30 * *", calendar(day_of_month=(*only(1), *only(15), ScheduleRange(28, 30, 1)))),
        ("0 12 * jan,SEPTEMBER-Nov *", calendar(month=(*only(1), ScheduleRange(9, 11, 1)))),
        ("0 12 * * 7", calendar(day_of_week=only(7))),
        ("0 12 * * SUN", calendar(day_of_week=only(0))),
        ("0 12 * * MON-7", calendar(day_of_week=(ScheduleRange(1, 7, 1),))),
        ("0 12 * * SAT-SUN", calendar(day_of_week=(ScheduleRange(6, 7, 1),))),
        ("0 12 * * sunday-2", calendar(day_of_week=(ScheduleRange(0, 2, 1),))),
        ("0 12 * * 1/2", calendar(day_of_week=(ScheduleRange(1, 6, 2),))),
        ("0 12 * * 7/2", calendar(day_of_week=(ScheduleRange(7, 7, 2),))),
        ("@hourly", calendar(hour=EVERY_HOUR)),
        ("@Daily", calendar(hour=only(0))),
        ("@weekly", calendar(hour=only(0), day_of_week=only(0))),
        ("@monthly", calendar(hour=only(0), day_of_month=only(1))),
        ("@yearly", calendar(hour=only(0), day_of_month=only(1), month=only(1))),
    ],
)
def test_calendars(text: str, meant: ScheduleCalendarSpec) -> None:
    assert parse(text) == (meant, None, "")


@pytest.mark.parametrize(
    ("text", "every", "offset"),
    [
        ("@every 90m", timedelta(minutes=90), timedelta(0)),
        ("@every 1d2h3m4s", timedelta(days=1, hours=2, minutes=3, seconds=4), timedelta(0)),
        ("@every 1h/10m", timedelta(hours=1), timedelta(minutes=10)),
    ],
)
def test_intervals(text: str, every: timedelta, offset: timedelta) -> None:
    assert parse(text).interval == ScheduleIntervalSpec(every=every, offset=offset)


def test_a_zone_before_and_a_comment_behind() -> None:
    found = parse("CRON_TZ=Asia/Tokyo 0 12 * * *  # lunch, 12 #2")
    assert found.zone == "Asia/Tokyo"
    assert found.calendar == ScheduleCalendarSpec(comment="lunch, 12 #2", **NOON, **ANY_DAY)
    assert parse("TZ=Asia/Tokyo @every 1h").zone == "Asia/Tokyo"


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("", 1, "0 fields; use 5"),
        ("* * * *", 7, "4 fields; use 5"),
        ("1 2 3 4 5 6 7 8", 15, "8 fields; use 5"),
        ("0 25 * * *", 3, "hour 25 is not in 0 to 23"),
        ("0 12 * * 8", 10, "day of week 8 is not in 0 to 7"),
        ("0 12 0 * *", 6, "day of month 0 is not in 1 to 31"),
        ("0 12 * 1,13 *", 10, "month 13 is not in 1 to 12"),
        ("0 12 * * * 1969", 12, "year 1969 is not in 1970 to 2100"),
        ("61 0 12 * * * 2027", 1, "second 61 is not in 0 to 59"),
        ("0 12 * * 7-2", 10, "7-2 ends before it begins; write two ranges with a comma between"),
        ("0 12 * * FRI-MON", 10, "FRI-MON ends before it begins"),
        ("0 12 * * MO", 10, "'MO' is no day of week; use 0 to 7 or a name such as MON"),
        ("0 12 L * *", 6, "'L' is no day of month; use 1 to 31, ranges a-b"),
        ("0 12 ? * *", 6, "'?' is no day of month"),
        ("0, 12 * * *", 3, "'' is no minute"),
        ("*/0 * * * *", 3, "'0' is no step"),
        ("*/ * * * *", 3, "'' is no step"),
        ("*/5/2 * * * *", 5, "a second step"),
        ("1-2-3 * * * *", 5, "a second '-'"),
        ("-5 * * * *", 1, "'' is no minute"),
        ("\u0665 * * * *", 1, "is no minute"),
        ("@sometimes", 1, "'@sometimes' is not known here; use @yearly"),
        ("@daily 5", 8, "'5' is not known here"),
        ("CRON_TZ=Asia/Tokyo 0 12 * * 9", 29, "day of week 9"),
        ("CRON_TZ= 0 12 * * *", 9, "no time zone is named"),
        ("@every", 1, "use @every 90m"),
        ("@every 5", 8, "'5' is no duration; use such as 90s"),
        ("@every 1h/x", 11, "'x' is no duration"),
        ("@every 999999999h", 8, "999999999h is over 3650 days"),
    ],
)
def test_what_cannot_be_read(text: str, place: int, says: str) -> None:
    with pytest.raises(BadCron) as refused:
        parse(text)
    assert str(refused.value).startswith(f"{text!r} cannot be read at character {place}: ")
    assert says in str(refused.value)


def test_a_long_one() -> None:
    with pytest.raises(BadCron, match="longer than 1000 bytes; use calendars instead"):
        parse("0," * 600)
