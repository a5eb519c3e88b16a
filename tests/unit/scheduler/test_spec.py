"""When a schedule acts: calendars, intervals, exclusions, bounds, jitter, and what is refused (LC-25, LC-26, LC-39)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from pathlib import Path
from zoneinfo import TZPATH

import pytest
from stepwell.api.codec import decode_json, encode_json
from stepwell.api.errors import InvalidArgument
from stepwell.api.schedules import ScheduleCalendarSpec, ScheduleIntervalSpec, ScheduleRange, ScheduleSpec

from stepwell_server.scheduler.spec import Firing, check, matching_times, next_time

FOREVER = datetime(2100, 12, 31, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def at(month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0, year: int = 2026) -> datetime:
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


def cron(*texts: str, zone: str = "") -> ScheduleSpec:
    return ScheduleSpec(cron_expressions=texts, time_zone_name=zone)


def times(spec: ScheduleSpec, start: datetime, end: datetime) -> list[datetime]:
    """Forwards in one go, and as the engine asks, one after the other: they must agree."""
    check(spec)
    found = list(matching_times(spec, start, end))
    for before, behind in zip([start - timedelta(microseconds=1), *found], found, strict=False):
        assert next_time(spec, before, "s") == Firing(behind, behind)
    return found


def days(spec: ScheduleSpec, start: datetime, count: int) -> list[str]:
    check(spec)
    return [f"{time:%a %d}" for time in matching_times(spec, start, start + count * DAY)]


def ranges(*numbers: int) -> tuple[ScheduleRange, ...]:
    return tuple(ScheduleRange(number) for number in numbers)


# ---- calendars ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "names"),
    [
        ("7", {"Sun"}),
        ("0", {"Sun"}),
        ("SUN", {"Sun"}),
        ("0,7", {"Sun"}),
        ("5-7", {"Fri", "Sat", "Sun"}),
        ("6-7", {"Sat", "Sun"}),
        ("SAT-SUN", {"Sat", "Sun"}),
        ("1-7", {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}),
        ("MON-7", {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}),
        ("*/7", {"Sun"}),
    ],
)
def test_sunday_is_0_and_7(field: str, names: set[str]) -> None:
    found = times(cron(f"0 12 * * {field}"), at(3, 2), at(3, 15, 23))
    assert {f"{time:%a}" for time in found} == names
    assert len(found) == 2 * len(names)


def test_day_of_month_and_day_of_week_hold_together() -> None:
    assert days(cron("0 0 13 * FRI"), at(1, 1), 365) == ["Fri 13", "Fri 13", "Fri 13"]


def test_leap_years() -> None:
    found = times(cron("0 0 29 2 *"), at(1, 1), at(1, 1, year=2041))
    assert [time.year for time in found] == [2028, 2032, 2036, 2040]
    assert next_time(cron("0 0 29 2 MON"), at(3, 1, year=2044), "s") == Firing(*[at(2, 29, year=2072)] * 2)
    assert next_time(cron("0 0 29 2 *"), at(3, 1, year=2096), "s") is None  # 2100 is none


def test_the_last_second_of_the_last_year_and_nothing_behind_it() -> None:
    spec = cron("59 59 23 31 12 * 2100")
    assert next_time(spec, at(1, 1), "s") is not None
    assert next_time(spec, at(12, 31, 23, 59, 59, year=2100), "s") is None
    assert next_time(spec, datetime.max.replace(tzinfo=UTC), "s") is None


def test_a_union_names_a_time_once() -> None:
    spec = ScheduleSpec(
        calendars=(ScheduleCalendarSpec(hour=ranges(6, 12)),),
        intervals=(ScheduleIntervalSpec(every=6 * HOUR),),
        cron_expressions=("0 12,13 * * *",),
    )
    assert [time.hour for time in times(spec, at(3, 2), at(3, 2, 23))] == [0, 6, 12, 13, 18]


def test_ranges_steps_seconds_and_years() -> None:
    spec = ScheduleSpec(
        calendars=(
            ScheduleCalendarSpec(
                second=(ScheduleRange(10, 50, 20),), minute=ranges(5), hour=ranges(23), month=ranges(12),
                day_of_month=ranges(31), year=(ScheduleRange(2026, 2030, 4),),
            ),
        )
    )  # fmt: skip
    seconds = [(year, second) for year in (2026, 2030) for second in (10, 30, 50)]
    assert [(time.year, time.second) for time in times(spec, at(1, 1), FOREVER)] == seconds


def test_nothing_named_is_never() -> None:
    check(ScheduleSpec())
    assert next_time(ScheduleSpec(), at(1, 1), "s") is None


# ---- intervals ------------------------------------------------------------------------------------------------------


def test_intervals_count_from_1970() -> None:
    spec = ScheduleSpec(intervals=(ScheduleIntervalSpec(every=timedelta(days=7), offset=DAY + HOUR),))
    found = times(spec, at(3, 1), at(3, 31))
    assert [f"{time:%a %d %H}" for time in found] == ["Fri 06 01", "Fri 13 01", "Fri 20 01", "Fri 27 01"]
    assert cron("@every 7d/1d1h") != spec
    assert times(cron("@every 7d/1d1h"), at(3, 1), at(3, 31)) == found


@pytest.mark.parametrize("every", [1, 7, 60, 3_599, 86_399, 86_400, 86_401, 1_000_000])
def test_intervals_of_any_length_go_on_by_real_time(every: int) -> None:
    spec = ScheduleSpec(
        intervals=(ScheduleIntervalSpec(every=timedelta(seconds=every)),), time_zone_name="America/New_York"
    )
    start = at(11, 1, 5, 59, 30)  # clocks there are put back at 6:00
    found = list(islice(matching_times(spec, start, FOREVER), 50))
    assert {later - before for before, later in pairwise(found)} == {timedelta(seconds=every)}
    assert all(int(time.timestamp()) % every == 0 for time in found)
    assert start <= found[0] < start + timedelta(seconds=every)


def test_one_second_is_not_counted_through() -> None:
    """A second of Leap Day, looked for from the day behind it, and once in a year among what is excluded."""
    spec = ScheduleSpec(
        intervals=(ScheduleIntervalSpec(every=timedelta(seconds=1)),),
        skip=(ScheduleCalendarSpec(**_any("second", "minute", "hour"), month=(ScheduleRange(1, 11),)),),
        time_zone_name="Europe/Rome",
    )
    assert times(spec, at(1, 1), at(11, 30, 23)) == [at(11, 30, 23)]


def test_what_is_excluded_for_ever_costs_nothing_beside_what_is_near() -> None:
    """Searched for to the end each time, it would take a quarter of an hour."""
    never = ScheduleCalendarSpec(hour=ranges(3))
    minutes = ScheduleIntervalSpec(every=timedelta(minutes=1))
    spec = ScheduleSpec(calendars=(never,), intervals=(minutes,), skip=(never,))
    assert len(list(islice(matching_times(spec, at(3, 2), FOREVER), 3_000))) == 3_000


def test_many_parts_that_are_nearly_always_excluded_are_not_looked_through_for_minutes() -> None:
    """One by one, these would be five million times."""
    whole = {"second": (ScheduleRange(0, 59),), **_any("minute", "hour")}
    skip = tuple(ScheduleCalendarSpec(comment=str(number), **whole) for number in range(100))
    long = tuple(ScheduleIntervalSpec(every=DAY + timedelta(seconds=number + 1)) for number in range(100))
    with pytest.raises(InvalidArgument, match="skip leaves no time at all"):
        check(ScheduleSpec(intervals=long, skip=skip))


# ---- clocks put forward and back ------------------------------------------------------------------------------------

NEW_YORK = "America/New_York"  # 2026: forward on 8 March at 7:00 UTC, back on 1 November at 6:00 UTC


def test_a_missing_time_is_right_behind_the_gap() -> None:
    for text in ("30 2 * * *", "0,30 2 * * *", "*/10 2 * * *", "59 59 2 * * * *"):
        spec = cron(text, zone=NEW_YORK)
        assert [time for time in times(spec, at(3, 8), at(3, 9)) if time < at(3, 9, 6)] == [at(3, 8, 7)]
    daily = cron("30 2 * * *", zone=NEW_YORK)
    assert times(daily, at(3, 7), at(3, 10)) == [at(3, 7, 7, 30), at(3, 8, 7), at(3, 9, 6, 30)]
    assert next_time(daily, at(3, 8, 6, 59, 59), "s") == Firing(at(3, 8, 7), at(3, 8, 7))
    assert next_time(daily, at(3, 8, 7), "s") == Firing(at(3, 9, 6, 30), at(3, 9, 6, 30))


def test_a_repeated_time_is_once_the_first() -> None:
    daily = cron("30 1 * * *", zone=NEW_YORK)
    assert times(daily, at(10, 31), at(11, 3)) == [at(10, 31, 5, 30), at(11, 1, 5, 30), at(11, 2, 6, 30)]
    for inside in (at(11, 1, 5, 30), at(11, 1, 5, 59, 59), at(11, 1, 6), at(11, 1, 6, 15), at(11, 1, 6, 59)):
        assert next_time(daily, inside, "s") == Firing(at(11, 2, 6, 30), at(11, 2, 6, 30))
    assert times(cron("*/20 1,2 * * *", zone=NEW_YORK), at(11, 1, 5), at(11, 1, 8)) == [
        at(11, 1, 5, minute) for minute in (0, 20, 40)
    ] + [at(11, 1, 7, minute) for minute in (0, 20, 40)]


def test_what_names_no_hours_goes_on_by_real_time() -> None:
    for spec in (cron("*/30 * * * *", zone=NEW_YORK), cron("@every 30m", zone=NEW_YORK)):
        for start in (at(3, 8, 5), at(11, 1, 4)):
            assert times(spec, start, start + 4 * HOUR) == [start + each * HOUR / 2 for each in range(9)]
    hourly = cron("45 * * * *", zone=NEW_YORK)
    assert [time.hour for time in times(hourly, at(3, 8, 5), at(3, 8, 9))] == [5, 6, 7, 8]


def test_half_an_hour_on_lord_howe() -> None:
    """Back by 30 minutes on 5 April 2026 at 2:00 there (15:00 UTC), forward on 4 October at 2:00 (15:30 UTC)."""
    zone = "Australia/Lord_Howe"
    assert times(cron("45 1 * * *", zone=zone), at(4, 4, 12), at(4, 4, 20)) == [at(4, 4, 14, 45)]
    assert times(cron("15 2 * * *", zone=zone), at(10, 3, 12), at(10, 3, 20)) == [at(10, 3, 15, 30)]
    assert times(cron("45 2 * * *", zone=zone), at(10, 3, 12), at(10, 3, 20)) == [at(10, 3, 15, 45)]


def test_midnight_that_is_missing_and_a_day_that_is_missing() -> None:
    """Beirut goes forward at 0:00; Apia had no 30 December 2011 at all."""
    assert times(cron("@daily", zone="Asia/Beirut"), at(3, 28, 12), at(3, 29, 12)) == [at(3, 28, 22)]
    apia = cron("0 12 * * *", zone="Pacific/Apia")
    assert times(apia, at(12, 29, year=2011), at(12, 31, 12, year=2011)) == [
        at(12, 29, 22, year=2011),
        at(12, 30, 10, year=2011),
        at(12, 30, 22, year=2011),
    ]


def test_an_exclusion_holds_in_a_gap_and_at_its_end() -> None:
    daily = ScheduleCalendarSpec(minute=ranges(30), hour=ranges(2))
    for hour in (2, 3):
        skip = ScheduleCalendarSpec(**_any("minute"), hour=ranges(hour), month=ranges(3), day_of_month=ranges(8))
        spec = ScheduleSpec(calendars=(daily,), skip=(skip,), time_zone_name=NEW_YORK)
        assert times(spec, at(3, 7), at(3, 10)) == [at(3, 7, 7, 30), at(3, 9, 6, 30)]


# ---- exclusions, bounds, jitter -------------------------------------------------------------------------------------


def _any(*parts: str) -> dict[str, tuple[ScheduleRange, ...]]:
    full = {"second": 59, "minute": 59, "hour": 23}
    return {part: (ScheduleRange(0, full[part]),) for part in parts}


def test_exclusions() -> None:
    holiday = ScheduleCalendarSpec(**_any("minute", "hour"), month=ranges(12), day_of_month=ranges(25))
    weekend = ScheduleCalendarSpec(hour=ranges(8), day_of_week=ranges(6, 7))
    spec = ScheduleSpec(cron_expressions=("0 8 * * *",), skip=(holiday, weekend))
    assert days(spec, at(12, 21), 10) == ["Mon 21", "Tue 22", "Wed 23", "Thu 24", "Mon 28", "Tue 29", "Wed 30"]
    long = ScheduleSpec(intervals=(ScheduleIntervalSpec(every=2 * DAY, offset=8 * HOUR),), skip=(weekend,))
    assert {time.weekday() for time in times(long, at(1, 1), at(3, 1))} == {0, 1, 2, 3, 4}


def test_start_and_end_count() -> None:
    bounds = {"start_at": at(3, 2, 10), "end_at": at(3, 2, 12)}
    spec = ScheduleSpec(cron_expressions=("@hourly",), **bounds)
    assert [time.hour for time in times(spec, at(1, 1), at(12, 1))] == [10, 11, 12]
    between = {"start_at": at(3, 2, 10) + timedelta(microseconds=1), "end_at": at(3, 2, 12) - timedelta(microseconds=1)}
    assert [
        time.hour for time in times(ScheduleSpec(cron_expressions=("@hourly",), **between), at(1, 1), at(12, 1))
    ] == [11]
    assert next_time(spec, at(3, 2, 12), "s") is None
    early = ScheduleSpec(cron_expressions=("@hourly",), start_at=datetime.min.replace(tzinfo=UTC))
    assert next_time(early, at(3, 2, 10, 30), "s") == Firing(at(3, 2, 11), at(3, 2, 11))


def test_a_range_counts_both_ends() -> None:
    assert [time.hour for time in matching_times(cron("@hourly"), at(3, 2, 3), at(3, 2, 5))] == [3, 4, 5]
    assert list(matching_times(cron("@hourly"), at(3, 2, 5), at(3, 2, 3))) == []


def test_jitter_is_the_same_each_time_and_before_the_next_nominal_time() -> None:
    spec = ScheduleSpec(cron_expressions=("*/5 * * * *",), jitter=HOUR)
    drawn = []
    nominal = at(3, 2)
    for _ in range(500):
        firing = next_time(spec, nominal, "nightly")
        assert firing is not None
        assert firing == next_time(spec, firing.nominal - timedelta(seconds=1), "nightly")
        drawn.append((firing.at - firing.nominal) / timedelta(minutes=5))
        nominal = firing.nominal
    assert all(0 <= each < 1 for each in drawn)
    assert min(drawn) < 0.05
    assert max(drawn) > 0.95
    assert 0.4 < sum(drawn) / len(drawn) < 0.6
    assert next_time(spec, at(3, 2), "nightly") != next_time(spec, at(3, 2), "weekly")
    short = ScheduleSpec(cron_expressions=("*/5 * * * *",), jitter=timedelta(seconds=10))
    first = next_time(short, at(3, 2), "s")
    assert first is not None
    assert first.at < at(3, 2, 0, 5, 10)


def test_jitter_of_the_last_time_of_all_and_over_edits_of_other_things() -> None:
    last = ScheduleSpec(cron_expressions=("0 12 * * * 2026",), jitter=HOUR, end_at=at(3, 2, 12))
    firing = next_time(last, at(3, 2, 11), "s")
    assert firing is not None
    assert at(3, 2, 12) <= firing.at < at(3, 2, 13)
    edited = ScheduleSpec(cron_expressions=("0 12 * * *",), jitter=HOUR, time_zone_name="UTC")
    assert next_time(edited, at(3, 2, 11), "s") == firing


# ---- zones ----------------------------------------------------------------------------------------------------------


def _zone_file(name: str) -> bytes:
    for folder in TZPATH:
        if (Path(folder) / name).is_file():
            return (Path(folder) / name).read_bytes()
    from importlib.resources import files  # where the system has none, zoneinfo reads the package tzdata

    return files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()


def test_a_zone_by_name_by_cron_string_and_by_file() -> None:
    tokyo = [at(3, 2)]
    for spec in (
        cron("0 9 * * *", zone="Asia/Tokyo"),
        cron("CRON_TZ=Asia/Tokyo 0 9 * * *"),
        cron("CRON_TZ=Asia/Tokyo 0 9 * * *", zone="Asia/Tokyo"),
        ScheduleSpec(cron_expressions=("0 9 * * *",), time_zone_data=_zone_file("Asia/Tokyo")),
        ScheduleSpec(
            cron_expressions=("0 9 * * *",), time_zone_name="Ours/Own", time_zone_data=_zone_file("Asia/Tokyo")
        ),
    ):
        assert times(spec, at(3, 1, 12), at(3, 2, 12)) == tokyo


def test_a_spec_on_the_wire_is_the_same_spec() -> None:
    spec = ScheduleSpec(
        calendars=(ScheduleCalendarSpec(hour=ranges(6, 12), comment="meals"),),
        intervals=(ScheduleIntervalSpec(every=6 * HOUR, offset=HOUR),),
        cron_expressions=("0 12,13 * * *",), skip=(ScheduleCalendarSpec(month=ranges(8)),),
        start_at=at(1, 1), end_at=at(12, 1), jitter=timedelta(seconds=5),
        time_zone_name="Asia/Tokyo", time_zone_data=_zone_file("Asia/Tokyo"),
    )  # fmt: skip
    assert decode_json(encode_json(spec), ScheduleSpec) == spec


# ---- refusals -------------------------------------------------------------------------------------------------------

MANY = (ScheduleCalendarSpec(),) * 101


def calendar(**parts: Sequence[ScheduleRange]) -> ScheduleSpec:
    return ScheduleSpec(calendars=(ScheduleCalendarSpec(), ScheduleCalendarSpec(**parts)))


def every(seconds: float, offset: float = 0) -> ScheduleSpec:
    return ScheduleSpec(
        intervals=(ScheduleIntervalSpec(every=timedelta(seconds=seconds), offset=timedelta(seconds=offset)),)
    )


REFUSALS: dict[str, tuple[ScheduleSpec, str, str]] = {
    "cron": (cron("@daily", "0 25 * * *"), "cron_expressions[1]", "'0 25 * * *' cannot be read at character 3"),
    "day 30 of February": (cron("0 0 30 2 *"), "cron_expressions[0]", "'0 0 30 2 *' never comes: there is no such day"),
    "day 31 of short months": (
        calendar(day_of_month=ranges(31), month=ranges(4, 6)), "calendars[1]", "never comes: there is no such day"
    ),
    "leap day of other years": (cron("0 0 29 2 * 2027"), "cron_expressions[0]", "never comes"),
    "a number": (calendar(hour=ranges(3, 24)), "calendars[1].hour[1].start", "is 24; use 0 to 23"),
    "a negative end": (calendar(hour=(ScheduleRange(3, -1),)), "calendars[1].hour[0].end", "is -1; use 0 to 23"),
    "backwards": (calendar(hour=(ScheduleRange(3, 2),)), "calendars[1].hour[0]", "ends at 2, before it begins"),
    "a step": (calendar(hour=(ScheduleRange(3, 5, -1),)), "calendars[1].hour[0].step", "is -1; use 1 or more"),
    "a year": (calendar(year=ranges(1900)), "calendars[1].year[0].start", "is 1900; use 1970 to 2100"),
    "ranges": (calendar(hour=ranges(*[1] * 101)), "calendars[1].hour", "has 101 ranges, above the limit of 100"),
    "a comment": (
        ScheduleSpec(calendars=(ScheduleCalendarSpec(comment="a" * 4_001),)), "calendars[0].comment", "over 4000 bytes"
    ),
    "half a second": (every(0.5), "intervals[0].every", "is 0:00:00.500000; use 1 second to 3650 days"),
    "a second and a half": (every(1.5), "intervals[0].every", "is 0:00:01.500000; use whole seconds"),
    "eleven years": (every(11 * 366 * 86_400), "intervals[0].every", "use 1 second to 3650 days"),
    "an offset": (every(60, 60), "intervals[0].offset", "is 0:01:00; use 0 or more, and less than every (0:01:00)"),
    "a negative offset": (every(60, -1), "intervals[0].offset", "use 0 or more"),
    "@every": (cron("@every 1h/2h"), "cron_expressions[0].offset", "is 2:00:00; use 0 or more"),
    "a zone": (cron("@daily", zone="Europe/Romee"), "time_zone_name", "did you mean Europe/Rome"),
    "a city alone": (cron("@daily", zone="new york"), "time_zone_name", "did you mean America/New_York"),
    "no zone at all": (cron("@daily", zone="Mars"), "time_zone_name", "is 'Mars', which this system does not have"),
    "a path": (cron("@daily", zone="../../etc/passwd"), "time_zone_name", "which this system does not have"),
    "two zones": (
        cron("CRON_TZ=Asia/Tokyo @daily", zone="UTC"), "cron_expressions[0]", "is in Asia/Tokyo, but the rest in UTC"
    ),
    "a zone file": (ScheduleSpec(time_zone_data=b"TZif2 but no more"), "time_zone_data", "is no zone file (TZif)"),
    "a large zone file": (ScheduleSpec(time_zone_data=b"T" * 32_769), "time_zone_data", "above the limit of 32768"),
    "parts": (ScheduleSpec(calendars=MANY), "calendars", "101 calendars, intervals and cron strings, above the limit"),
    "exclusions": (ScheduleSpec(skip=MANY), "skip", "101 exclusions, above the limit of 100"),
    "a bad exclusion": (ScheduleSpec(skip=(ScheduleCalendarSpec(hour=ranges(24)),)), "skip[0].hour[0].start", "is 24"),
    "all excluded": (
        ScheduleSpec(cron_expressions=("@daily",), skip=(ScheduleCalendarSpec(),)), "skip", "leaves no time at all"
    ),
    "all of an interval excluded": (
        ScheduleSpec(
            intervals=(ScheduleIntervalSpec(every=timedelta(minutes=7)),),
            skip=(ScheduleCalendarSpec(**_any("minute", "hour")),),
        ), "skip", "leaves no time at all"
    ),
    "an end before the start": (
        ScheduleSpec(start_at=at(3, 2), end_at=at(3, 1)), "end_at", "is before start_at (2026-03-02T00:00:00+00:00)"
    ),
    "nothing before the end": (
        ScheduleSpec(cron_expressions=("0 0 29 2 * 2028",), end_at=at(3, 1)), "end_at", "leaves no time at all"
    ),
    "a start without a zone": (ScheduleSpec(start_at=datetime(2026, 3, 1)), "start_at", "has no time zone"),  # noqa: DTZ001
    "jitter": (ScheduleSpec(jitter=timedelta(seconds=-1)), "jitter", "use 0 to 3650 days"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_refused(name: str) -> None:
    spec, field, says = REFUSALS[name]
    with pytest.raises(InvalidArgument) as refused:
        check(spec)
    assert refused.value.details["field"] == f"schedule.spec.{field}"
    assert refused.value.message.startswith(f"schedule.spec.{field} ")
    assert says in refused.value.message


def test_a_spec_that_was_stored_by_another_release_is_refused_when_it_is_read() -> None:
    with pytest.raises(InvalidArgument, match="time_zone_name is 'Mars'"):
        next_time(cron("@daily", zone="Mars"), at(1, 1), "s")
