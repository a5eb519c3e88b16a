"""What the feed does on AWS, done behind each write: visibility is projected from the commit."""

from datetime import datetime

from stepwell_server.history.commit import Commit
from stepwell_server.history.ports import ExecutionLog, VisibilityStore


class ProjectingLog:
    def __init__(self, inner: ExecutionLog, visibility: VisibilityStore) -> None:
        self._inner = inner
        self._visibility = visibility

    async def append(self, commit: Commit, *, arm: datetime | None = None) -> None:
        await self._inner.append(commit, arm=arm)
        await self._visibility.project(commit)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)
