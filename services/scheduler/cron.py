"""Cron strings of schedules, read into calendars and intervals (LC-25).

Five fields (minute, hour, day of month, month, day of week), six with the year behind, seven with the second before. In
each ``*``, numbers, names of months and days, ranges, steps and lists. Day of month AND day of week (LC-26), unlike
crontab where both are restricted, and unlike ``services/history/cron.py``, the cron string of a workflow's start: so no
library reads them as is meant here. Also ``@daily`` and its like, ``@every 90m``, ``@every 1h/10m`` with an offset;
``CRON_TZ=<zone>`` before, and a comment behind ``#``.
"""

import re
from datetime import timedelta
from typing import NamedTuple

from stepwell.api import limits
from stepwell.api.schedules import ScheduleCalendarSpec, ScheduleIntervalSpec, ScheduleRange

from .calendars import DAY_OF_MONTH, DAY_OF_WEEK, HOUR, MINUTE, MONTH, SECOND, YEAR, Bounds

_SHORTHANDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIVE = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)
_FIELDS = {5: _FIVE, 6: (*_FIVE, YEAR), 7: (SECOND, *_FIVE, YEAR)}
_MONTHS = "january february march april may june july august september october november december".split()
_DAYS = "sunday monday tuesday wednesday thursday friday saturday".split()
_NAMES = {MONTH.name: (_MONTHS, 1), DAY_OF_WEEK.name: (_DAYS, 0)}
_ZONE = re.compile(r"\s*(?:CRON_TZ|TZ)=(\S*)")
_EVERY = re.compile(r"@every\s+([^/\s]+)(?:/(\S+))?\s*")
_DURATION = re.compile(r"(?:\d{1,9}[dhms])+")
_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}


class BadCron(ValueError):
    """The end of a sentence that begins with the field: the text, the place in it, the way out."""


class Cron(NamedTuple):
    """``calendar`` or ``interval``, in ``zone`` if that is named."""

    calendar: ScheduleCalendarSpec | None = None
    interval: ScheduleIntervalSpec | None = None
    zone: str = ""


class _Word(NamedTuple):
    """A piece of the string, with the place of its first character, from 1."""

    text: str
    place: int

    def parted(self, by: str) -> list["_Word"]:
        words, place = [], self.place
        for part in self.text.split(by):
            words.append(_Word(part, place))
            place += len(part) + len(by)
        return words


def parse(text: str) -> Cron:
    """Raises BadCron. What the numbers mean together is for ``calendars.compiled`` to judge."""
    if len(text.encode(errors="replace")) > limits.MAX_CRON_BYTES:
        raise BadCron(f"is longer than {limits.MAX_CRON_BYTES} bytes; use calendars instead")
    said, _, comment = text.partition("#")
    zone = ""
    if (match := _ZONE.match(said)) is not None:
        zone = match[1]
        if not zone:
            raise _bad(text, match.start(1) + 1, "no time zone is named; write CRON_TZ=Europe/Rome")
        said = " " * match.end() + said[match.end() :]
    words = [_Word(match[0], match.start() + 1) for match in re.finditer(r"\S+", said)]
    if words and words[0].text.startswith("@every"):
        return Cron(interval=_every(text, said), zone=zone)
    if words and words[0].text.startswith("@"):
        return Cron(calendar=_shorthand(text, words, comment.strip()), zone=zone)
    if len(words) not in _FIELDS:
        raise _bad(
            text,
            words[-1].place if words else 1,
            f"{len(words)} fields; use 5 (minute, hour, day of month, month, day of week), 6 (with the year behind) or "
            "7 (with the second before)",
        )
    return Cron(calendar=_calendar(text, words, comment.strip()), zone=zone)


def _bad(text: str, place: int, sentence: str) -> BadCron:
    return BadCron(f"{text!r} cannot be read at character {place}: {sentence}")


def _shorthand(text: str, words: list[_Word], comment: str) -> ScheduleCalendarSpec:
    fields = _SHORTHANDS.get(words[0].text.lower())
    if fields is None or len(words) > 1:
        known = ", ".join(_SHORTHANDS)
        raise _bad(text, words[-1].place, f"{words[-1].text!r} is not known here; use {known} or @every 90m")
    return _calendar(text, [_Word(field, words[0].place) for field in fields.split()], comment)


def _calendar(text: str, words: list[_Word], comment: str) -> ScheduleCalendarSpec:
    parts = {
        part.name: tuple(_range(text, item, part) for item in word.parted(","))
        for part, word in zip(_FIELDS[len(words)], words, strict=True)
        if not (part is YEAR and word.text == "*")
    }
    return ScheduleCalendarSpec(comment=comment, **parts)


def _range(text: str, item: _Word, part: Bounds) -> ScheduleRange:
    body, *steps = item.parted("/")
    if len(steps) > 1:
        raise _bad(text, steps[1].place, "a second step; use one, such as */15")
    step = _step(text, steps[0]) if steps else 1
    if body.text == "*":
        return ScheduleRange(part.low, part.every_to, step)
    begin, *ends = body.parted("-")
    if len(ends) > 1:
        raise _bad(text, ends[1].place, "a second '-'; use one range, such as 1-5")
    start = _number(text, begin, part)
    if ends:
        end = _number(text, ends[0], part)
        if part is DAY_OF_WEEK and end == 0 and start > 0 and not ends[0].text.isdecimal():
            end = 7  # Saturday to Sunday
    else:
        end = max(part.every_to, start) if steps else start
    if end < start:
        raise _bad(text, body.place, f"{body.text} ends before it begins; write two ranges with a comma between")
    return ScheduleRange(start, end, step)


def _step(text: str, word: _Word) -> int:
    if not _is_number(word.text) or int(word.text) == 0:
        raise _bad(text, word.place, f"{word.text!r} is no step; use a number from 1, such as */15")
    return int(word.text)


def _number(text: str, word: _Word, part: Bounds) -> int:
    if _is_number(word.text):
        number = int(word.text)
        if not part.low <= number <= part.high:
            raise _bad(text, word.place, f"{_said(part)} {number} is not in {part.low} to {part.high}")
        return number
    names, first = _NAMES.get(part.name, ((), 0))
    if len(word.text) >= 3:
        for index, name in enumerate(names):
            if name.startswith(word.text.lower()):
                return first + index
    way = f"{part.low} to {part.high}" + (f" or a name such as {names[1][:3].upper()}" if names else "")
    raise _bad(text, word.place, f"{word.text!r} is no {_said(part)}; use {way}, ranges a-b, steps */n, or *")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 9


def _said(part: Bounds) -> str:
    return part.name.replace("_", " ")


def _every(text: str, said: str) -> ScheduleIntervalSpec:
    match = _EVERY.fullmatch(said, len(said) - len(said.lstrip()))
    if match is None:
        raise _bad(text, said.index("@") + 1, "use @every 90m, or @every 1h/10m with an offset")
    every = _duration(text, _Word(match[1], match.start(1) + 1))
    offset = _duration(text, _Word(match[2], match.start(2) + 1)) if match[2] else timedelta(0)
    return ScheduleIntervalSpec(every=every, offset=offset)


def _duration(text: str, word: _Word) -> timedelta:
    if _DURATION.fullmatch(word.text) is None:
        raise _bad(text, word.place, f"{word.text!r} is no duration; use such as 90s, 1h30m or 2d")
    total = timedelta(0)
    for count, unit in re.findall(r"(\d+)([dhms])", word.text):
        total += timedelta(**{_UNITS[unit]: int(count)})
        if total > limits.MAX_DURATION:
            raise _bad(text, word.place, f"{word.text} is over {limits.MAX_DURATION.days} days; use a shorter one")
    return total
