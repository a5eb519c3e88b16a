"""When a schedule acts: the next time, the times of a range, and what a spec may not say (LC-25, LC-26, LC-39)."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

import msgspec
from stepwell.api import limits
from stepwell.api.errors import InvalidArgument
from stepwell.api.schedules import ScheduleIntervalSpec, ScheduleSpec

from . import cron
from .calendars import BadSpec, Calendar, compiled
from .times import HORIZON, Interval, Looks, Times
from .zones import BadZone, zone

_SECOND = timedelta(seconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LOOKS_AT_ONCE = 5_000
"""Of one step, or until others have a turn: some days of a definition of a hundred parts, years of most."""

_MAX_JITTER = limits.MAX_DURATION


class Firing(NamedTuple):
    """``at`` is ``nominal`` with jitter, and before the next nominal time."""

    nominal: datetime
    at: datetime


class Search(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far the search for the next firing is, which takes more than one step: there is nothing up to ``reached``.
    With ``found``, its nominal time, it is the one behind that which is searched for, since jitter ends there."""

    reached: datetime
    found: datetime | None = None


def next_time(spec: ScheduleSpec, after: datetime, schedule_id: str, looks: Looks | None = None) -> Firing | None:
    """The first firing whose nominal time is behind ``after``; None when there is none any more, or ``looks`` ran out.
    Raises InvalidArgument for a spec that :func:`check` refuses."""
    return search_next(spec, after, schedule_id, looks or Looks(), None)[0]


def search_next(
    spec: ScheduleSpec, after: datetime, schedule_id: str, looks: Looks, search: Search | None
) -> tuple[Firing | None, Search | None]:
    """As :func:`next_time`, from where ``search`` was; with the search to go on with. It is None if it had an end at
    once: then it is not worth keeping."""
    times, reached = _times(spec), max(_floor(after), -1 if search is None else _floor(search.reached))
    found = None if search is None or search.found is None else _floor(search.found)
    if found is None:
        found = _next(spec, times, reached, looks)
        if found is None:
            reached = max(reached, looks.reached)
            return None, None if search is None and not looks.ran_out else Search(_moment(reached))
        reached = found
    nominal = _moment(found)
    if not spec.jitter:
        return Firing(nominal, nominal), search and Search(nominal - _SECOND)
    following = _next(spec, times, reached, looks)
    reached = max(reached, looks.reached) if following is None else following - 1
    longest = spec.jitter if following is None else min(spec.jitter, (following - found) * _SECOND)
    if following is None and looks.ran_out and (reached - found) * _SECOND < spec.jitter:
        return None, Search(_moment(reached), nominal)
    return Firing(nominal, nominal + _jitter(schedule_id, found, longest)), search and Search(_moment(reached), nominal)


def before_latest(spec: ScheduleSpec, after: datetime, now: datetime, looks: Looks | None = None) -> datetime:
    """``after``, or a moment behind it that has no more than one nominal time before it and ``now``: the latest. Jitter
    ends before the next nominal time, so only that one may be to come. By halves: before it there may be millions.
    There may be more behind it when ``looks`` ran out."""
    times, low, high = _times(spec), _floor(after), _floor(now)
    looks = looks or Looks()
    while high - low > 1 and not looks.ran_out:
        middle = (low + high) // 2
        found = _next(spec, times, middle, looks)
        if found is not None and found <= high:
            low = middle
        elif not looks.ran_out:
            high = middle
    return max(after, _moment(low))


class Leap(NamedTuple):
    """``times`` of them are behind where it began and not behind ``cursor``."""

    times: int
    cursor: datetime


def leap(spec: ScheduleSpec, after: datetime, until: datetime, looks: Looks) -> Leap:
    """Over all nominal times up to ``until`` but the last two, as far as ``looks`` go: a day's are counted at once. The
    last may be acted on behind ``until``, since it has jitter; the one before it never is."""
    first, last = _within(spec, after, until)
    count, latest = 0, (first, first)
    for piece in _times(spec).pieces(first, last, looks):
        if piece.times:
            count += piece.times.bit_count()
            top = piece.times.bit_length() - 1
            below = (piece.times ^ (1 << top)).bit_length() - 1
            latest = (latest[1] if below < 0 else piece.begin + below, piece.begin + top)
    if count <= 2:
        return Leap(0, after)
    return Leap(count - 2, _moment(latest[0] - 1))


def count_times(spec: ScheduleSpec, after: datetime, until: datetime, looks: Looks) -> tuple[int, datetime | None]:
    """How many nominal times are behind ``after`` up to ``until``; with a moment, those up to it: ``looks`` ran out."""
    first, last = _within(spec, after, until)
    count, reached = 0, first
    for piece in _times(spec).pieces(first, last, looks):
        count += piece.times.bit_count()
        reached = piece.end - 1
    reached = max(reached, looks.reached)
    return count, _moment(reached) if looks.ran_out and reached < last else None


def _within(spec: ScheduleSpec, after: datetime, until: datetime) -> tuple[int, int]:
    """Behind the first up to the last, in the years that are searched."""
    first, last = max(_floor(after), -1), min(_floor(until), HORIZON - 1)
    if spec.start_at is not None:
        first = max(first, _just_before(spec.start_at))
    return first, last if spec.end_at is None else min(last, _floor(spec.end_at))


def matching_times(spec: ScheduleSpec, start: datetime, end: datetime) -> Iterator[datetime]:
    """The nominal times from ``start`` to ``end``, both counted, in order. There may be any number: take some."""
    return (time for time in times_and_rests(spec, start, end) if time is not None)


def times_and_rests(spec: ScheduleSpec, start: datetime, end: datetime) -> Iterator[datetime | None]:
    """The same, with None where so much was looked at that others should have a turn."""
    times, after, last = _times(spec), _just_before(start), min(_floor(end), HORIZON - 1)
    looks = Looks(LOOKS_AT_ONCE)
    while after < last:
        found = _next(spec, times, after, looks)
        if found is not None and found > last:
            return
        if found is not None:
            yield _moment(found)
            after = found
        elif not looks.ran_out:
            return
        else:
            after = max(after, looks.reached)
            yield None
            looks = Looks(LOOKS_AT_ONCE)


def is_in_calendar(said: datetime) -> bool:
    """Whether it is a time in UTC as well, as which it is stored: at the edges its zone may lead out of all years."""
    try:
        said.astimezone(UTC)
    except OverflowError:
        return False
    return True


def check(spec: ScheduleSpec, field: str = "schedule.spec") -> None:
    """Refuses, before anything is written, what cannot be read and what never comes. Raises InvalidArgument, which
    names the field, the limit and the way out."""
    try:
        _check(spec)
    except BadSpec as bad:
        where = f"{field}.{bad.field}"
        raise InvalidArgument(f"{where} {bad.sentence}", field=where) from None


def _check(spec: ScheduleSpec) -> None:
    for name in ("start_at", "end_at"):
        said: datetime | None = getattr(spec, name)
        if said is not None and said.tzinfo is None:
            raise BadSpec(name, "has no time zone; use a time with one, such as 2026-01-31T09:00:00Z")
        if said is not None and not is_in_calendar(said):
            raise BadSpec(name, "is not in the years 1 to 9999 of UTC; use another time")
    if spec.start_at is not None and spec.end_at is not None and spec.end_at < spec.start_at:
        raise BadSpec("end_at", f"is before start_at ({spec.start_at.isoformat()}); use a later one")
    if not timedelta(0) <= spec.jitter <= _MAX_JITTER:
        raise BadSpec("jitter", f"is {spec.jitter}; use 0 to {_MAX_JITTER.days} days")
    times = _compiled(spec)
    named = spec.calendars or spec.intervals or spec.cron_expressions
    if named and _next(spec, times, -1) is None:
        by = next((name for name in ("skip", "end_at", "start_at") if getattr(spec, name)), "calendars")
        raise BadSpec(
            by, "leaves no time at all; take something out of it, or name no times and trigger the schedule by hand"
        )


def _next(spec: ScheduleSpec, times: Times, after: int, looks: Looks | None = None) -> int | None:
    if spec.start_at is not None:
        after = max(after, _just_before(spec.start_at))
    if spec.end_at is not None and after >= _floor(spec.end_at):
        return None
    found = times.after(max(after, -1), looks)
    return None if found is None or (spec.end_at is not None and found > _floor(spec.end_at)) else found


def _moment(instant: int) -> datetime:
    return _EPOCH + instant * _SECOND


def _floor(moment: datetime) -> int:
    return (moment - _EPOCH) // _SECOND


def _just_before(moment: datetime) -> int:
    """The last second before the first whole one that is not before ``moment``."""
    return -((_EPOCH - moment) // _SECOND) - 1


def _jitter(schedule_id: str, nominal: int, longest: timedelta) -> timedelta:
    """Spread evenly over schedules and times, and the same whenever it is asked for."""
    seed = f"{schedule_id}\n{nominal}".encode(errors="replace")
    drawn = int.from_bytes(hashlib.blake2b(seed, digest_size=8).digest(), "big")
    return timedelta(milliseconds=(longest // timedelta(milliseconds=1)) * drawn >> 64)


def _times(spec: ScheduleSpec) -> Times:
    try:
        return _compiled(spec)
    except BadSpec as bad:
        raise InvalidArgument(str(bad), field=bad.field) from None


@lru_cache(maxsize=128)
def _compiled(spec: ScheduleSpec) -> Times:
    """Raises BadSpec."""
    parts = len(spec.calendars) + len(spec.intervals) + len(spec.cron_expressions)
    for name, count in (("calendars", parts), ("skip", len(spec.skip))):
        if count > limits.MAX_SCHEDULE_PARTS:
            what = "calendars, intervals and cron strings" if name == "calendars" else "exclusions"
            limit = limits.MAX_SCHEDULE_PARTS
            raise BadSpec(name, f"and the rest are {count} {what}, above the limit of {limit}; use two schedules")
    calendars = [compiled(each, f"calendars[{index}]") for index, each in enumerate(spec.calendars)]
    intervals = [_interval(each, f"intervals[{index}]") for index, each in enumerate(spec.intervals)]
    zone_name = spec.time_zone_name
    for index, text in enumerate(spec.cron_expressions):
        found, zone_name = _cron(text, f"cron_expressions[{index}]", zone_name)
        if isinstance(found, Interval):
            intervals.append(found)
        else:
            calendars.append(found)
    skip = [compiled(each, f"skip[{index}]") for index, each in enumerate(spec.skip)]
    try:
        where = zone(zone_name, spec.time_zone_data)
    except BadZone as bad:
        raise BadSpec("time_zone_data" if spec.time_zone_data else "time_zone_name", str(bad)) from None
    return Times(where, calendars, intervals, skip)


def _cron(text: str, field: str, zone_name: str) -> tuple[Calendar | Interval, str]:
    """With the zone of the whole spec: the one that a cron string names is that of all."""
    try:
        read = cron.parse(text)
    except cron.BadCron as bad:
        raise BadSpec(field, str(bad)) from None
    if read.zone and zone_name and read.zone != zone_name:
        raise BadSpec(
            field,
            f"{text!r} is in {read.zone}, but the rest in {zone_name}; one schedule has one zone, use two schedules",
        )
    zone_name = read.zone or zone_name
    if read.interval is not None:
        return _interval(read.interval, field), zone_name
    assert read.calendar is not None
    try:
        return compiled(read.calendar, field), zone_name
    except BadSpec as bad:
        raise BadSpec(field, f"{text!r} {bad.sentence}") from None


def _interval(spec: ScheduleIntervalSpec, field: str) -> Interval:
    every, offset = spec.every, spec.offset
    if not limits.MIN_SCHEDULE_INTERVAL <= every <= limits.MAX_DURATION:
        raise BadSpec(f"{field}.every", f"is {every}; use 1 second to {limits.MAX_DURATION.days} days")
    if not timedelta(0) <= offset < every:
        raise BadSpec(f"{field}.offset", f"is {offset}; use 0 or more, and less than every ({every})")
    for name, value in (("every", every), ("offset", offset)):
        if value % _SECOND:
            raise BadSpec(f"{field}.{name}", f"is {value}; use whole seconds")
    return Interval(every // _SECOND, offset // _SECOND)
