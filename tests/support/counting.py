"""Counts what passes through the store's ports, so that budgets are counted and not timed (design section 12)."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from stepwell_server.adapters.embedded.store import SqliteStore
from stepwell_server.history.activity_item import ActivityItem
from stepwell_server.history.commit import Commit, ExecutionKey


class CountingStore:
    """The three ports of a store, with a counter in front. ``commits`` keeps every commit in order."""

    def __init__(self, inner: SqliteStore) -> None:
        self._inner = inner
        self.counts: Counter[str] = Counter()
        self.commits: list[Commit] = []

    def reset(self) -> None:
        self.counts.clear()
        self.commits.clear()

    @property
    def writes(self) -> dict[str, int]:
        """Durable writes by kind; ``arm`` counts armed deadlines, whichever write they travel with."""
        return {kind: self.counts[kind] for kind in ("append", "arm", "put_activity") if self.counts[kind]}

    async def append(self, commit: Commit, *, arm: datetime | None = None) -> None:
        self.counts["append"] += 1
        self.counts["arm"] += arm is not None
        await self._inner.append(commit, arm=arm)
        self.commits.append(commit)

    async def put_activity(self, item: ActivityItem, *, arm: datetime | None = None) -> None:
        self.counts["put_activity"] += 1
        self.counts["arm"] += arm is not None
        await self._inner.put_activity(item, arm=arm)

    async def head(self, key: ExecutionKey) -> Commit | None:
        self.counts["head"] += 1
        return await self._inner.head(key)

    async def activities(self, key: ExecutionKey, run_id: str, ids: Sequence[int]) -> list[ActivityItem]:
        self.counts["activities"] += 1
        return await self._inner.activities(key, run_id, ids)

    def __getattr__(self, name: str) -> object:
        """Everything else passes uncounted."""
        return getattr(self._inner, name)
