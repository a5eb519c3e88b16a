"""Clients that send updates while everything goes wrong, and the faults planted there that must be found."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.simulation import plants_messages as plants
from tests.simulation.plants import Plant
from tests.simulation.test_bites import Adjust, first_finding
from tests.simulation.test_simulation import FEATURE_BLOCK
from tests.simulation.world import Scenario, simulate


def updates(scenario: Scenario) -> Scenario:
    return replace(scenario, updates=True)


def updates_over_chains(scenario: Scenario) -> Scenario:
    return replace(scenario, updates=True, chains=True)


@pytest.mark.slow
@pytest.mark.parametrize("adjust", [updates, updates_over_chains])
def test_updates_are_taken_once_and_have_one_outcome(adjust: Adjust) -> None:
    seen: Counter[str] = Counter()
    for seed in range(60_000, 60_000 + FEATURE_BLOCK):
        seen += simulate(seed, adjust).seen
    assert seen["WorkflowExecutionUpdateCompleted"] > 40
    assert seen["task DROPPED"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "seeds"),
    [(plants.update_acknowledged_before_its_commit, 5), (plants.repeat_admitted_again, 20)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_fault_is_found(plant: Plant, seeds: int) -> None:
    with plant():
        found = first_finding(seeds, updates)

    assert found is not None, f"{plant.__name__}: {seeds} seeds found nothing"
