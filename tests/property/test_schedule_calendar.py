"""Times of schedules against two computations that share nothing with the engine's (LC-25, LC-26, design section 9).

One walks through the minutes of the world and looks at a wall clock, as a person would. The other has the days from
dateutil's recurrence rules and the zones from dateutil's own reader of zone files, over all of 2024 to 2034.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from dateutil import rrule, tz
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from stepwell.api.schedules import ScheduleCalendarSpec, ScheduleIntervalSpec, ScheduleRange, ScheduleSpec

from stepwell_server.scheduler.spec import check, count_times, leap, matching_times, next_time
from stepwell_server.scheduler.times import Looks

ZONES = (
    "UTC", "Africa/Casablanca", "America/New_York", "America/Sao_Paulo", "America/St_Johns", "Asia/Beirut",
    "Asia/Kathmandu", "Australia/Lord_Howe", "Europe/London", "Pacific/Apia", "Pacific/Chatham",
)  # fmt: skip
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
LAST = datetime(2034, 12, 31, 23, 59, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NOT_TIMED = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[phase for phase in Phase if phase not in (Phase.shrink, Phase.explain)],  # takes minutes, and little helps
)


class Said(NamedTuple):
    """A calendar by plain sets, of whole minutes. Monday is 0, as Python says it."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]

    def has(self, wall: datetime) -> bool:
        return (
            wall.minute in self.minutes
            and wall.hour in self.hours
            and wall.day in self.days
            and wall.month in self.months
            and wall.weekday() in self.weekdays
        )

    def calendar(self) -> ScheduleCalendarSpec:
        def ranges(numbers: Iterator[int]) -> tuple[ScheduleRange, ...]:
            return tuple(ScheduleRange(number) for number in sorted(numbers))

        return ScheduleCalendarSpec(
            minute=ranges(iter(self.minutes)),
            hour=ranges(iter(self.hours)),
            day_of_month=ranges(iter(self.days)),
            month=ranges(iter(self.months)),
            day_of_week=ranges((day + 1) % 7 for day in self.weekdays),
        )

    def cron(self) -> str:
        def listed(numbers: Iterator[int]) -> str:
            return ",".join(map(str, numbers))

        weekdays = (day + 1 for day in sorted(self.weekdays))  # Sunday is 7
        fields = (iter(self.minutes), iter(self.hours), iter(self.days), iter(self.months), weekdays)
        return " ".join(map(listed, fields))


def some(low: int, high: int, at_most: int) -> st.SearchStrategy[frozenset[int]]:
    return st.frozensets(st.integers(low, high), min_size=1, max_size=at_most)


ALL_HOURS, ALL_DAYS = frozenset(range(24)), frozenset(range(1, 32))
ALL_MONTHS, ALL_WEEKDAYS = frozenset(range(1, 13)), frozenset(range(7))
minutes = st.one_of(some(0, 59, 4), st.sampled_from([frozenset({0}), frozenset({0, 30}), frozenset(range(0, 60, 5))]))
near_changes = some(0, 4, 3)
often = st.builds(
    Said,
    minutes,
    st.one_of(st.just(ALL_HOURS), near_changes, some(0, 23, 6)),
    st.one_of(st.just(ALL_DAYS), some(1, 28, 20)),
    st.just(ALL_MONTHS),
    st.one_of(st.just(ALL_WEEKDAYS), some(0, 6, 5)),
)
rare = st.builds(
    Said,
    some(0, 59, 2),
    st.one_of(near_changes, some(0, 23, 2)),
    st.one_of(st.just(ALL_DAYS), some(1, 31, 10)),
    st.one_of(st.just(ALL_MONTHS), some(1, 12, 6)),
    st.one_of(st.just(ALL_WEEKDAYS), some(0, 6, 5)),
).filter(lambda said: not said.days.isdisjoint(range(1, 29)) or said.months == ALL_MONTHS)


def changes(zone: str) -> list[datetime]:
    """Hours of 2024 to 2034 in which clocks are put forward or back, with some that are like others."""
    where, hour, found = ZoneInfo(zone), FIRST, [FIRST, datetime(2028, 2, 29, tzinfo=UTC), LAST]
    while hour < LAST:
        following = hour + timedelta(hours=12)
        if hour.astimezone(where).utcoffset() != following.astimezone(where).utcoffset():
            found.append(hour)
        hour = following
    return found


CHANGES = {zone: changes(zone) for zone in ZONES}


@st.composite
def spans(draw: Callable[..., object]) -> tuple[str, datetime, datetime]:
    """A zone and some hours there, mostly about a change of clocks."""
    zone = draw(st.sampled_from(ZONES))
    about = draw(st.sampled_from(CHANGES[zone]))  # type: ignore[index]
    start = about - timedelta(minutes=draw(st.integers(0, 1_500)))  # type: ignore[operator, arg-type]
    return zone, start, start + timedelta(hours=draw(st.integers(20, 50)))  # type: ignore[return-value, arg-type]


def by_the_minute(
    zone: str, start: datetime, end: datetime, said: list[Said], every: list[tuple[int, int]], skip: list[Said]
) -> list[datetime]:
    """What a person does who watches a wall clock from well before ``start`` and notes when something is due."""
    where = ZoneInfo(zone)
    now = start - timedelta(hours=3)  # no repetition is longer
    before = now.astimezone(where).replace(tzinfo=None)
    seen, found = set(), []

    def excluded(wall: datetime) -> bool:
        return any(each.has(wall) for each in skip)

    while now < end:
        now += MINUTE
        wall = now.astimezone(where).replace(tzinfo=None, fold=0)
        due = any(int(now.timestamp()) % (60 * length) == 60 * phase for length, phase in every)
        due = due or any(each.has(wall) for each in said if each.hours == ALL_HOURS)
        if wall not in seen:
            seen.add(wall)
            due = due or any(each.has(wall) for each in said)
        left_out = before + MINUTE
        while left_out < wall:  # the clock is put forward, over these
            by_hours = (each for each in said if each.hours != ALL_HOURS)
            due = due or (not excluded(left_out) and any(each.has(left_out) for each in by_hours))
            left_out += MINUTE
        before = wall
        if due and not excluded(wall) and now >= start:
            found.append(now)
    return found


@settings(NOT_TIMED, max_examples=50)
@given(
    spans(),
    st.lists(often, max_size=3),
    st.lists(
        st.integers(1, 2_000).flatmap(lambda length: st.tuples(st.just(length), st.integers(0, length - 1))), max_size=2
    ),
    st.lists(often, max_size=2),
)
def test_times_are_those_of_a_wall_clock(
    span: tuple[str, datetime, datetime], said: list[Said], every: list[tuple[int, int]], skip: list[Said]
) -> None:
    zone, start, end = span
    spec = ScheduleSpec(
        calendars=tuple(each.calendar() for each in said[:1]),
        cron_expressions=tuple(each.cron() for each in said[1:]),
        intervals=tuple(ScheduleIntervalSpec(every=length * MINUTE, offset=phase * MINUTE) for length, phase in every),
        skip=tuple(each.calendar() for each in skip),
        time_zone_name=zone,
    )
    found = by_the_minute(zone, start, end, said, every, skip)
    assert list(matching_times(spec, start, end)) == found
    assert_leaps(spec, start, end, found)


def assert_leaps(spec: ScheduleSpec, start: datetime, end: datetime, found: list[datetime]) -> None:
    """Counted by the day, from anywhere, and gone on with when there was no more to be looked at."""
    before = start - timedelta(seconds=1)
    assert count_times(spec, before, end, Looks()) == (len(found), None)
    middle = start + (end - start) / 3
    behind = sum(time > middle for time in found)
    assert count_times(spec, middle, end, Looks()) == (behind, None)
    pieces, reached = count_times(spec, before, end, Looks(10))
    while reached is not None:
        count, reached = count_times(spec, reached, end, Looks(10))
        pieces += count
    assert pieces == len(found)
    times, cursor = leap(spec, before, end, Looks())
    assert times == max(0, len(found) - 2)
    assert [time for time in found if time > cursor] == found[times:]


@settings(NOT_TIMED, max_examples=25)
@given(spans(), often, st.integers(0, 4_000))
def test_the_next_time_is_the_first_of_all_behind(
    span: tuple[str, datetime, datetime], said: Said, seconds: int
) -> None:
    """Asked at any moment, also inside of a repeated hour, without knowing what was before."""
    zone, start, end = span
    spec = ScheduleSpec(calendars=(said.calendar(),), time_zone_name=zone)
    after = start + timedelta(seconds=seconds)
    behind = [time for time in by_the_minute(zone, start, end, [said], [], []) if time > after]
    firing = next_time(spec, after, "s")
    assert (firing.nominal if firing and firing.nominal <= end else None) == (behind[0] if behind else None)


def by_recurrence_rules(zone: str, said: Said) -> list[datetime]:
    where = tz.gettz(zone)
    assert where is not None
    rule = rrule.rrule(
        rrule.DAILY,
        dtstart=FIRST.replace(tzinfo=None) - timedelta(days=2),
        until=LAST.replace(tzinfo=None) + timedelta(days=2),
        bymonth=sorted(said.months),
        bymonthday=sorted(said.days),
        byweekday=sorted(said.weekdays),
        byhour=sorted(said.hours),
        byminute=sorted(said.minutes),
        bysecond=0,
    )
    found = set()
    for wall in rule:
        while not tz.datetime_exists(wall, where):
            wall += MINUTE
        found.add(wall.replace(tzinfo=where, fold=0).astimezone(UTC))
    return sorted(time for time in found if FIRST <= time <= LAST)


# dateutil takes Casablanca, whose winter time is summer time turned round, for an hour off. The wall clock has it.
@pytest.mark.parametrize("zone", [zone for zone in ZONES if zone != "Africa/Casablanca"])
def test_eleven_years_are_those_of_recurrence_rules(zone: str) -> None:
    @settings(NOT_TIMED, max_examples=3)
    @given(rare)
    def all_of_them(said: Said) -> None:
        spec = ScheduleSpec(cron_expressions=(said.cron(),), time_zone_name=zone)
        check(spec)
        found = by_recurrence_rules(zone, said)
        assert list(matching_times(spec, FIRST, LAST)) == found
        assert count_times(spec, FIRST - timedelta(seconds=1), LAST, Looks()) == (len(found), None)

    all_of_them()
