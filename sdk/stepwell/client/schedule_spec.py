"""When a schedule acts, as its author writes it (LC-25, LC-26)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from ..api import schedules as wire

T = TypeVar("T")


@dataclass(frozen=True)
class ScheduleRange:
    """``start``, ``start + step`` and so on up to ``end``, which counts."""

    start: int
    end: int = 0
    """0: ``start`` alone."""
    step: int = 0
    """0: 1."""


@dataclass
class ScheduleCalendarSpec:
    """Times at which everything fits: day of month AND day of week. Hours, minutes and seconds are 0 unless they are
    given, the rest is any.

    Clocks that are put forward or back: with hours given, what is missing that day is right after the gap, and what
    comes twice is once, the first. With all 24 hours it goes on by real time.
    """

    second: Sequence[ScheduleRange] = (ScheduleRange(0),)
    minute: Sequence[ScheduleRange] = (ScheduleRange(0),)
    hour: Sequence[ScheduleRange] = (ScheduleRange(0),)
    day_of_month: Sequence[ScheduleRange] = (ScheduleRange(1, 31),)
    month: Sequence[ScheduleRange] = (ScheduleRange(1, 12),)
    year: Sequence[ScheduleRange] = ()
    """Any, when empty."""
    day_of_week: Sequence[ScheduleRange] = (ScheduleRange(0, 6),)
    """Sunday is 0, and 7."""
    comment: str | None = None

    def _to_record(self) -> wire.ScheduleCalendarSpec:
        return wire.ScheduleCalendarSpec(
            second=_ranges("second", self.second),
            minute=_ranges("minute", self.minute),
            hour=_ranges("hour", self.hour),
            day_of_month=_ranges("day_of_month", self.day_of_month),
            month=_ranges("month", self.month),
            year=_ranges("year", self.year),
            day_of_week=_ranges("day_of_week", self.day_of_week),
            comment=self.comment or "",
        )

    @classmethod
    def _from_record(cls, record: wire.ScheduleCalendarSpec) -> "ScheduleCalendarSpec":
        return cls(
            second=_read(record.second),
            minute=_read(record.minute),
            hour=_read(record.hour),
            day_of_month=_read(record.day_of_month),
            month=_read(record.month),
            year=_read(record.year),
            day_of_week=_read(record.day_of_week),
            comment=record.comment or None,
        )


@dataclass
class ScheduleIntervalSpec:
    """Every so often, counted from 1970 in UTC, plus ``offset``. Whole seconds, from one second to ten years."""

    every: timedelta
    offset: timedelta | None = None

    def _to_record(self) -> wire.ScheduleIntervalSpec:
        return wire.ScheduleIntervalSpec(every=self.every, offset=timedelta(0) if self.offset is None else self.offset)

    @classmethod
    def _from_record(cls, record: wire.ScheduleIntervalSpec) -> "ScheduleIntervalSpec":
        return cls(every=record.every, offset=record.offset or None)


@dataclass
class ScheduleSpec:
    """All times that calendars, intervals or cron strings name, without those that ``skip`` names. When nothing is
    named the schedule acts only when it is triggered."""

    calendars: Sequence[ScheduleCalendarSpec] = field(default_factory=list)
    intervals: Sequence[ScheduleIntervalSpec] = field(default_factory=list)
    cron_expressions: Sequence[str] = field(default_factory=list)
    """``30 9 * * MON-FRI``: minute, hour, day of month, month, day of week; six fields have the year behind, seven the
    second before as well. ``@daily`` and the like, ``@every 90m``, ``@every 1h/10m`` with an offset.
    ``CRON_TZ=Europe/Rome`` before it sets the zone of the whole spec, a comment may be behind ``#``."""
    skip: Sequence[ScheduleCalendarSpec] = field(default_factory=list)
    start_at: datetime | None = None
    """Nothing before; this time counts."""
    end_at: datetime | None = None
    """Nothing after; this time counts."""
    jitter: timedelta | None = None
    """Each time is put off by something below this, and below the time to the next."""
    time_zone_name: str | None = None
    """Such as ``Europe/Rome``; UTC when it is not given."""
    time_zone_data: bytes | None = None
    """A zone file (TZif) to be used instead of what the server has under the name."""

    def _to_record(self) -> wire.ScheduleSpec:
        return wire.ScheduleSpec(
            calendars=tuple(each._to_record() for each in listed("calendars", self.calendars, ScheduleCalendarSpec)),
            intervals=tuple(each._to_record() for each in listed("intervals", self.intervals, ScheduleIntervalSpec)),
            cron_expressions=_texts(self.cron_expressions),
            skip=tuple(each._to_record() for each in listed("skip", self.skip, ScheduleCalendarSpec)),
            start_at=self.start_at,
            end_at=self.end_at,
            jitter=timedelta(0) if self.jitter is None else self.jitter,
            time_zone_name=self.time_zone_name or "",
            time_zone_data=self.time_zone_data or b"",
        )

    @classmethod
    def _from_record(cls, record: wire.ScheduleSpec) -> "ScheduleSpec":
        return cls(
            calendars=[ScheduleCalendarSpec._from_record(each) for each in record.calendars],
            intervals=[ScheduleIntervalSpec._from_record(each) for each in record.intervals],
            cron_expressions=list(record.cron_expressions),
            skip=[ScheduleCalendarSpec._from_record(each) for each in record.skip],
            start_at=record.start_at,
            end_at=record.end_at,
            jitter=record.jitter or None,
            time_zone_name=record.time_zone_name or None,
            time_zone_data=record.time_zone_data or None,
        )


def _ranges(field: str, said: Sequence[ScheduleRange]) -> tuple[wire.ScheduleRange, ...]:
    return tuple(wire.ScheduleRange(each.start, each.end, each.step) for each in listed(field, said, ScheduleRange))


def listed(field: str, said: object, kind: type[T]) -> tuple[T, ...]:
    """Raises TypeError with the field for what people write that check no types: one of them without its
    list, a number, a string."""
    items = tuple(said) if isinstance(said, Iterable) else ()
    found = tuple(each for each in items if isinstance(each, kind))
    if not isinstance(said, Iterable) or len(found) < len(items):
        raise TypeError(f"{field} is a list of {kind.__name__}, such as [{kind.__name__}(…)], not {said!r}")
    return found


def _read(ranges: Sequence[wire.ScheduleRange]) -> tuple[ScheduleRange, ...]:
    return tuple(ScheduleRange(each.start, each.end, each.step) for each in ranges)


def _texts(said: Sequence[str]) -> tuple[str, ...]:
    if isinstance(said, str):
        raise TypeError("cron_expressions is a list of cron strings; put the string into a list")
    return tuple(said)
