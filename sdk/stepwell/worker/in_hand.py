"""What a worker has in hand. A function asks, which stands still behind its call: when is that nothing?"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from ..api import operations as o
from ..api.operations import Operation
from ..transport import Transport

Req = TypeVar("Req")
Resp = TypeVar("Resp")


class WorkInHand:
    """What a worker has begun and not ended: tasks of its loop, and calls on their way. Polls are neither."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._calls = 0
        self._news = asyncio.Event()

    def begun(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        self._news.set()

    def changed(self) -> None:
        self._news.set()

    async def until_none(self, quiet: Callable[[], bool]) -> None:
        """``quiet``: that nothing is on its way from a message to a task."""
        while self._tasks or self._calls or not quiet():
            self._news.clear()
            await self._news.wait()

    def counted(self, transport: Transport) -> Transport:
        """A transport whose calls count. Some are made by no task that anybody waits for, such as heartbeats."""
        return _Counted(transport, self)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._news.set()

    def call_begins(self) -> None:
        self._calls += 1

    def call_ends(self) -> None:
        self._calls -= 1
        self._news.set()


class _Counted(NamedTuple):
    inner: Transport
    in_hand: WorkInHand

    async def call(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        if operation in _POLLS:
            return await self.inner.call(operation, request)
        self.in_hand.call_begins()
        try:
            return await self.inner.call(operation, request)
        finally:
            self.in_hand.call_ends()

    async def close(self) -> None:
        await self.inner.close()


_POLLS: tuple[Operation[Any, Any], ...] = (o.POLL_WORKFLOW_TASK, o.POLL_ACTIVITY_TASK)
