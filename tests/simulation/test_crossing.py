"""Workflows that signal others while everything goes wrong, and the faults planted there that must be found."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import pytest

from stepwell_server.history import crossing_signals, request_ids
from tests.simulation import plants_crossing as plants
from tests.simulation.plants import Plant
from tests.simulation.test_bites import first_finding
from tests.simulation.test_simulation import BLOCK
from tests.simulation.world import Scenario, simulate


def askers(scenario: Scenario) -> Scenario:
    return replace(scenario, askers=2)


@pytest.fixture
def short_ring() -> Iterator[None]:
    """A target's state remembers few signals, so that a repeat has to be looked for in its log."""
    with (
        mock.patch.dict(request_ids.KEPT, {request_ids.SIGNAL: 4}),
        mock.patch.object(crossing_signals, "MOST_TOGETHER", 4),
    ):
        yield


@pytest.mark.slow
@pytest.mark.parametrize("start", range(40_000, 40_020, BLOCK))
def test_signals_to_others_arrive_once_and_nothing_stays_owed(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + BLOCK):
        seen += simulate(seed, askers).seen
    assert seen["commit Discharge"] > 20
    assert seen["ExternalWorkflowExecutionSignaled"] > 100


@pytest.mark.slow
@pytest.mark.usefixtures("short_ring")
def test_repeats_behind_many_others_are_recognised() -> None:
    for seed in range(40_100, 40_100 + BLOCK // 2):
        simulate(seed, askers)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "seeds"),
    [
        (plants.owed_forgotten_by_the_next_run, 60),
        (plants.owed_forgotten_by_a_close, 5),
        (plants.answered_before_delivery, 5),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_fault_is_found(plant: Plant, seeds: int) -> None:
    with plant():
        found = first_finding(seeds, askers)

    assert found is not None, f"{plant.__name__}: {seeds} seeds found nothing"
