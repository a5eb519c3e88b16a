"""The lock of a run on a worker: nearly always free, and then taken without a coroutine."""

import asyncio
from collections import deque


class RunLock:
    """First come, first served, like ``asyncio.Lock``. Used on the event loop only."""

    __slots__ = ("_waiters", "locked")

    def __init__(self) -> None:
        self.locked = False
        self._waiters: deque[asyncio.Future[None]] = deque()

    def try_take(self) -> bool:
        """Take it when it is free and nobody waits for it; give it back by ``release``."""
        if self.locked or self._waiters:
            return False
        self.locked = True
        return True

    async def take(self) -> None:
        """Wait for it; give it back by ``release``."""
        if self.try_take():
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            self._waiters.remove(waiter)
            if not self.locked:
                self._wake()  # it may have been this one's turn: now it is the next one's
            raise
        self._waiters.remove(waiter)
        self.locked = True

    def release(self) -> None:
        self.locked = False
        if self._waiters:
            self._wake()

    def _wake(self) -> None:
        """The first stays in line until it runs, so that nobody comes in between."""
        if self._waiters and not self._waiters[0].done():
            self._waiters[0].set_result(None)
