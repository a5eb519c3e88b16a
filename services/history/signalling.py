"""Signals of one run that arrive together are committed together: while one commit is under way, the next collect.

A log takes one commit after the other, each with its own fsync; without this, that would bound a burst of signals to
one workflow.
"""

import asyncio
from typing import NamedTuple

from stepwell.api.errors import Unavailable

from ..common.background import Background
from .commit import ExecutionKey
from .executions import Executions
from .requests import Request, Signal, Signals
from .state import ExecutionState
from .transition import SignalsReply

MOST_TOGETHER = 50
"""Signals in one commit: half of the buffer's limit (MS-04), so that one commit cannot overrun a workflow task."""


class _Waiting(NamedTuple):
    signal: Signal
    done: asyncio.Future[None]


class Signalling:
    """``record`` returns when the signal is durable. Raises what ``step`` refuses with, and Unavailable."""

    def __init__(self, executions: Executions, background: Background) -> None:
        self._executions = executions
        self._background = background
        self._waiting: dict[ExecutionKey, list[_Waiting]] = {}

    async def record(self, key: ExecutionKey, signal: Signal) -> None:
        waiting = self._waiting.get(key)
        if waiting is not None:
            mine = _Waiting(signal, asyncio.get_running_loop().create_future())
            waiting.append(mine)
            await mine.done
            return
        self._waiting[key] = []
        try:
            await self._executions.transact(key, signal)
        finally:
            if self._waiting[key]:
                self._background.spawn(self._drain(key))
            else:
                del self._waiting[key]

    async def _drain(self, key: ExecutionKey) -> None:
        """Carries on with what has collected, until nothing does."""
        waiting = self._waiting[key]
        try:
            while waiting:
                await self._together(key, waiting)
        finally:
            del self._waiting[key]
            for left in waiting:  # the engine is stopping
                if not left.done.done():
                    left.done.set_exception(Unavailable("the engine is stopping; signal again in a moment"))

    async def _together(self, key: ExecutionKey, waiting: list[_Waiting]) -> None:
        batch: list[_Waiting] = []

        async def prepare(_: ExecutionState | None) -> Request:
            # Called when it is this commit's turn, so that whatever has come in until then is in it.
            count = MOST_TOGETHER - len(batch)
            batch.extend(waiting[:count])
            del waiting[:count]
            return Signals(signals=tuple([entry.signal for entry in batch]))

        try:
            outcome = await self._executions.transact(key, None, prepare)
        except asyncio.CancelledError:
            waiting[:0] = batch
            raise
        except Exception as error:
            _fail(batch, error)
            return
        reply = outcome.transition.reply
        if not isinstance(reply, SignalsReply):
            raise TypeError(f"signals were answered with {type(reply).__name__}")
        for entry, refusal in zip(batch, reply.refusals, strict=True):
            if entry.done.done():
                continue  # its caller has gone; the signal is recorded all the same
            if refusal is None:
                entry.done.set_result(None)
            else:
                entry.done.set_exception(refusal)


def _fail(batch: list[_Waiting], error: Exception) -> None:
    for entry in batch:
        if not entry.done.done():
            entry.done.set_exception(error)
