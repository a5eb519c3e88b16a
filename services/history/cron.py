"""Cron schedules of workflows (LC-24): what they may say, and when the next run is due.

Five fields, in UTC unless ``CRON_TZ=<zone>`` stands before them; ``@hourly`` and its like; ``@every 90m``. Daily means
once a day in any zone: an hour that is repeated counts once (the first), a missing one right behind the gap.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from stepwell.api import limits

MAX_BYTES = 1_000

_NAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = re.compile(r"@every\s+((?:\d+h)?(?:\d+m)?(?:\d+s)?)")
_PARTS = re.compile(r"(\d+)([hms])")
_UNITS = {"h": timedelta(hours=1), "m": timedelta(minutes=1), "s": timedelta(seconds=1)}
_JUST_BEFORE = timedelta(microseconds=1)
_ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)


class BadCron(ValueError):
    """The sentence for people, without its end."""


class Schedule(NamedTuple):
    """``every``, or ``fields`` in ``zone``."""

    fields: str = ""
    zone: tzinfo = UTC
    every: timedelta = timedelta(0)

    def after(self, scheduled: datetime, now: datetime) -> datetime | None:
        """The first time behind ``scheduled`` that is not before ``now``: those that were missed are left out. None
        when there is none."""
        if self.every:
            missed = max((now - scheduled) // self.every, 0)
            time = scheduled + missed * self.every
            return time if time >= now and missed else time + self.every
        behind = max(scheduled, now - _JUST_BEFORE).astimezone(self.zone)
        for local in CronSim(self.fields, behind):
            time = local.astimezone(UTC)
            if time > behind:  # the library reckons in local time: within a repeated hour it says the first again
                return time
        return None


@lru_cache(maxsize=256)
def parse(text: str) -> Schedule:
    """Raises BadCron."""
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise BadCron(f"is longer than {MAX_BYTES} bytes")
    words = text.split()
    zone: tzinfo = UTC
    if words and words[0].startswith(("CRON_TZ=", "TZ=")):
        zone = _zone(words.pop(0).partition("=")[2])
    said = " ".join(words)
    if said.startswith("@every"):
        return Schedule(every=_every(said))
    fields = _NAMES.get(said.lower(), said)
    if len(fields.split()) != 5:
        raise BadCron("has not five fields (minute, hour, day of month, month, day of week)")
    schedule = Schedule(fields, zone)
    try:
        never = schedule.after(_ANY_TIME, _ANY_TIME) is None
    except CronSimError as error:
        if not _reads_apart(fields):
            raise BadCron(f"cannot be read: {error}") from None
        never = True
    if never:
        raise BadCron("never comes: no month that it names has such a day (the last day of February is '0 0 L 2 *')")
    return schedule


def _reads_apart(fields: str) -> bool:
    """Whether day and month can be read each without the other: then it is the two together that never come."""
    minute, hour, day, month, weekday = fields.split()
    try:
        for apart in ((day, "*"), ("*", month)):
            CronSim(" ".join((minute, hour, *apart, weekday)), _ANY_TIME)
    except CronSimError:
        return False
    return True


def next_time(text: str, scheduled: datetime, now: datetime) -> datetime | None:
    """When the run behind the one that was due at ``scheduled`` is due. Raises BadCron."""
    return parse(text).after(scheduled, now)


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadCron(f"names the time zone {name!r}, which this system does not have") from None


def _every(said: str) -> timedelta:
    match = _EVERY.fullmatch(said)
    every = timedelta(0)
    if match is not None:
        for count, unit in _PARTS.findall(match[1]):
            if len(count) > 9:
                raise BadCron(f"is every {count}{unit}, which is over {limits.MAX_DURATION.days} days")
            every += int(count) * _UNITS[unit]
    if not timedelta(seconds=1) <= every <= limits.MAX_DURATION:
        raise BadCron("needs a time behind @every, from 1s to ten years, such as 90s or 1h30m")
    return every
