"""When a schedule acts: calendars, intervals, cron strings, exclusions, zones.

Theirs compile cron strings, and the older calendars of text, into structured calendars and intervals when they are
given. Ours keep cron strings as they were said; who looks from here is shown them as theirs show them.
"""

from collections.abc import Iterable
from datetime import timedelta

import msgspec
from google.protobuf.duration_pb2 import Duration
from stepwell.api.errors import InvalidArgument
from stepwell.api.schedules import ScheduleCalendarSpec, ScheduleIntervalSpec, ScheduleRange, ScheduleSpec
from temporalio.api.schedule.v1 import message_pb2 as pb

from ..scheduler import cron
from .times import duration, optional_duration, time_of, timedelta_of, timestamp

_PARTS = ("second", "minute", "hour", "day_of_month", "month", "day_of_week", "year")
"""In the order of a cron string with seven fields."""

_UNSAID = ScheduleCalendarSpec()
_ZERO = timedelta(0)


def spec_of(value: pb.ScheduleSpec) -> ScheduleSpec:
    """Raises InvalidArgument for a calendar of text that cannot be read."""
    texts = [_calendar_of_text(said, f"calendar[{index}]") for index, said in enumerate(value.calendar)]
    skipped = [
        _calendar_of_text(said, f"exclude_calendar[{index}]") for index, said in enumerate(value.exclude_calendar)
    ]
    return ScheduleSpec(
        calendars=(*map(_calendar_of, value.structured_calendar), *texts),
        intervals=tuple([_interval_of(said) for said in value.interval]),
        cron_expressions=tuple(value.cron_string),
        skip=(*map(_calendar_of, value.exclude_structured_calendar), *skipped),
        start_at=time_of(value.start_time) if value.HasField("start_time") else None,
        end_at=time_of(value.end_time) if value.HasField("end_time") else None,
        jitter=timedelta_of(value.jitter) or _ZERO,
        time_zone_name=value.timezone_name,
        time_zone_data=value.timezone_data,
    )


def _calendar_of(value: pb.StructuredCalendarSpec) -> ScheduleCalendarSpec:
    said = {part: tuple([_range_of(one) for one in getattr(value, part)]) for part in _PARTS}
    return ScheduleCalendarSpec(**said, comment=value.comment)


def _range_of(value: pb.Range) -> ScheduleRange:
    """Theirs: an end before the start is the start."""
    return ScheduleRange(value.start, max(value.start, value.end), value.step)


def _calendar_of_text(value: pb.CalendarSpec, field: str) -> ScheduleCalendarSpec:
    """Each part is as in a cron string; what is left out is 0 of a time, and every day, month and year."""
    field = f"schedule.spec.{field}"
    fields = ["".join(getattr(value, part).split()) for part in _PARTS]
    unsaid = ["0"] * 3 + ["*"] * 4
    try:
        read = cron.parse(" ".join(said or default for said, default in zip(fields, unsaid, strict=True)))
    except cron.BadCron as bad:
        raise InvalidArgument(f"{field} as a cron string {bad}", field=field) from None
    if read.calendar is None or read.zone:
        raise InvalidArgument(f"{field} names a time zone; give it as timezone_name", field=field)
    return msgspec.structs.replace(read.calendar, comment=value.comment)


def _interval_of(value: pb.IntervalSpec) -> ScheduleIntervalSpec:
    return ScheduleIntervalSpec(every=_whole_seconds(value.interval), offset=_whole_seconds(value.phase))


def _whole_seconds(value: Duration) -> timedelta:
    """Theirs leave out what is less."""
    said = timedelta_of(value) or _ZERO
    return timedelta(days=said.days, seconds=said.seconds)


def to_spec(spec: ScheduleSpec) -> pb.ScheduleSpec:
    read = [cron.parse(text) for text in spec.cron_expressions]
    calendars = [*spec.calendars, *[one.calendar for one in read if one.calendar is not None]]
    intervals = [*spec.intervals, *[one.interval for one in read if one.interval is not None]]
    zones = [spec.time_zone_name, *[one.zone for one in read]]
    return pb.ScheduleSpec(
        structured_calendar=[_to_calendar(calendar) for calendar in calendars],
        interval=[
            pb.IntervalSpec(interval=duration(one.every), phase=optional_duration(one.offset or None))
            for one in intervals
        ],
        exclude_structured_calendar=[_to_calendar(calendar) for calendar in spec.skip],
        start_time=None if spec.start_at is None else timestamp(spec.start_at),
        end_time=None if spec.end_at is None else timestamp(spec.end_at),
        jitter=optional_duration(spec.jitter or None),
        timezone_name=next((zone for zone in zones if zone), ""),
        timezone_data=spec.time_zone_data,
    )


def _to_calendar(calendar: ScheduleCalendarSpec) -> pb.StructuredCalendarSpec:
    said = {part: _to_ranges(getattr(calendar, part) or getattr(_UNSAID, part)) for part in _PARTS}
    return pb.StructuredCalendarSpec(**said, comment=calendar.comment)


def _to_ranges(ranges: Iterable[ScheduleRange]) -> list[pb.Range]:
    return [pb.Range(start=one.start, end=one.end or one.start, step=one.step or 1) for one in ranges]
