"""How far the holder of a partition is: what to read next, what was begun, up to where everything is done. Pure.

Theory of operation. Rows are put at any place from now on, so what is read behind the clock is complete but for puts
that were slow, or of a writer whose clock is: they appear behind what was read. So each reading goes back a little,
every tenth second one goes back a minute, every minute one goes back six and a half, though not behind where this
holder began; and a writer whose put took longer than five seconds puts another row (``buckets.must_arm_again``). What
was begun already is told by its sort key and time of arming: a deadline that is armed again for the very same time is
new.

The cursor is what the next holder begins at. It stays before the oldest row that is not done, so a holder that dies at
any time leaves nothing behind it that nobody will fire. It never waits for long: a row that keeps failing is put off,
one without a write is given up when it is no longer young.
"""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from . import buckets
from .buckets import TimerRow

READ_BACK_MS = 60_000
"""How slowly rows may appear."""

OVERLAP_MS = 3_000
SKEW_MS = 390_000
"""By how much more a writer's clock may be slow: clocks are at most five minutes apart, and from one look back to the
next it is a minute. Also where a new holder begins before the cursor: whoever had it may have died just before looking,
or may have had a fast clock itself."""

_LOOKS_BACK = ((10_000, READ_BACK_MS), (60_000, SKEW_MS))
"""Every so many milliseconds, so far."""

_Begun = tuple[str, int]


class Span(NamedTuple):
    """A part of one bucket, up to but not with ``to_ms``."""

    bucket_ms: int
    from_ms: int
    to_ms: int


class Progress:
    """Of one near partition. ``cursor_ms``: what its lease says; a feeder that works ahead leaves one in the future."""

    def __init__(self, cursor_ms: int, now_ms: int) -> None:
        self._read_ms = self._again_ms = max(min(cursor_ms, now_ms) - SKEW_MS, 0)
        self._first_ms = self._read_ms
        """Nothing before it is read."""
        self._looked_back_ms = [now_ms for _ in _LOOKS_BACK]
        self._open: dict[_Begun, int] = {}
        self._begun: dict[int, set[_Begun]] = {}
        """By bucket, as far back as rows are read again."""

    def spans(self, now_ms: int, limit: int) -> list[Span]:
        """What to read now, oldest first; the last ends behind ``now_ms`` unless there is more than ``limit``."""
        # After a clock went back, what is armed from now on may stand before what was read.
        self._read_ms = min(self._read_ms, now_ms + 1)
        self._first_ms = min(self._first_ms, now_ms - SKEW_MS)
        start = min(self._again_ms, self._read_ms - OVERLAP_MS)
        for number, (every, back) in enumerate(_LOOKS_BACK):
            if not 0 <= now_ms - self._looked_back_ms[number] < every:
                start = min(start, max(now_ms - back, self._first_ms))
                self._looked_back_ms[number] = now_ms
        self._again_ms = start = max(start, 0)
        self._forget(min(start, now_ms - SKEW_MS))
        end = now_ms + 1
        return [
            Span(bucket, max(bucket, start), min(bucket + buckets.BUCKET_MS, end))
            for bucket in islice(buckets.buckets(start, end), limit)
        ]

    def begin(self, row: TimerRow) -> bool:
        """Whether the row is to be fired: it is new. Until it is ``done`` the cursor stays before it."""
        begun = (row.sort_key, row.armed_ms)
        bucket = self._begun.setdefault(buckets.bucket_of(row.place_ms), set())
        if begun in bucket:
            return False
        bucket.add(begun)
        self._open[begun] = row.place_ms
        return True

    def done(self, row: TimerRow) -> None:
        self._open.pop((row.sort_key, row.armed_ms), None)

    def read(self, span: Span) -> None:
        """All rows of the span were begun; spans are read in their order."""
        self._again_ms = max(self._again_ms, span.to_ms)
        self._read_ms = max(self._read_ms, span.to_ms)

    @property
    def cursor_ms(self) -> int:
        return min(self._read_ms, min(self._open.values(), default=self._read_ms))

    def _forget(self, before_ms: int) -> None:
        for bucket in [bucket for bucket in self._begun if bucket + buckets.BUCKET_MS <= before_ms]:
            del self._begun[bucket]


def is_caught_up(spans: list[Span], now_ms: int) -> bool:
    return spans[-1].to_ms > now_ms


def hours_due(cursor_ms: int, now_ms: int, limit: int) -> list[int]:
    """The hours' buckets to be promoted, oldest first."""
    first = buckets.bucket_of(cursor_ms, far=True)
    return list(islice(range(first, now_ms + buckets.PROMOTE_MS + 1, buckets.FAR_BUCKET_MS), limit))


def spans_ahead(cursor_ms: int, now_ms: int, ahead_ms: int, *, own: bool) -> Iterator[Span]:
    """What a feeder reads that works ``ahead_ms`` ahead, oldest first. Behind its ``own`` cursor are only rows that
    their writers sent themselves; behind that of a sweeper, whose writers do not, there may be slow ones. A cursor that
    is further ahead is from before the clock went back."""
    end = now_ms + ahead_ms
    start = cursor_ms if own and cursor_ms <= end + OVERLAP_MS else min(cursor_ms, now_ms) - SKEW_MS
    start = max(start, 0)
    for bucket in buckets.buckets(start, end):
        yield Span(bucket, max(bucket, start), min(bucket + buckets.BUCKET_MS, end))
