"""Clocks of machines that are wrong: minutes apart for good, jumping, or so far off that AWS refuses every call."""

import asyncio
from datetime import datetime, timedelta
from random import Random

from tests.simulation.environment import SimulatedClock

REFUSED = 300.0
"""AWS refuses requests that were signed by a clock which is off by more (seconds)."""

APART = 290.0
"""Clocks of machines whose calls are taken are at most so far from each other: for these the product promises all."""

_FAR_OFF = (-7200.0, -900.0, 900.0, 7200.0)
_LONGEST_REPAIR = 90.0


class MachineClock:
    """The right time, and how far this machine is from it."""

    def __init__(self, right: SimulatedClock) -> None:
        self._right = right
        self.off = 0.0

    def now(self) -> datetime:
        return self._right.now() + timedelta(seconds=self.off)

    def monotonic(self) -> float:
        return self._right.monotonic()

    @property
    def is_refused(self) -> bool:
        return abs(self.off) > REFUSED


class WrongClocks:
    """Of all machines of one world, drawn from the seed. ``apart``: the clocks are minutes apart, and jump there."""

    def __init__(self, right: SimulatedClock, seed: int, *, apart: bool) -> None:
        self._right = right
        self._apart = apart
        self._random = Random(f"clocks {seed}")
        self._low = self._random.uniform(-APART, 0.0)
        self._machines: list[MachineClock] = []
        self.jumps = 0

    def machine(self) -> MachineClock:
        clock = MachineClock(self._right)
        self._machines.append(clock)
        if self._apart:
            clock.off = self._taken()
        return clock

    def _taken(self) -> float:
        return self._random.choice([self._low, 0.0, self._low + APART, self._random.uniform(self._low, 0.0)])

    async def jump_about(self) -> None:
        """Until cancelled. Whoever is far off is put right after a while."""
        while self._apart and self._machines:
            await asyncio.sleep(self._random.random() * 30.0)
            clock = self._random.choice(self._machines)
            self.jumps += 1
            if self._random.random() < 0.3:
                clock.off = self._random.choice(_FAR_OFF)
                await asyncio.sleep(self._random.random() * _LONGEST_REPAIR)
            clock.off = self._taken()

    def put_right(self) -> None:
        """They stay apart; nobody is refused any more."""
        for clock in self._machines:
            if clock.is_refused:
                clock.off = self._taken()
