"""Programs that start children and signal others while everything goes wrong, and the faults planted there."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.simulation import plants_child as plants
from tests.simulation.plants import Plant
from tests.simulation.test_bites import Adjust, first_finding
from tests.simulation.test_simulation import FEATURE_BLOCK
from tests.simulation.world import Scenario, simulate


def others(scenario: Scenario) -> Scenario:
    return replace(scenario, others=True)


def replaced_and_continued(scenario: Scenario) -> Scenario:
    return replace(scenario, others=True, chains=True, replacements=True)


@pytest.mark.slow
@pytest.mark.parametrize("adjust", [others, replaced_and_continued])
def test_each_child_is_started_once_and_its_end_is_told(adjust: Adjust) -> None:
    seen: Counter[str] = Counter()
    for seed in range(70_000, 70_000 + FEATURE_BLOCK):
        seen += simulate(seed, adjust).seen
    assert seen["ChildWorkflowExecutionStarted"] > 20
    assert seen["ChildWorkflowExecutionCompleted"] > 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "seeds"),
    [
        (plants.child_named_anew, 10),
        (plants.children_forgotten_by_a_close, 10),
        (plants.news_done_before_it_is_told, 10),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_fault_is_found(plant: Plant, seeds: int) -> None:
    with plant():
        found = first_finding(seeds, others)

    assert found is not None, f"{plant.__name__}: {seeds} seeds found nothing"
