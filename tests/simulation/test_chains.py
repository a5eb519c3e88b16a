"""Programs that continue as new while everything goes wrong, and the faults planted there that must be found."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.simulation import plants_chain as plants
from tests.simulation.plants import Plant
from tests.simulation.test_bites import first_finding
from tests.simulation.test_simulation import BLOCK, FEATURE_BLOCK
from tests.simulation.world import Scenario, simulate


def chains(scenario: Scenario) -> Scenario:
    return replace(scenario, chains=True)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(50_000, 50_020, BLOCK))
def test_chains_of_runs_lose_nothing(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + BLOCK):
        seen += simulate(seed, chains).seen
    assert seen["WorkflowExecutionContinuedAsNew"] > 40


def repeats(scenario: Scenario) -> Scenario:
    return replace(scenario, repeats=True)


@pytest.mark.slow
def test_workflows_are_retried_and_scheduled_as_they_say() -> None:
    seen: Counter[str] = Counter()
    for seed in range(51_000, 51_000 + FEATURE_BLOCK):
        seen += simulate(seed, repeats).seen
    assert seen["WorkflowExecutionFailed"] > 10


@pytest.mark.slow
def test_a_planted_fault_of_retries_is_found() -> None:
    with plants.retry_past_the_expiry():
        found = first_finding(40, repeats)

    assert found is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "start", "seeds"),
    [
        (plants.carried_signal_in_both_runs, 20, 30),
        (plants.carried_signal_lost, 20, 30),
        (plants.backoff_not_armed, 0, 20),
        (plants.next_run_forgets_the_chain, 0, 30),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_fault_is_found(plant: Plant, start: int, seeds: int) -> None:
    with plant():
        found = first_finding(seeds, chains, start)

    assert found is not None, f"{plant.__name__}: {seeds} seeds from {start} on found nothing"
