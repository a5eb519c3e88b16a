"""Clients that reset their workflows while everything goes wrong, and the faults planted there that must be found."""

from collections import Counter
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from stepwell_server.history import request_ids
from stepwell_server.history.machines import reset
from tests.simulation.plants import Plant
from tests.simulation.test_bites import first_finding
from tests.simulation.test_simulation import FEATURE_BLOCK
from tests.simulation.world import Scenario, simulate


def resets(scenario: Scenario) -> Scenario:
    return replace(scenario, resets=True)


@pytest.mark.slow
def test_resets_lose_nothing_and_are_made_once() -> None:
    seen: Counter[str] = Counter()
    for seed in range(100_000, 100_000 + FEATURE_BLOCK):
        seen += simulate(seed, resets).seen
    assert seen["commit Reset"] > 10


def buffered_forgotten() -> Any:
    """What the current run has not numbered is not taken over."""
    return mock.patch.object(reset, "_buffered", return_value=[])


def repeats_not_known() -> Any:
    """A reset that is asked for again is made again."""
    return mock.patch.object(request_ids, "reset_run", return_value=None)


def late_messages_forgotten() -> Any:
    """What came in behind the point is not taken over."""
    return mock.patch.object(reset, "reapplied", return_value=None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "seeds"),
    [(buffered_forgotten, 60), (repeats_not_known, 20), (late_messages_forgotten, 10)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_fault_is_found(plant: Plant, seeds: int) -> None:
    with plant():
        found = first_finding(seeds, resets)

    assert found is not None, f"{plant.__name__}: {seeds} seeds found nothing"
