"""Programs with local activities while everything goes wrong, and the faults planted there that must be found."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.simulation import plants_local as plants
from tests.simulation.plants import Plant
from tests.simulation.same_result import without_faults
from tests.simulation.test_bites import Adjust, first_finding
from tests.simulation.test_simulation import FEATURE_BLOCK
from tests.simulation.world import Scenario, simulate


def local_activities(scenario: Scenario) -> Scenario:
    return replace(scenario, locals=True)


def asked_often(scenario: Scenario) -> Scenario:
    """A workflow task is kept alive from 0.4 s on: from then on, a query need not wait for local activities. Before
    that, or behind a message that came in, it waits for one task."""
    return replace(without_faults(scenario), locals=True, query_within=2.0, task_timeout=0.5, engines=1)


@pytest.mark.slow
def test_local_activities_have_one_end() -> None:
    seen: Counter[str] = Counter()
    for seed in range(80_000, 80_000 + FEATURE_BLOCK):
        seen += simulate(seed, local_activities).seen
    assert seen["MarkerRecorded"] > 30
    assert seen["local attempt"] > seen["MarkerRecorded"]


@pytest.mark.slow
def test_queries_do_not_wait_for_local_activities() -> None:
    answered = sum(simulate(seed, asked_often).seen["query answered"] for seed in range(80_100, 80_110))
    assert answered > 40


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "seeds", "adjust"),
    [
        (plants.local_result_recorded_twice, 20, local_activities),
        (plants.runner_awaited_under_the_lock, 20, asked_often),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_fault_is_found(plant: Plant, seeds: int, adjust: Adjust) -> None:
    with plant():
        found = first_finding(seeds, adjust)

    assert found is not None, f"{plant.__name__}: {seeds} seeds found nothing"
