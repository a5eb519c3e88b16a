"""Which days and seconds of a day a calendar names (LC-25, LC-26). Pure sets; time zones are in ``zones``.

A set of days of one month is an int whose bit is the day, a set of seconds of a day an int of 86,400 bits. So that a
schedule of any size finds its next time with a few operations a month, however rare that is.
"""

from calendar import monthrange
from collections.abc import Sequence
from typing import NamedTuple

from stepwell.api import limits
from stepwell.api.schedules import ScheduleCalendarSpec, ScheduleRange

MIN_YEAR = 1970
MAX_YEAR = 2100
"""Nothing is searched for behind this year."""

DAY_SECONDS = 86_400
WHOLE_DAY = (1 << DAY_SECONDS) - 1
_ALL_HOURS = (1 << 24) - 1

_MAX_STEP = 2**53
"""What is stored, and read in any language."""


class Bounds(NamedTuple):
    """What one part of a calendar may say. ``every_to``: how far ``*`` goes, and a step without an end."""

    name: str
    low: int
    high: int
    every_to: int


SECOND = Bounds("second", 0, 59, 59)
MINUTE = Bounds("minute", 0, 59, 59)
HOUR = Bounds("hour", 0, 23, 23)
DAY_OF_MONTH = Bounds("day_of_month", 1, 31, 31)
MONTH = Bounds("month", 1, 12, 12)
DAY_OF_WEEK = Bounds("day_of_week", 0, 7, 6)
YEAR = Bounds("year", MIN_YEAR, MAX_YEAR, MAX_YEAR)
PARTS = (SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK, YEAR)


class BadSpec(ValueError):
    """``field`` is the path inside the spec; ``sentence`` goes on behind it, with the way out."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(f"{field} {sentence}")
        self.field = field
        self.sentence = sentence


class Calendar(NamedTuple):
    """``every_hour``: it names no hours, so it goes on by real time when clocks are put forward or back."""

    seconds: int
    day_of_month: int
    months: int
    weekdays: tuple[int, ...]
    """Sets of days of a month, by the weekday (Monday is 0) of its first."""
    years: frozenset[int] | None
    every_hour: bool

    def days(self, year: int, month: int) -> int:
        """The days of that month, as a set."""
        if not self.months >> month & 1 or (self.years is not None and year not in self.years):
            return 0
        first, length = monthrange(year, month)
        return self.day_of_month & self.weekdays[first] & ((2 << length) - 1)


def compiled(spec: ScheduleCalendarSpec, field: str) -> Calendar:
    """Raises BadSpec, also when no day of any year is as it says."""
    try:
        size = len(spec.comment.encode())
    except UnicodeEncodeError:
        raise BadSpec(f"{field}.comment", "contains a lone surrogate, which is not text; remove it") from None
    if size > limits.MAX_NOTE_BYTES:
        raise BadSpec(f"{field}.comment", f"is over {limits.MAX_NOTE_BYTES} bytes; use a shorter one")
    default = ScheduleCalendarSpec()
    second, minute, hour, day, month, weekday, year = (
        _numbers(getattr(spec, part.name) or getattr(default, part.name), part, f"{field}.{part.name}")
        for part in PARTS
    )
    hours = sum(1 << number for number in hour)
    calendar = Calendar(
        _seconds_of_day(second, minute, hour),
        sum(1 << number for number in day),
        sum(1 << number for number in month),
        tuple(_days_by_weekday({number % 7 for number in weekday}, first) for first in range(7)),
        year if spec.year else None,
        hours == _ALL_HOURS,
    )
    if not any(calendar.days(*of) for of in _months(calendar)):
        raise BadSpec(field, "never comes: there is no such day in the months and years that it names; change the day")
    return calendar


def _months(calendar: Calendar) -> list[tuple[int, int]]:
    years = range(MIN_YEAR, MAX_YEAR + 1) if calendar.years is None else sorted(calendar.years)
    return [(year, month) for year in years for month in range(1, 13)]


def _numbers(ranges: Sequence[ScheduleRange], part: Bounds, field: str) -> frozenset[int]:
    if len(ranges) > limits.MAX_CALENDAR_RANGES:
        raise BadSpec(field, f"has {len(ranges)} ranges, above the limit of {limits.MAX_CALENDAR_RANGES}; join some")
    numbers: set[int] = set()
    for index, said in enumerate(ranges):
        end = said.end or said.start
        for name, value in (("start", said.start), ("end", end)):
            if not part.low <= value <= part.high:
                raise BadSpec(f"{field}[{index}].{name}", f"is {value}; use {part.low} to {part.high}")
        if end < said.start:
            raise BadSpec(f"{field}[{index}]", f"ends at {end}, before it begins; make it two ranges")
        if said.step < 0:
            raise BadSpec(f"{field}[{index}].step", f"is {said.step}; use 1 or more")
        if said.step > _MAX_STEP:
            raise BadSpec(f"{field}[{index}].step", f"is over {_MAX_STEP}; use 1 to {part.high}")
        numbers.update(range(said.start, end + 1, said.step or 1))
    return frozenset(numbers)


def _days_by_weekday(weekdays: set[int], first: int) -> int:
    """``weekdays`` with Sunday as 0, ``first`` with Monday as 0, as monthrange says it."""
    return sum(1 << day for day in range(1, 32) if (first + day) % 7 in weekdays)


def _seconds_of_day(seconds: frozenset[int], minutes: frozenset[int], hours: frozenset[int]) -> int:
    of_minute = sum(1 << second for second in seconds)
    of_hour = sum(of_minute << 60 * minute for minute in minutes)
    return sum(of_hour << 3_600 * hour for hour in hours)


def lowest(numbers: int) -> int:
    """The smallest member of a set that is not empty."""
    return (numbers & -numbers).bit_length() - 1


def repeated(every: int) -> int:
    """The set of 0, ``every``, twice that and so on, as far as a day."""
    numbers, length = 1, every
    while length < DAY_SECONDS:
        numbers |= numbers << length
        length *= 2
    return numbers & WHOLE_DAY
