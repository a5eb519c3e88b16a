"""Which processes hold which runs' attempts, so that those of a process that is provably gone end early (ADR 0004)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from stepwell.api.common import ProcessIdentity

from .commit import ExecutionKey
from .handed_out import HandedOutTasks
from .liveness import Liveness
from .state import ExecutionState

_MOST_UNKNOWABLE = 10_000
_LOOK_AFTER = (0.0, 0.005, 0.02, 0.1, 0.3)
"""Seconds between looks at a process whose connection ended."""

log = logging.getLogger(__name__)


class Holders:
    """``end_attempts(key, process)`` ends what the process holds of that execution."""

    def __init__(
        self,
        handed_out: HandedOutTasks,
        end_attempts: Callable[[ExecutionKey, ProcessIdentity], Awaitable[None]],
        liveness: Liveness,
        interval: float,
    ) -> None:
        self._handed_out = handed_out
        self._end_attempts = end_attempts
        self._interval = interval
        self._held: dict[ProcessIdentity, dict[ExecutionKey, None]] = {}
        """Dictionaries as ordered sets, here and in what is asked of others: what happens must not hang on hashes."""
        self._unknowable: set[ProcessIdentity] = set()
        self._looking_at: set[ProcessIdentity] = set()
        self._task: asyncio.Task[None] | None = None
        self._liveness = liveness

    def note(self, process: ProcessIdentity | None, key: ExecutionKey) -> None:
        """``process`` has been given an attempt. Only those are watched whose end can be known."""
        if process is None:
            return
        keys = self._held.get(process)
        if keys is None:
            if process in self._unknowable or not self._liveness.can_tell(process):
                self._unknowable.add(process)
                return
            keys = self._held[process] = {}
        keys[key] = None

    def committed(self, key: ExecutionKey, state: ExecutionState) -> None:
        """Forgets an execution that waits for no activity."""
        if self._held and not state.activities:
            for keys in self._held.values():
                keys.pop(key, None)

    def start(self) -> None:
        self._task = asyncio.create_task(self._watch(), name="holders")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def look_soon(self, process: ProcessIdentity | None) -> None:
        """A connection of the process ended, perhaps because it did. It closes its connections some time before it is
        gone, so this looks a few times; after that the regular round finds it."""
        if process is None or process in self._looking_at or not self._holds(process):
            return
        self._looking_at.add(process)
        try:
            for pause in _LOOK_AFTER:
                await asyncio.sleep(pause)
                if await self._gone(process):
                    return
        finally:
            self._looking_at.discard(process)

    def _holds(self, process: ProcessIdentity) -> bool:
        return process in self._held or process in self._handed_out.processes()

    async def _gone(self, process: ProcessIdentity) -> bool:
        """Whether it is; then what it held is on its way to others."""
        if process in self._unknowable or not self._liveness.is_gone(process):
            return False
        log.info("Worker process %d is gone; what it held is given to others", process.pid)
        self._handed_out.take_from(process)
        await self._end_all(process)
        return True

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            for process in {**dict.fromkeys(self._held), **self._handed_out.processes()}:
                await self._gone(process)
            for process in [process for process, keys in self._held.items() if not keys]:
                del self._held[process]
            if len(self._unknowable) > _MOST_UNKNOWABLE:
                self._unknowable.clear()

    async def _end_all(self, process: ProcessIdentity) -> None:
        keys = self._held.get(process, {})
        for key in list(keys):
            try:
                await self._end_attempts(key, process)
            except Exception as error:
                # Kept for the next round; its timeout decides in any case.
                log.warning("Attempts of %r whose worker is gone could not be ended yet", key, exc_info=error)
            else:
                keys.pop(key, None)
