"""Tasks that nobody awaits: kept alive, their failures logged, and waited for when the engine stops.

A task may spawn others at any time, also when it is cancelled: who is interrupted in a write leaves it to others to
learn what became of it. So waiting is for all that there are then, again and again; and what is spawned when nobody
waits any more is not begun, as if the process had died. What it would have done, deadlines do.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from .principals import nobodys_context

log = logging.getLogger(__name__)


class Background:
    """A set of running tasks."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._drained = False

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Runs ``work`` on its own; what it raises is logged. Does nothing behind ``drain``."""
        if self._drained:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work, context=nobodys_context())
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def settle(self, timeout: float) -> bool:
        """Waits up to ``timeout`` seconds until nothing runs, what the tasks spawn included; whether that is so."""
        ends = asyncio.get_running_loop().time() + timeout
        while self._tasks:
            left = ends - asyncio.get_running_loop().time()
            if left <= 0:
                return False
            await asyncio.wait(list(self._tasks), timeout=left)
        return True

    async def drain(self, timeout: float) -> None:
        """Waits up to ``timeout`` seconds for what runs, then cancels the rest. Nothing runs when it returns, and
        nothing ever will."""
        await self.settle(timeout)
        while self._tasks:
            late = list(self._tasks)
            for task in late:
                task.cancel()
            await asyncio.wait(late)
        self._drained = True

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("Background work of the engine failed", exc_info=error)
