"""How much a worker takes on at once (WK-01): slots that are taken before work is asked for."""

import asyncio


class Slots:
    """A counter of free places. Used on the event loop only."""

    __slots__ = ("_closed", "_waiters", "free", "total")

    def __init__(self, total: int) -> None:
        self.total = total
        self.free = total
        self._closed = False
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def used(self) -> int:
        return self.total - self.free

    def take(self, most: int) -> int:
        """Take up to that many, at once; the number taken, which may be 0."""
        free = self.free
        taken = most if most < free else free
        self.free = free - taken
        return taken

    def give_back(self, count: int = 1) -> None:
        self.free += count
        if self._waiters:
            self._wake(count)

    def _wake(self, count: int) -> None:
        while self._waiters and count > 0:
            waiter = self._waiters.pop(0)
            if not waiter.done():
                waiter.set_result(None)
                count -= 1

    def close(self) -> None:
        """Nobody waits for a slot any more; those that do get none."""
        self._closed = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    async def wait_for_one(self) -> bool:
        """Wait until a slot is free, and take it; false when closed."""
        while self.free < 1 and not self._closed:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake(1)  # it was this one's turn: now it is another's
                raise
        if self._closed:
            return False
        self.free -= 1
        return True
