"""Each time of a schedule is acted on once, whatever dies, fails or comes twice; and the simulation would notice."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation import plants_schedules as plants
from tests.simulation.faults import CALM
from tests.simulation.history_rules import Violation
from tests.simulation.schedules import ScheduledWorld
from tests.simulation.world import Scenario, simulate

SEEDS = range(12)


def test_schedules_under_faults() -> None:
    for seed in SEEDS:
        simulate(seed, world=ScheduledWorld)


def as_drawn(scenario: Scenario) -> Scenario:
    return scenario


def deaths_behind_writes(scenario: Scenario) -> Scenario:
    return replace(scenario, rates=replace(CALM, crash_after_arm=0.6), rough_time=10.0, crashes=False)


@pytest.mark.parametrize(
    ("plant", "adjust", "seeds"),
    [
        (plants.started_before_the_write, as_drawn, 20),
        (plants.ids_of_each_attempt, as_drawn, 3),
        (plants.armed_behind_the_write, deaths_behind_writes, 6),
        (plants.news_never_come, as_drawn, 6),
        (plants.begun_side_by_side, as_drawn, 3),
    ],
)
def test_the_simulation_finds(plant: Callable[[], Any], adjust: Callable[[Scenario], Scenario], seeds: int) -> None:
    for seed in range(seeds):
        try:
            with plant():
                simulate(seed, adjust, ScheduledWorld)
        except Violation:
            return
    pytest.fail(f"{plant.__name__} was not found in {seeds} seeds")
