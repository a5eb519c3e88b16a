"""The ports of the timer feeders in memory: what the adapters on AWS promise, and no more. Every call lets others run
first, so that a test's schedule decides who is faster."""

import asyncio
from bisect import insort
from collections import defaultdict
from collections.abc import Sequence

from stepwell_server.timer_sweeper import buckets
from stepwell_server.timer_sweeper.buckets import Layout, Partition, TimerRow
from stepwell_server.timer_sweeper.layouts import Layouts
from stepwell_server.timer_sweeper.ports import Delayed, Lease, RowsPage


class MemoryBuckets:
    def __init__(self, layout: Layout, since_ms: int = 0) -> None:
        self.layouts = Layouts((layout,))
        self._since_ms = since_ms
        self.rows: dict[str, dict[str, TimerRow]] = defaultdict(dict)
        self._order: dict[str, list[str]] = defaultdict(list)
        self.reads = self.puts = 0

    async def put(self, row: TimerRow) -> None:
        await asyncio.sleep(0)
        self.puts += 1
        bucket = row.partition_key(self.layouts.of_writer(row.armed_ms))
        if row.sort_key not in self.rows[bucket]:
            insort(self._order[bucket], row.sort_key)
        self.rows[bucket][row.sort_key] = row

    async def read(
        self, partition: Partition, bucket_ms: int, from_ms: int, to_ms: int, *, after: str = "", limit: int = 500
    ) -> RowsPage:
        await asyncio.sleep(0)
        self.reads += 1
        key = buckets.bucket_key(partition, bucket_ms)
        first, last = buckets.sort_bounds(from_ms, to_ms)
        found = [sort for sort in self._order.get(key, ()) if first <= sort <= last and sort > after]
        rows = tuple(self.rows[key][sort] for sort in found[:limit])
        return RowsPage(rows, rows[-1].sort_key if len(found) > limit else "")

    async def since(self) -> int:
        return self._since_ms

    def all(self) -> list[TimerRow]:
        return [row for bucket in self.rows.values() for row in bucket.values()]


class MemoryLeases:
    def __init__(self) -> None:
        self.leases: dict[Partition, Lease] = {}
        self.reads = self.writes = 0

    async def held(self, version: int) -> list[Lease]:
        await asyncio.sleep(0)
        self.reads += 1
        return [lease for partition, lease in sorted(self.leases.items()) if partition.version == version]

    async def change(self, lease: Lease) -> bool:
        await asyncio.sleep(0)
        self.writes += 1
        there = self.leases.get(lease.partition)
        if there == lease:
            return True
        if (there.counter if there is not None else 0) != lease.counter - 1:
            return False
        self.leases[lease.partition] = lease
        return True


class MemoryDelayQueue:
    """Keeps what was sent; a test delivers it."""

    def __init__(self) -> None:
        self.sent: list[Delayed] = []
        self.postponed: list[tuple[str, int]] = []
        self.calls = 0

    async def send(self, delayed: Sequence[Delayed]) -> None:
        await asyncio.sleep(0)
        self.calls += 1
        self.sent += delayed

    async def postpone(self, receipt: str, seconds: int) -> None:
        self.postponed.append((receipt, seconds))
