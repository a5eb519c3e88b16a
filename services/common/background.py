"""Tasks that nobody awaits: kept alive, their failures logged, and waited for when the engine stops."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger(__name__)


class Background:
    """A set of running tasks."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Runs ``work`` on its own; what it raises is logged."""
        task = asyncio.get_running_loop().create_task(work)
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
        """Waits up to ``timeout`` seconds for what runs, then cancels the rest."""
        if self._tasks:
            _, late = await asyncio.wait(list(self._tasks), timeout=timeout)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("Background work of the engine failed", exc_info=error)
