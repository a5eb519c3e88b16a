"""Transparent wrappers of history's ports: subclass one and override what a test wants to see or to spoil."""

from collections.abc import Sequence
from datetime import datetime

from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.requests import WorkflowExecutionInfo

from stepwell_server.history.activity_item import ActivityItem
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.ports import EventsPage, ExecutionLog, TimerIndex, VisibilityStore


class LogWrapper:
    """An ExecutionLog that hands everything on."""

    def __init__(self, inner: ExecutionLog) -> None:
        self.inner = inner

    async def head(self, key: ExecutionKey) -> Commit | None:
        return await self.inner.head(key)

    async def append(self, commit: Commit, *, arm: datetime | None = None) -> None:
        await self.inner.append(commit, arm=arm)

    async def get(self, key: ExecutionKey, seq: int) -> Commit | None:
        return await self.inner.get(key, seq)

    async def read_events(self, key: ExecutionKey, run_id: str, after_seq: int, limit: int) -> EventsPage:
        return await self.inner.read_events(key, run_id, after_seq, limit)

    async def find_run(self, key: ExecutionKey, run_id: str) -> Commit | None:
        return await self.inner.find_run(key, run_id)

    async def get_activity(self, key: ExecutionKey, run_id: str, scheduled_event_id: int) -> ActivityItem | None:
        return await self.inner.get_activity(key, run_id, scheduled_event_id)

    async def put_activity(self, item: ActivityItem, *, arm: datetime | None = None) -> None:
        await self.inner.put_activity(item, arm=arm)

    async def activities(
        self, key: ExecutionKey, run_id: str, scheduled_event_ids: Sequence[int]
    ) -> list[ActivityItem]:
        return await self.inner.activities(key, run_id, scheduled_event_ids)


class TimersWrapper:
    """A TimerIndex that hands everything on."""

    def __init__(self, inner: TimerIndex) -> None:
        self.inner = inner

    async def arm(self, key: ExecutionKey, fire_at: datetime) -> None:
        await self.inner.arm(key, fire_at)

    async def due(self, now: datetime, limit: int) -> list[tuple[datetime, ExecutionKey]]:
        return await self.inner.due(now, limit)

    async def next_fire(self) -> datetime | None:
        return await self.inner.next_fire()

    async def fired(self, rows: Sequence[tuple[datetime, ExecutionKey]]) -> None:
        await self.inner.fired(rows)


class VisibilityWrapper:
    """A VisibilityStore that hands everything on."""

    def __init__(self, inner: VisibilityStore) -> None:
        self.inner = inner

    async def list_executions(
        self,
        namespace: str,
        *,
        status: WorkflowExecutionStatus | None,
        workflow_type: str,
        after: tuple[datetime, str] | None,
        limit: int,
    ) -> list[WorkflowExecutionInfo]:
        return await self.inner.list_executions(
            namespace, status=status, workflow_type=workflow_type, after=after, limit=limit
        )

    async def owing(self, after: ExecutionKey | None, limit: int) -> list[ExecutionKey]:
        return await self.inner.owing(after, limit)
