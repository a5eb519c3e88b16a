"""How many starts are worked on at once, so that what was started before goes on meanwhile.

All that waits for one turn of the event loop goes in the order in which it came. Hundreds of callers who start one
workflow after another would take every turn for themselves: the first workflow tasks of their runs fall behind, and
all of those come at once when the last caller is done, deadlines of the same length included. With few starts in a
turn, each run's first task follows its start at once, and both go at the pace that the process can hold.

That is so only where a commit takes part of a turn. A slow store is the better used the more starts share its commit.
"""

import asyncio
from collections import deque
from collections.abc import Callable

MOST = 16
"""Starts at once. Their share of an fsync is small already."""


def never_quick() -> bool:
    return False


class Admission:
    """``if not admission.try_enter(): await admission.enter()`` … ``finally: admission.leave()``; who waits goes in
    order. ``is_quick``: whether the store commits within a turn of the loop now; else nobody waits."""

    def __init__(self, is_quick: Callable[[], bool], most: int = MOST) -> None:
        self._is_quick = is_quick
        self._most = most
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def try_enter(self) -> bool:
        """Enters without a hop through the loop where there is room."""
        if self._inside >= self._most and self._is_quick():
            return False
        self._inside += 1
        return True

    async def enter(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        self._inside -= 1
        while self._waiting and (self._inside < self._most or not self._is_quick()):
            turn = self._waiting.popleft()
            if not turn.done():
                self._inside += 1
                turn.set_result(None)
