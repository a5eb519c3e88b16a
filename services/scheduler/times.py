"""The next time of a spec: calendars and intervals minus exclusions, in a time zone (LC-25, LC-26).

What clocks that are put forward or back do is design section 9:

- A calendar that names hours is by what clocks say: what they say twice is once, the first; what they leave out is at
  the end of the gap.
- One that names no hours (every 15 minutes), like an interval, goes on by real time: it is in both of the repeated
  hours and has nothing to make up for behind a gap.
- An exclusion holds for what clocks say at a time, and for what they would have said in a gap.
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from math import gcd
from typing import NamedTuple

from .calendars import DAY_SECONDS, MAX_YEAR, WHOLE_DAY, Calendar, lowest, repeated
from .zones import change_in, end_of_repetition, instant_of, local, offset

HORIZON = int(datetime(MAX_YEAR + 1, 1, 1, tzinfo=UTC).timestamp())
_FIRST_SPAN = 2 * DAY_SECONDS
_SPAN_GROWTH = 4
MOST_LOOKS = 60_000
"""Days, and intervals on them, that a search of its own looks at: more than the days from 1970 to 2100. Only a spec of
many parts that are excluded nearly always needs more."""

_LOOKS_OF_A_PIECE = 8
"""It is made of whole sets."""

_KEPT_SETS = 16
_KEPT_MONTHS = 8
_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)


class Looks:
    """What is left of a search, or of several that share it. ``reached``: up to there, that one included, the newest
    search has seen that there is nothing; where it has run out, another may go on from there."""

    def __init__(self, most: int = MOST_LOOKS) -> None:
        self._left = most
        self.reached = -1

    def spent(self, count: int = 1) -> bool:
        """True when nothing is left."""
        self._left -= count
        return self._left < 0

    @property
    def ran_out(self) -> bool:
        return self._left < 0


class Piece(NamedTuple):
    """Times of one day, or less of it, as a set: bit n is ``begin + n``."""

    begin: int
    end: int
    """Exclusive."""
    times: int


class Interval:
    """Every so many seconds since 1970."""

    def __init__(self, every: int, phase: int) -> None:
        self.every = every
        self.phase = phase
        self._of_day = repeated(every) if every <= DAY_SECONDS else 0

    def seconds(self, midnight: int) -> int:
        """Its seconds of the day that began then."""
        return self._of_day << (self.phase - midnight) % self.every & WHOLE_DAY

    def after(self, instant: int) -> int:
        return instant + self.every - (instant - self.phase) % self.every


class Group:
    """Calendars that go by the same clock. Unions of their seconds of a day are kept: most days are alike."""

    def __init__(self, calendars: Sequence[Calendar]) -> None:
        self._calendars = tuple(calendars)
        self._unions: dict[tuple[int, ...], int] = {}
        self._months: dict[tuple[int, int], tuple[list[int], dict[int, int]]] = {}

    def __bool__(self) -> bool:
        return bool(self._calendars)

    def days(self, year: int, month: int) -> int:
        days = 0
        for calendar in self._calendars:
            days |= calendar.days(year, month)
        return days

    def seconds(self, day: date) -> int:
        """The set of its seconds of that day."""
        if not self._calendars:
            return 0
        month = self._months.get((day.year, day.month))
        if month is None:
            if len(self._months) >= _KEPT_MONTHS:
                self._months.clear()
            month = [calendar.days(day.year, day.month) for calendar in self._calendars], {}
            self._months[day.year, day.month] = month
        seconds = month[1].get(day.day)
        if seconds is None:
            seconds = month[1][day.day] = self._union(month[0], day.day)
        return seconds

    def _union(self, days: Sequence[int], day: int) -> int:
        those = tuple([index for index, of_month in enumerate(days) if of_month >> day & 1])
        union = self._unions.get(those)
        if union is None:
            union = 0
            for index in those:
                union |= self._calendars[index].seconds
            if len(self._unions) >= _KEPT_SETS:
                self._unions.clear()
            self._unions[those] = union
        return union


class Times:
    """All times of a spec, in order, as instants."""

    def __init__(
        self, zone: tzinfo, calendars: Sequence[Calendar], intervals: Sequence[Interval], skip: Sequence[Calendar]
    ) -> None:
        self._zone = zone
        self._by_clock = Group([calendar for calendar in calendars if not calendar.every_hour])
        self._every_hour = Group([calendar for calendar in calendars if calendar.every_hour])
        self._short = tuple(each for each in intervals if each.every <= DAY_SECONDS)
        self._long = tuple(each for each in intervals if each.every > DAY_SECONDS)
        self._skip = Group(skip)
        of_any_day = [gcd(each.every, DAY_SECONDS) for each in self._short]
        self._of_any_day = [Interval(every, each.phase) for every, each in zip(of_any_day, self._short, strict=True)]
        self._possible: dict[tuple[int, int], bool] = {}

    def after(self, instant: int, looks: Looks | None = None) -> int | None:
        """The first behind ``instant``; None when there is none before 2101, or ``looks`` ran out. All that is named is
        looked at over spans that grow, so that what is far away, or excluded for ever, costs nothing while something
        else is near."""
        looks, span = looks or Looks(), _FIRST_SPAN
        while instant < HORIZON - 1:
            looks.reached = instant
            until = min(instant + span, HORIZON - 1)
            found = [self._after_by_clock(instant, until, looks), self._after_in_real_time(instant, until, looks)]
            found += [self._after_of_long(interval, instant, until, looks) for interval in self._long]
            near = [each for each in found if each is not None and each <= until]
            if looks.ran_out:
                return None
            if near:
                return min(near)
            instant, span = until, span * _SPAN_GROWTH
        looks.reached = max(looks.reached, HORIZON - 1)
        return None

    def pieces(self, after: int, until: int, looks: Looks) -> Iterator[Piece]:
        """All times behind ``after`` up to ``until``, that one included, a day at a time; it ends early when ``looks``
        run out."""
        at, until = after + 1, min(until, HORIZON - 1)
        while at <= until and not looks.spent(_LOOKS_OF_A_PIECE):
            piece = self._piece(at, until, looks)
            yield piece
            at = piece.end
            if not piece.times:
                following = self.after(at - 1, looks)
                if following is None:
                    return
                at = following

    def _piece(self, at: int, until: int, looks: Looks) -> Piece:
        said = local(at, self._zone)
        second = _second_of(said)
        end = min(at + DAY_SECONDS - second, until + 1)
        if offset(end - 1, self._zone) != offset(at, self._zone):
            end = change_in(at, end - 1, self._zone)
        day = said.date()
        seconds = self._real_seconds(day, at - second, looks) | self._said_on(said)
        times = seconds >> second
        if self._by_clock and self._is_in_gap(at):
            times |= 1
        for interval in self._long:
            next_one = interval.after(at - 1)
            if next_one < end and not self._skips(local(next_one, self._zone).replace(tzinfo=None)):
                times |= 1 << next_one - at
        return Piece(at, end, times & ((1 << end - at) - 1))

    def _said_on(self, said: datetime) -> int:
        """The seconds of that day by clocks; without those that clocks say again from ``said`` on."""
        if not self._by_clock:
            return 0
        seconds = self._by_clock.seconds(said.date()) & ~self._skip.seconds(said.date())
        if said.fold and seconds:
            fresh = end_of_repetition(said, self._zone)
            first = DAY_SECONDS if fresh.date() > said.date() else _second_of(fresh)
            seconds = seconds >> first << first
        return seconds

    def _is_in_gap(self, at: int) -> bool:
        """Whether clocks were put forward right before, over a time that is made up for now."""
        if offset(at - 1, self._zone) >= offset(at, self._zone):
            return False
        said = (local(at - 1, self._zone) + _SECOND).replace(tzinfo=None, fold=0)
        shown = local(at, self._zone).replace(tzinfo=None, fold=0)
        if self._skips(shown):
            return False
        while said < shown:
            following = min(datetime.combine(said.date() + _DAY, time.min), shown)
            seconds = self._by_clock.seconds(said.date()) & ~self._skip.seconds(said.date())
            length = (following - said) // _SECOND
            if seconds >> _second_of(said) & ((1 << length) - 1):
                return True
            said = following
        return False

    # ---- what clocks say -------------------------------------------------------------------------------------------

    def _after_by_clock(self, instant: int, until: int, looks: Looks) -> int | None:
        if not self._by_clock:
            return None
        last = local(until, self._zone).date() + timedelta(days=1)
        now = local(instant, self._zone)
        said = end_of_repetition(now, self._zone) if now.fold else now.replace(tzinfo=None) + _SECOND
        while True:
            found = self._said_from(said, last, looks)
            if found is None:
                return None
            time = instant_of(found, self._zone)
            shown = local(time, self._zone).replace(tzinfo=None, fold=0)
            if shown == found or not self._skips(shown):
                return time
            said = shown  # in a gap whose end is excluded

    def _said_from(self, said: datetime, last: date, looks: Looks) -> datetime | None:
        second = _second_of(said)
        for day in _days_from(self._by_clock, said.date(), last):
            seconds = self._by_clock.seconds(day) & ~self._skip.seconds(day)
            if day == said.date():
                seconds = seconds >> second << second
            if seconds:
                return datetime.combine(day, time.min) + lowest(seconds) * _SECOND
            if looks.spent():
                break
        return None

    def _skips(self, said: datetime) -> bool:
        return bool(self._skip.seconds(said.date()) >> _second_of(said) & 1)

    # ---- real time -------------------------------------------------------------------------------------------------

    def _after_in_real_time(self, instant: int, until: int, looks: Looks) -> int | None:
        if not self._every_hour and not self._short:
            return None
        at = instant + 1
        while at <= until and not looks.spent():
            said = local(at, self._zone)
            second = _second_of(said)
            seconds = self._real_seconds(said.date(), at - second, looks) >> second
            reached = at + (lowest(seconds) if seconds else DAY_SECONDS - second)
            if offset(reached, self._zone) != offset(at, self._zone):
                at = change_in(at, reached, self._zone)
            elif seconds:
                return reached
            elif (following := self._day_behind(said.date(), until)) is None:
                return None
            else:
                at = max(reached, instant_of(datetime.combine(following, time.min), self._zone))
        return None

    def _real_seconds(self, day: date, midnight: int, looks: Looks) -> int:
        """As long as the offset is the one with which the day began at ``midnight``."""
        skipped = self._skip.seconds(day)
        if skipped == WHOLE_DAY:
            return 0
        seconds = self._every_hour.seconds(day)
        if not skipped or self._leaves(skipped, midnight):
            looks.spent(len(self._short))
            for interval in self._short:
                seconds |= interval.seconds(midnight)
        return seconds & ~skipped

    def _leaves(self, skipped: int, midnight: int) -> bool:
        """Whether such a day can have a time of an interval, whichever day it is: else those of a century would be
        looked through."""
        key = (skipped, midnight % DAY_SECONDS)
        possible = self._possible.get(key)
        if possible is None:
            possible = any(interval.seconds(midnight) & ~skipped for interval in self._of_any_day)
            if len(self._possible) >= _KEPT_SETS:
                self._possible.clear()
            self._possible[key] = possible
        return possible

    def _day_behind(self, day: date, until: int) -> date | None:
        """The next that can have something."""
        following = day + timedelta(days=1)
        if self._short:
            return following
        return next(_days_from(self._every_hour, following, local(until, self._zone).date()), None)

    def _after_of_long(self, interval: Interval, instant: int, until: int, looks: Looks) -> int | None:
        at = interval.after(instant)
        while at <= until and not looks.spent():
            if not self._skip or not self._skips(local(at, self._zone).replace(tzinfo=None)):
                return at
            at += interval.every
        return None


def _days_from(group: Group, day: date, last: date) -> Iterator[date]:
    days = group.days(day.year, day.month) >> day.day << day.day
    year, month = day.year, day.month
    while (year, month) <= (last.year, last.month):
        while days:
            yield date(year, month, lowest(days))
            days &= days - 1
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        days = group.days(year, month)


def _second_of(said: datetime) -> int:
    return said.hour * 3_600 + said.minute * 60 + said.second
