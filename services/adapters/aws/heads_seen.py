"""Which commits this process has seen at the end of their logs a short while ago, and so may append behind.

An appended seq that is free proves nothing about the log if what stood there has expired and been deleted meanwhile: a
process that slept for weeks could go on from where the log was then. It costs a strong read to look; the reads and
writes that come before nearly every append have just looked. Nor does it prove which log that is: the id may have been
used anew, up to the very seq. Run ids are never used twice, so who looks asks for the run that this process knows.
"""

from collections import OrderedDict
from datetime import timedelta
from typing import NamedTuple

from ...common.clock import Clock
from ...history.commit import ExecutionKey

_SECONDS = 600.0
"""Far below the day for which a head is held that somebody appends behind."""

_MOST = 20_000

HELD = timedelta(days=1)
"""A head that expires sooner than this is held on to before anything is appended behind it."""


class _Seen(NamedTuple):
    seq: int
    run_id: str
    expires: int | None
    at: float


class HeadsSeen:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: OrderedDict[ExecutionKey, _Seen] = OrderedDict()

    def saw(self, key: ExecutionKey, seq: int, run_id: str, expires: int | None) -> None:
        self._seen[key] = _Seen(seq, run_id, expires, self._clock.monotonic())
        self._seen.move_to_end(key)
        if len(self._seen) > _MOST:
            self._seen.popitem(last=False)

    def forget(self, key: ExecutionKey) -> None:
        self._seen.pop(key, None)

    def run_of(self, key: ExecutionKey, seq: int) -> str:
        """The run that the commit was of, however long ago; empty when it is not remembered."""
        seen = self._seen.get(key)
        return seen.run_id if seen is not None and seen.seq == seq else ""

    def is_there(self, key: ExecutionKey, seq: int) -> bool:
        """That commit, for sure and for a while to come."""
        seen = self._seen.get(key)
        if seen is None or seen.seq < seq or self._clock.monotonic() - seen.at > _SECONDS:
            return False
        return seen.expires is None or seen.expires > (self._clock.now() + HELD).timestamp()
