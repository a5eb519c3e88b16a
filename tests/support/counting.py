"""Counts what passes through the store's ports, so that budgets are counted and not timed (design section 12); can
refuse a write, lose its answer or hold it back.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from stepwell.api.events import HistoryEvent

from stepwell_server.adapters.embedded.store import SqliteStore
from stepwell_server.history.activity_item import ActivityItem
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.ports import EventsPage, Marker, StoreUnavailable


class CountingStore:
    """The three ports of a store, with a counter in front. ``commits`` keeps every commit in order."""

    def __init__(self, inner: SqliteStore) -> None:
        self._inner = inner
        self.refuse: list[StoreUnavailable] = []
        """Raised by the next appends instead of writing."""
        self.refuse_kinds: set[str] = set()
        """Appends of commits of these kinds raise instead of writing, as if the process died before them."""
        self.lose_kinds: set[str] = set()
        """The next append of a commit of each of these kinds raises after writing."""
        self.lose_answer: list[StoreUnavailable] = []
        """Raised by the next appends after writing."""
        self.hold: asyncio.Event | None = None
        """While set, appends wait for it behind their write."""
        self.hold_puts: asyncio.Event | None = None
        """While set, puts of activity items wait for it behind their write."""
        self.lose_marker: list[BaseException] = []
        """Raised by the next puts of markers after writing."""
        self.fail_get: list[BaseException] = []
        """Raised by the next reads of single commits."""
        self.refuse_prefix: list[BaseException] = []
        """Raised by the next puts of a part of a prefix instead of writing."""
        self.behind_prefix: Callable[[], Awaitable[None]] | None = None
        """Called behind each part of a prefix."""
        self.events_read = 0
        self.counts: Counter[str] = Counter()
        self.commits: list[Commit] = []

    def reset(self) -> None:
        self.counts.clear()
        self.commits.clear()

    @property
    def writes(self) -> dict[str, int]:
        """Durable writes by kind; ``arm`` counts armed deadlines, whichever write they travel with."""
        return {
            kind: self.counts[kind]
            for kind in ("append", "arm", "put_activity", "put_marker", "put_prefix")
            if self.counts[kind]
        }

    async def append(self, commit: Commit, *, arm: datetime | None = None) -> None:
        self.counts["append"] += 1
        self._count_arm(arm)
        if self.refuse:
            raise self.refuse.pop(0)
        if commit.kind in self.refuse_kinds:
            raise StoreUnavailable(f"no commit of kind {commit.kind} today")
        await self._inner.append(commit, arm=arm)
        self.commits.append(commit)
        if commit.kind in self.lose_kinds:
            self.lose_kinds.remove(commit.kind)
            raise StoreUnavailable(f"the answer about commit {commit.seq} is lost")
        if self.lose_answer:
            raise self.lose_answer.pop(0)
        if self.hold is not None:
            await self.hold.wait()

    def _count_arm(self, arm: datetime | None) -> None:
        if arm is not None:
            self.counts["arm"] += 1

    async def put_activity(self, item: ActivityItem, *, arm: datetime | None = None) -> None:
        self.counts["put_activity"] += 1
        self._count_arm(arm)
        await self._inner.put_activity(item, arm=arm)
        if self.hold_puts is not None:
            await self.hold_puts.wait()

    async def put_prefix(
        self, key: ExecutionKey, run_id: str, seq: int, events: Sequence[HistoryEvent], *, now: datetime
    ) -> None:
        self.counts["put_prefix"] += 1
        if self.refuse_prefix:
            raise self.refuse_prefix.pop(0)
        await self._inner.put_prefix(key, run_id, seq, events, now=now)
        if self.behind_prefix is not None:
            await self.behind_prefix()

    async def put_marker(
        self, key: ExecutionKey, name: str, value: bytes, *, expires_at: datetime, now: datetime
    ) -> Marker:
        self.counts["put_marker"] += 1
        there = await self._inner.put_marker(key, name, value, expires_at=expires_at, now=now)
        if self.lose_marker:
            raise self.lose_marker.pop(0)
        return there

    async def get_marker(self, key: ExecutionKey, name: str) -> Marker | None:
        self.counts["get_marker"] += 1
        return await self._inner.get_marker(key, name)

    async def get(self, key: ExecutionKey, seq: int) -> Commit | None:
        self.counts["get"] += 1
        if self.fail_get:
            raise self.fail_get.pop(0)
        return await self._inner.get(key, seq)

    async def read_events(self, key: ExecutionKey, run_id: str, after_seq: int, limit: int) -> EventsPage:
        page = await self._inner.read_events(key, run_id, after_seq, limit)
        self.events_read += len(page.events)
        return page

    async def head(self, key: ExecutionKey) -> Commit | None:
        self.counts["head"] += 1
        return await self._inner.head(key)

    async def activities(self, key: ExecutionKey, run_id: str, ids: Sequence[int]) -> list[ActivityItem]:
        self.counts["activities"] += 1
        return await self._inner.activities(key, run_id, ids)

    def __getattr__(self, name: str) -> object:
        """Everything else passes uncounted."""
        return getattr(self._inner, name)
