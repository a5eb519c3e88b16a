"""Time zones: found by name or read from a zone file, and where their clocks are put forward or back.

Instants are whole seconds since 1970 in UTC; local times are naive datetimes.
"""

import io
import struct
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from stepwell.api import limits


class BadZone(ValueError):
    """The end of a sentence that begins with the field."""


@lru_cache(maxsize=256)
def zone(name: str, data: bytes = b"") -> tzinfo:
    """Raises BadZone. ``data`` is a zone file, which has precedence."""
    if len(data) > limits.MAX_TIME_ZONE_BYTES:
        raise BadZone(
            f"is {len(data)} bytes, above the limit of {limits.MAX_TIME_ZONE_BYTES}; use a single zone's file"
        )
    if data:
        try:
            return ZoneInfo.from_file(io.BytesIO(data), key=name or None)
        except (ValueError, LookupError, EOFError, OverflowError, struct.error):
            raise BadZone(
                "is no zone file (TZif); send the bytes of a file such as those in /usr/share/zoneinfo"
            ) from None
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadZone(f"is {name!r}, which this system does not have; {_nearest(name)}") from None


@lru_cache(maxsize=1)
def _known() -> dict[str, str]:
    return {each.lower(): each for each in available_timezones()}


def _nearest(name: str) -> str:
    known = _known()
    last = {each.rpartition("/")[2]: each for each in known}
    asked = name.strip().replace(" ", "_").lower()
    near = get_close_matches(asked, known, 3, 0.7)
    near += [last[each] for each in get_close_matches(asked.rpartition("/")[2], last, 2, 0.85)]
    names = list(dict.fromkeys(known[each] for each in near))[:3]
    return f"did you mean {' or '.join(names)}?" if names else "use a name such as Europe/Rome, or UTC"


def local(instant: int, where: tzinfo) -> datetime:
    """With zone and fold."""
    return datetime.fromtimestamp(instant, where)


def offset(instant: int, where: tzinfo) -> int:
    """Seconds that local time is ahead of UTC."""
    said = local(instant, where).utcoffset() or timedelta(0)
    return said // timedelta(seconds=1)


def change_in(after: int, until: int, where: tzinfo) -> int:
    """The first instant with another offset than ``after``, which ``until`` has: half of what is left, again and again.
    There is one change at most in a span as short as callers ask for."""
    before = offset(after, where)
    while until - after > 1:
        middle = (after + until) // 2
        if offset(middle, where) == before:
            after = middle
        else:
            until = middle
    return until


def instant_of(said: datetime, where: tzinfo) -> int:
    """When it is ``said`` o'clock: of two times the first; of a time that is left out, the end of the gap."""
    first = int(said.replace(tzinfo=where, fold=0).timestamp())
    if local(first, where).replace(tzinfo=None) == said.replace(fold=0):
        return first
    return change_in(int(said.replace(tzinfo=where, fold=1).timestamp()), first, where)


def end_of_repetition(second: datetime, where: tzinfo) -> datetime:
    """``second`` is a local time with fold 1, when clocks say again what they said before: the first local time that
    they have not said yet."""
    said = second.replace(tzinfo=None, fold=0)
    first = int(said.replace(tzinfo=where).timestamp())
    change = change_in(first, int(second.timestamp()), where)
    return datetime.fromtimestamp(change + offset(first, where), UTC).replace(tzinfo=None)
