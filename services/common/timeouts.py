"""Timeouts of which nearly all are called off in time: one timer of the event loop for all that wait.

Setting and calling off a timer of the loop's own takes 25 function calls, more than much of what is guarded by one.
"""

import asyncio
import heapq
from collections.abc import Callable
from contextvars import copy_context
from itertools import count
from math import inf
from typing import Any

_STALE = 1_000
"""Called off and still in the heap, beyond as many as wait: then they are thrown out."""


class Timeouts:
    """Belongs to one event loop."""

    def __init__(self) -> None:
        self._numbers = count()
        self._heap: list[tuple[float, int]] = []
        """When, and which; those that are called off stay until their time."""
        self._waiting: dict[int, tuple[Callable[..., object], tuple[Any, ...]]] = {}
        self._wakes = inf
        """When the loop's timer goes off. It is not moved back for those that are called off."""
        self._timer: asyncio.TimerHandle | None = None
        self._context = copy_context()
        """A timer is set in the course of some caller's request, but stands for others as well."""

    def after(self, seconds: float, callback: Callable[..., object], *args: object) -> int:
        """Calls it then, unless what this gives is called off."""
        loop = asyncio.get_running_loop()
        at = loop.time() + seconds
        number = next(self._numbers)
        self._waiting[number] = (callback, args)
        heapq.heappush(self._heap, (at, number))
        if at < self._wakes:
            self._wake_at(loop, at)
        return number

    def call_off(self, number: int) -> None:
        """Of one that is over, this does nothing."""
        waiting = self._waiting
        waiting.pop(number, None)
        if len(self._heap) > 2 * len(waiting) + _STALE:
            self._heap = [entry for entry in self._heap if entry[1] in waiting]
            heapq.heapify(self._heap)

    def _wake_at(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._wakes = at
        self._timer = loop.call_at(at, self._wake, context=self._context)

    def _wake(self) -> None:
        loop = asyncio.get_running_loop()
        heap, now = self._heap, loop.time()
        self._timer, self._wakes = None, inf
        while heap and (heap[0][0] <= now or heap[0][1] not in self._waiting):
            _, number = heapq.heappop(heap)
            if number in self._waiting:
                # Each in a turn of its own, as a timer would have had: one may call off another, or fail.
                loop.call_soon(self._end, number, context=self._context)
        if heap:
            self._wake_at(loop, heap[0][0])

    def _end(self, number: int) -> None:
        waiting = self._waiting.pop(number, None)
        if waiting is not None:
            callback, args = waiting
            callback(*args)
