"""Who kills and stops processes and turns clocks, at moments drawn from the seed."""

import asyncio
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.world import Scenario, World

_JUMPS = (-90.0, -20.0, -5.0, -1.0, 3.0, 40.0, 600.0)
"""Seconds."""


class Nemesis:
    def __init__(self, world: "World", scenario: "Scenario") -> None:
        self._world = world
        self._scenario = scenario
        self._random = Random(f"nemesis {scenario.seed}")

    async def rage(self) -> None:
        """Returns when the rough time is over."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._scenario.rough_time
        while True:
            await asyncio.sleep(self._random.random() * 12.0)
            if loop.time() >= end:
                return
            if self._scenario.crashes:
                self._strike()
            if self._scenario.clock_jumps and self._random.random() < 0.5:
                self._world.clock.jump(timedelta(seconds=self._random.choice(_JUMPS)))

    def _strike(self) -> None:
        world, random = self._world, self._random
        match random.choice(["engine", "worker", "worker", "stop worker", "stop engine", "nobody"]):
            case "engine":
                random.choice(world.engines).kill()
            case "worker":
                random.choice(world.workers).kill()
            case "stop worker":
                random.choice(world.workers).stop()
            case "stop engine":
                random.choice(world.engines).stop()
            case _:
                return
