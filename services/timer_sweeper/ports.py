"""What the feeders of deadlines need from the outside: rows in buckets, leases of partitions, a queue with delay.

All raise StoreUnavailable when they cannot serve now. One contract suite for all adapters.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

from ..common import metric_names as names
from ..common.metrics import Metrics
from .buckets import Partition, TimerRow


class RowsPage(NamedTuple):
    """In the order of sort keys."""

    rows: tuple[TimerRow, ...]
    after: str
    """To go on behind; empty when these were the last."""


class TimerBuckets(Protocol):
    async def put(self, row: TimerRow) -> None:
        """Durable when it returns. Where one of the same sort key stands, the newer replaces it: both are of the same
        workflow and fire in the same millisecond."""
        ...

    async def read(
        self, partition: Partition, bucket_ms: int, from_ms: int, to_ms: int, *, after: str = "", limit: int = 500
    ) -> RowsPage:
        """Rows of that bucket from ``from_ms`` up to, not with, ``to_ms``: what was put before this call began is
        there (strong read)."""
        ...

    async def since(self) -> int:
        """No row was put before this time (milliseconds): where a partition begins that never had a lease."""
        ...


class Lease(NamedTuple):
    """Who reads a partition, and how far they are. Only a courtesy: two who read the same cost a repeat, no more."""

    partition: Partition
    owner: str
    """Empty: free."""
    counter: int
    """One more with every change: who has an old lease changes nothing any more."""
    until_ms: int
    cursor_ms: int
    """What stands before it has been fired or handed on, less what was put behind it (``SKEW_MS``). Of hours'
    buckets, the first that was not promoted."""

    def is_held(self, now_ms: int) -> bool:
        return bool(self.owner) and now_ms < self.until_ms


class Leases(Protocol):
    async def held(self, version: int) -> list[Lease]:
        """What there is of a layout's partitions (0: of the hours' buckets), in one strong read."""
        ...

    async def change(self, lease: Lease) -> bool:
        """Puts the lease if the one that is there has the counter before (none for counter 1); whether it did. A
        repeat of one's own change is done."""
        ...


class Delayed(NamedTuple):
    row: TimerRow
    seconds: int


class DelayQueue(Protocol):
    async def send(self, delayed: Sequence[Delayed]) -> None:
        """All are in the queue when it returns, and are delivered at least once, ``seconds`` later or a bit more."""
        ...

    async def postpone(self, receipt: str, seconds: int) -> None:
        """A message that was delivered comes again after ``seconds``, unless it is deleted."""
        ...


Fire = Callable[[TimerRow], Awaitable[bool]]
"""Handles one due deadline; repeats are harmless. False: the write that it awaits is not there (yet). What it raises
leaves the row to be fired again."""

OnLag = Callable[[float], object]
"""Told of each deadline, when it is first fired: by how many seconds it is late."""


def ignore_lag(seconds: float) -> None:
    """Where nobody measures."""


def lag_recorder(metrics: Metrics) -> OnLag:
    """As the metric, which is in milliseconds. One that fires early is not late."""
    return lambda seconds: metrics.record(names.TIMER_LAG, max(seconds, 0.0) * 1_000)
