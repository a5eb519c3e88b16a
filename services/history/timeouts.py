"""Timeouts of activities: checked, filled in and capped (AC-03)."""

from datetime import datetime, timedelta

import msgspec
from stepwell.api import limits
from stepwell.api.commands import ScheduleActivityTask

_ZERO = timedelta(0)


class BadTimeout(ValueError):
    """The sentence for people names the field, the limit and the way out."""


class ActivityTimeouts(msgspec.Struct, frozen=True, gc=False):
    schedule_to_close: timedelta | None
    schedule_to_start: timedelta | None
    start_to_close: timedelta | None
    heartbeat: timedelta | None


def check_duration(name: str, value: timedelta | None, *, may_be_zero: bool = False) -> None:
    """Raises BadTimeout unless ``value`` is None, or above zero and at most ten years."""
    if value is None or (_ZERO < value <= limits.MAX_DURATION) or (may_be_zero and value == _ZERO):
        return
    least = "zero or more" if may_be_zero else "above zero"
    raise BadTimeout(f"{name} is {_for_people(value)}; it must be {least} and at most {limits.MAX_DURATION.days} days")


def _for_people(value: timedelta) -> str:
    """``90 days`` when that is exact, or ``1.5 s``; never a power of ten."""
    if abs(value) >= timedelta(days=2):
        rest = value % timedelta(days=1)
        return f"{value.days} days" if not rest else f"{value}"
    return f"{value.total_seconds():.6f}".rstrip("0").rstrip(".") + " s"


def run_timeout(start_time: datetime, run_expires: datetime | None) -> timedelta | None:
    """How long the run may take in all, by its own or the execution's timeout."""
    return None if run_expires is None else run_expires - start_time


def fill_in(command: ScheduleActivityTask, run_timeout: timedelta | None) -> ActivityTimeouts:
    """What the activity's timeouts really are; None is no limit.

    Raises BadTimeout for one out of range, or when neither start-to-close nor schedule-to-close is there.
    """
    return filled_in(
        command.activity_id,
        ActivityTimeouts(
            schedule_to_close=command.schedule_to_close_timeout,
            schedule_to_start=command.schedule_to_start_timeout,
            start_to_close=command.start_to_close_timeout,
            heartbeat=command.heartbeat_timeout,
        ),
        run_timeout,
        command.activity_type,
    )


def filled_in(
    activity_id: str, asked: ActivityTimeouts, run_timeout: timedelta | None, activity_type: str = ""
) -> ActivityTimeouts:
    """As :func:`fill_in`."""
    try:
        _check_all(asked)
    except BadTimeout as bad:
        what = f"{activity_type!r} (id {activity_id!r})" if activity_type else repr(activity_id)
        raise BadTimeout(f"activity {what}: {bad}") from None
    if asked.start_to_close is None and asked.schedule_to_close is None:
        raise BadTimeout(
            f"activity {activity_id!r} has neither start_to_close_timeout nor schedule_to_close_timeout; "
            "set one of them."
        )
    total = _shorter(asked.schedule_to_close, run_timeout)
    if total is None and asked.heartbeat is None:
        return asked  # which nothing shortens
    start_to_close = _shorter(asked.start_to_close, total)
    return ActivityTimeouts(
        schedule_to_close=total,
        schedule_to_start=_shorter(asked.schedule_to_start, total),
        start_to_close=start_to_close,
        heartbeat=None if asked.heartbeat is None else _shorter(asked.heartbeat, start_to_close),
    )


def _check_all(asked: ActivityTimeouts) -> None:
    if asked.schedule_to_close is not None:
        check_duration("schedule_to_close_timeout", asked.schedule_to_close)
    if asked.schedule_to_start is not None:
        check_duration("schedule_to_start_timeout", asked.schedule_to_start)
    if asked.start_to_close is not None:
        check_duration("start_to_close_timeout", asked.start_to_close)
    if asked.heartbeat is not None:
        check_duration("heartbeat_timeout", asked.heartbeat)


def _shorter(one: timedelta | None, other: timedelta | None) -> timedelta | None:
    if one is None:
        return other
    if other is None or one <= other:
        return one
    return other
