"""Each stand-alone activity comes to one end, which all are told, whatever dies; and the simulation would notice."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from stepwell_server.history.machines import standalone as machine
from tests.simulation.history_rules import Violation
from tests.simulation.standalone import StandaloneWorld
from tests.simulation.world import simulate

SEEDS = range(8)


def test_standalone_activities_under_faults() -> None:
    commits = faults = 0
    for seed in SEEDS:
        outcome = simulate(seed, world=StandaloneWorld)
        commits += outcome.commits
        faults += sum(outcome.faults.values())
    assert commits > 300 and faults > 100


def starts_are_not_remembered() -> Any:
    """A start that is made again is another one."""
    return mock.patch.object(machine.starting, "before", return_value=None)


def ends_are_taken_in_once() -> Any:
    """By who has ended the attempt; nobody comes behind one that died."""

    async def finished(self: Any, state: Any) -> list[Any]:
        return []

    return mock.patch("stepwell_server.history.items.ActivityItems.finished", finished)


@pytest.mark.parametrize("plant", [starts_are_not_remembered, ends_are_taken_in_once])
def test_the_simulation_finds(plant: Callable[[], Any]) -> None:
    for seed in range(20):
        try:
            with plant():
                simulate(seed, world=StandaloneWorld)
        except Violation:
            return
    pytest.fail(f"{plant.__name__} was not found in 20 seeds")
