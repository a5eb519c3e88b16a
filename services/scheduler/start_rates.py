"""How many runs the schedules of a namespace start (LC-42): so many a second, and whoever comes too late has a turn.

A turn is a time at which the starts before it are over. So a thousand schedules that are due at one moment do not all
look again every second.

Where the namespace has a limit of starts (MT-04), schedules take from what callers take from. Half of it is theirs in
any case, if need be on credit: else callers who take each start as it comes would leave a schedule waiting for ever.
"""

from datetime import timedelta

from stepwell.api import limits

from ..common.clock import Clock
from ..matching.rate_limit import RateLimit
from ..namespaces.buckets import Bucket
from ..namespaces.registry import Namespaces
from .step import PAUSE

_SHARE = 0.5


class _Namespace:
    __slots__ = ("limit", "share", "taken_until")

    def __init__(self, now: float) -> None:
        self.limit = RateLimit(limits.SCHEDULE_STARTS_PER_SECOND, now)
        self.share: Bucket | None = None
        self.taken_until = now
        """By turns that were given."""


class StartRates:
    """Of this process."""

    def __init__(self, namespaces: Namespaces, clock: Clock) -> None:
        self._registry = namespaces
        self._clock = clock
        self._namespaces: dict[str, _Namespace] = {}

    def allowance(self, namespace: str) -> tuple[int, timedelta]:
        """How many may be started now, and how long the next turn is from now."""
        now = self._clock.monotonic()
        rates = self._of(namespace, now)
        allowed = rates.limit.available(now)
        starts, share = self._registry.starts(namespace), rates.share
        if starts is not None and share is not None:
            allowed = min(allowed, max(starts.available(now), share.available(now)))
        return allowed, max(PAUSE, timedelta(seconds=rates.taken_until - now))

    def spend(self, namespace: str, starts: int, waiting: int) -> None:
        """``waiting``: of one schedule, which takes the next turn."""
        now = self._clock.monotonic()
        rates = self._of(namespace, now)
        for _ in range(starts):
            rates.limit.take(now)
        rate: float = limits.SCHEDULE_STARTS_PER_SECOND
        bucket, share = self._registry.starts(namespace), rates.share
        if bucket is not None and share is not None:
            rate = min(rate, bucket.rate)
            bucket.owe(starts)
            share.pay(starts)
        if waiting:
            turn = min(waiting, max(1.0, rate)) / rate
            rates.taken_until = max(rates.taken_until, now) + turn

    def _of(self, namespace: str, now: float) -> _Namespace:
        rates = self._namespaces.get(namespace)
        if rates is None:
            rates = self._namespaces[namespace] = _Namespace(now)
        own = self._registry.limits(namespace).starts_per_second
        if own is None:
            rates.share = None
        elif rates.share is None or rates.share.rate != own * _SHARE:
            rates.share = Bucket(own * _SHARE, now, seconds=1.0)
        return rates
