"""Messages that a function is called with, as the queues of a worker: it takes them as if it had received them itself.

What is done with a message, and when it is done with, is :mod:`stepwell.transport.queue_fed`'s; here it is only given
out, once, and crossed off.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeVar, cast

from ..api import requests as r
from ..api.operations import Operation
from . import Transport
from .queue_fed import Received

Req = TypeVar("Req")
Resp = TypeVar("Resp")

WORKFLOW, ACTIVITY = "workflow", "activity"
"""The queues of this process: one for each kind of task, whatever queues the messages are from."""


class EventQueues:
    """Implements :class:`~stepwell.transport.queue_fed.MessageQueues`. ``changed`` is called when a poll begins to
    wait: it has nothing in hand any more."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._waiting: dict[str, deque[Received]] = {WORKFLOW: deque(), ACTIVITY: deque()}
        self._receivers: dict[str, list[asyncio.Future[None]]] = {WORKFLOW: [], ACTIVITY: []}
        self._open: set[str] = set()
        self._numbers = itertools.count(1)

    def put(self, kind: str, body: str) -> str:
        """The handle by which to ask for it."""
        handle = str(next(self._numbers))
        self._open.add(handle)
        self._waiting[kind].append(Received(body, handle))
        for receiver in self._receivers[kind]:
            if not receiver.done():
                receiver.set_result(None)
        self._receivers[kind].clear()
        return handle

    def take_back(self, handles: Collection[str]) -> set[str]:
        """Those that are not done with. They are given to nobody any more."""
        left = self._open.intersection(handles)
        self._open -= left
        for kind, waiting in self._waiting.items():
            self._waiting[kind] = deque(received for received in waiting if received.handle not in left)
        return left

    def quiet(self, polls: int) -> bool:
        """Nothing waits for a poll, and all ``polls`` of the worker wait for something."""
        parked = sum(len(receivers) for receivers in self._receivers.values())
        return parked == polls and not any(self._waiting.values())

    async def receive(self, queue: str, maximum: int, wait: float, hold: int) -> Sequence[Received]:
        """However long that takes: between two calls of the function time passes in which nothing runs, and a poll
        that ends by its time would only begin again."""
        while not self._waiting[queue]:
            receiver = asyncio.get_running_loop().create_future()
            self._receivers[queue].append(receiver)
            self._changed()
            try:
                await receiver
            finally:
                if receiver in self._receivers[queue]:
                    self._receivers[queue].remove(receiver)
        waiting = self._waiting[queue]
        return [waiting.popleft() for _ in range(min(maximum, len(waiting)))]

    async def delete(self, queue: str, handles: Sequence[str]) -> None:
        self._open.difference_update(handles)

    async def close(self) -> None:
        return None


class EventSources:
    """The transport to the engine, but for the question where tasks come from: from this process."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def call(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        if isinstance(request, r.GetTaskSourcesRequest):
            found = r.GetTaskSourcesResponse(workflow_queues=(WORKFLOW,), activity_queues=(ACTIVITY,))
            return cast(Resp, found)
        return await self._inner.call(operation, request)

    async def close(self) -> None:
        await self._inner.close()


class QueueOfEvent(NamedTuple):
    """What the queue's name tells: ``…-{wft|act}-{partition}``."""

    kind: str
    base: str
    """Less the partition, of which there may be more by now."""

    @classmethod
    def parse(cls, name: str) -> "QueueOfEvent | None":
        """Of an ARN or an address as well, whose last part it is."""
        base, _, partition = name.replace(":", "/").rpartition("/")[2].rpartition("-")
        kind = {"wft": WORKFLOW, "act": ACTIVITY}.get(base.rpartition("-")[2])
        return None if kind is None or not partition.isdigit() else cls(kind, base)
