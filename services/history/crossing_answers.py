"""Records at their source the answers to what it has asked of other executions.

Those that come in while a commit of the source is under way share the next one: a source that asks thousands is not
changed thousands of times.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from stepwell.api import limits
from stepwell.api.errors import NotFound, Unavailable

from ..common.background import Background
from .answers import Answer, Discharge, ExternalDelivered
from .commit import ExecutionKey
from .executions import Executions
from .requests import Request
from .state import ExecutionState

_MOST_BUFFERED = limits.MAX_BUFFERED_EVENTS // 2
"""Answers must not overflow the buffer of a source whose workflow task is outstanding; they wait for room."""

_ROOM_PAUSE = 0.2
_ROOM_LOOKS = 100
"""After these the answers are given up, and found again by the source's deadline."""


class _Waiting(NamedTuple):
    delivery: Answer
    done: asyncio.Future[None]


class CrossingAnswers:
    def __init__(self, executions: Executions, background: Background) -> None:
        self._executions = executions
        self._background = background
        self._waiting: dict[ExecutionKey, list[_Waiting]] = {}

    async def record(self, source: ExecutionKey, deliveries: Iterable[Answer]) -> None:
        """Raises Unavailable."""
        loop = asyncio.get_running_loop()
        mine = [_Waiting(delivery, loop.create_future()) for delivery in deliveries]
        waiting = self._waiting.get(source)
        if waiting is None:
            self._waiting[source] = mine.copy()
            self._background.spawn(self._drain(source))
        else:
            waiting += mine
        results = await asyncio.gather(*(entry.done for entry in mine), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _drain(self, source: ExecutionKey) -> None:
        waiting = self._waiting[source]
        looks = 0
        try:
            while waiting:
                if await self._together(source, waiting):
                    looks = 0
                    continue
                looks += 1
                if looks > _ROOM_LOOKS:
                    return
                await asyncio.sleep(_ROOM_PAUSE)
        finally:
            del self._waiting[source]
            _fail(waiting, Unavailable(f"workflow {source.workflow_id!r} takes no answers now; they are found again"))

    async def _together(self, source: ExecutionKey, waiting: list[_Waiting]) -> bool:
        """False when the source's buffer has no room."""
        batch: list[_Waiting] = []

        async def prepare(state: ExecutionState | None) -> Request:
            waiting[:0] = batch
            batch[:] = waiting[: _room(state)]
            del waiting[: len(batch)]
            return _request(state, [entry.delivery for entry in batch])

        try:
            await self._executions.transact(source, None, prepare)
        except NotFound:
            pass  # retention has the source: nobody is left to be told
        except asyncio.CancelledError:
            waiting[:0] = batch
            raise
        except Exception as error:
            _fail(batch, error)
            return True
        for entry in batch:
            if not entry.done.done():
                entry.done.set_result(None)
        return bool(batch)


def _room(state: ExecutionState | None) -> int:
    if state is None or state.workflow_task is None:
        return limits.MAX_PLACED_EVENTS
    return max(_MOST_BUFFERED - len(state.buffered), 0)


def _request(state: ExecutionState | None, deliveries: Sequence[Answer]) -> Request:
    """Answers that only closed runs wait for are a discharge."""
    if state is not None and state.close_time is None and any(entry.run_id == state.run_id for entry in deliveries):
        return ExternalDelivered(deliveries=tuple(deliveries))
    return Discharge(deliveries=tuple(deliveries))


def _fail(batch: Iterable[_Waiting], error: Exception) -> None:
    for entry in batch:
        if not entry.done.done():
            entry.done.set_exception(error)
