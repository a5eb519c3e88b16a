"""Between two askings of a long poll: at once where the engine holds the call, with growing pauses where it does not.

A function (AWS Lambda) answers every call at once (design section 8), so that who waits has to ask again.
"""

import asyncio
import random
import time

HELD_SECONDS = 1.0
"""A call that came back empty sooner was not held."""

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0


class Pace:
    """Of one wait: ``asking`` before each call, ``came_empty`` behind each that brought nothing."""

    def __init__(self) -> None:
        self._pause = FIRST_PAUSE
        self._asked = 0.0

    def asking(self) -> None:
        self._asked = time.monotonic()

    async def came_empty(self, longest: float = LONGEST_PAUSE) -> None:
        """Pauses 0.05 s, doubling to 2 s (a tenth more or less, ``longest`` at most), where the call was not held."""
        if time.monotonic() - self._asked >= HELD_SECONDS:
            self._pause = FIRST_PAUSE
            return
        await asyncio.sleep(min(longest, self._pause * random.uniform(0.9, 1.1)))
        self._pause = min(LONGEST_PAUSE, self._pause * 2)
