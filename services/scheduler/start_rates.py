"""How many runs the schedules of a namespace start (LC-42): so many a second, and whoever comes too late has a turn.

A turn is a time at which the starts before it are over. So a thousand schedules that are due at one moment do not all
look again every second.
"""

from datetime import timedelta

from stepwell.api import limits

from ..common.clock import Clock
from ..matching.rate_limit import RateLimit
from .step import PAUSE


class _Namespace:
    __slots__ = ("limit", "taken_until")

    def __init__(self, now: float) -> None:
        self.limit = RateLimit(limits.SCHEDULE_STARTS_PER_SECOND, now)
        self.taken_until = now
        """By turns that were given."""


class StartRates:
    """Of this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._namespaces: dict[str, _Namespace] = {}

    def allowance(self, namespace: str) -> tuple[int, timedelta]:
        """How many may be started now, and how long the next turn is from now."""
        now = self._clock.monotonic()
        rates = self._of(namespace, now)
        return rates.limit.available(now), max(PAUSE, timedelta(seconds=rates.taken_until - now))

    def spend(self, namespace: str, starts: int, waiting: int) -> None:
        """``waiting``: of one schedule, which takes the next turn."""
        now = self._clock.monotonic()
        rates = self._of(namespace, now)
        for _ in range(starts):
            rates.limit.take(now)
        if waiting:
            turn = min(waiting, limits.SCHEDULE_STARTS_PER_SECOND) / limits.SCHEDULE_STARTS_PER_SECOND
            rates.taken_until = max(rates.taken_until, now) + turn

    def _of(self, namespace: str, now: float) -> _Namespace:
        rates = self._namespaces.get(namespace)
        if rates is None:
            rates = self._namespaces[namespace] = _Namespace(now)
        return rates
