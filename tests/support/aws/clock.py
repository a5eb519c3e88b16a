"""A clock that stands where a test puts it."""

from datetime import datetime, timedelta


class StandingClock:
    def __init__(self, now: datetime) -> None:
        self._now = now
        self._elapsed = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed

    def go(self, by: timedelta) -> None:
        self._now += by
        self._elapsed += by.total_seconds()
