"""Token buckets: how often something may happen in a second. Time comes in as monotonic seconds. Pure."""

import math

BURST_SECONDS = 2.0
"""Of calls and of starts: so many a second, and twice as many at once."""

_ALMOST = 1e-9
"""What the arithmetic may lose of a token."""


class Bucket:
    """Holds ``room`` tokens, full at first."""

    __slots__ = ("rate", "room", "since", "tokens")

    def __init__(self, rate: float, now: float, *, seconds: float) -> None:
        """``seconds``: so long a time's tokens fit in."""
        self.rate = rate
        self.room = self.tokens = max(1.0, math.ceil(rate * seconds))
        self.since = now

    def wait(self, now: float, count: float = 1.0) -> float:
        """Seconds until there are so many, as far as they fit in at all; 0 when there are."""
        if now > self.since:
            # Without min and max: all calls come by here, and each would be one more.
            tokens, self.since = self.tokens + (now - self.since) * self.rate, now
            self.tokens = tokens if tokens < self.room else self.room
        missing = (count if count < self.room else self.room) - self.tokens
        return missing / self.rate if missing > _ALMOST else 0.0

    def available(self, now: float) -> int:
        """How many there are, whole."""
        self.wait(now)
        return max(0, int(self.tokens + _ALMOST))

    def pay(self, count: float = 1.0) -> None:
        """Takes tokens that are there."""
        self.tokens = self.tokens - count if self.tokens > count else 0.0

    def owe(self, count: float) -> None:
        """Takes tokens that need not be there, for what cannot be undone."""
        self.tokens -= count


class StartBuckets:
    """The starts of each namespace, by whoever makes them in this process: callers and schedules share a bucket."""

    def __init__(self) -> None:
        self._buckets: dict[str, Bucket] = {}

    def of(self, namespace: str, rate: float | None, now: float) -> Bucket | None:
        if rate is None:
            self._buckets.pop(namespace, None)
            return None
        bucket = self._buckets.get(namespace)
        if bucket is None or bucket.rate != rate:
            bucket = self._buckets[namespace] = Bucket(rate, now, seconds=BURST_SECONDS)
        return bucket


class PriorityBuckets:
    """One rate for calls of several priorities, 0 first. A call finds only what calls of its own and of higher priority
    have left, so a flood of what can wait keeps nothing more important from being done, but not the other way round."""

    def __init__(self, rate: float, now: float, *, seconds: float, priorities: int) -> None:
        self._levels = [Bucket(rate, now, seconds=seconds) for _ in range(priorities)]

    def take(self, priority: int, now: float, count: float = 1.0) -> float:
        """0 when it may go on, which then counts; else seconds until it may."""
        levels = self._levels
        wait = levels[priority].wait(now, count)
        if not wait:
            for level in levels[priority:]:
                level.wait(now)
                level.pay(count)
        return wait
