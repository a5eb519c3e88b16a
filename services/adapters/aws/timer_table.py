"""TimerIndex on DynamoDB: the arming half. Deadlines are fired by sweepers, which have ports of their own."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from ...history.commit import ExecutionKey
from ...timer_sweeper.arming import Arming
from ...timer_sweeper.buckets import UNKNOWN

_MICROSECOND = timedelta(microseconds=1)


class TimerTable:
    def __init__(self, arming: Arming) -> None:
        self._arming = arming

    async def arm(self, key: ExecutionKey, fire_at: datetime) -> None:
        await self._arming.arm(key, fire_at, UNKNOWN)

    async def due(self, now: datetime, limit: int) -> list[tuple[datetime, ExecutionKey]]:
        """Nothing: see above."""
        return []

    async def next_fire(self) -> datetime | None:
        return None

    async def fired(self, rows: Sequence[tuple[datetime, ExecutionKey]]) -> None:
        """Rows are never deleted; they expire."""
