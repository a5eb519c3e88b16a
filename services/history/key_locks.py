"""One lock per key, made on demand. Only an optimisation: what keeps a log right is put-if-absent, not this."""

import asyncio
from collections import deque
from collections.abc import Hashable


class KeyLocks:
    """``if not locks.try_take(key): await locks.take(key)`` … ``finally: locks.release(key)``; waiters go in order."""

    def __init__(self) -> None:
        self._held: dict[Hashable, deque[asyncio.Future[None]] | None] = {}

    def try_take(self, key: Hashable) -> bool:
        """Takes a free lock without a hop through the loop."""
        if key in self._held:
            return False
        self._held[key] = None
        return True

    def is_taken(self, key: Hashable) -> bool:
        return key in self._held

    async def take(self, key: Hashable) -> None:
        if self.try_take(key):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiters = self._held[key]
        if waiters is None:
            waiters = self._held[key] = deque()
        waiters.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(key)
            raise

    def release(self, key: Hashable) -> None:
        waiters = self._held[key]
        while waiters:
            turn = waiters.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        del self._held[key]
