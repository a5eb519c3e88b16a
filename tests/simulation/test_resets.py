"""Clients that reset their workflows while everything goes wrong, and the faults planted there that must be found."""

from collections import Counter

import pytest

from tests.simulation import plants_reset as plants
from tests.simulation.plants import Plant
from tests.simulation.test_bites import first_finding
from tests.simulation.test_simulation import FEATURE_BLOCK
from tests.simulation.world import simulate, with_settings

MIXES = {
    "resets": FEATURE_BLOCK,
    "resets others askers": 5,
    "resets chains updates": 5,
    "resets others chains replacements": 5,
    "resets repeats starts updates locals": 5,
}
"""By what goes together, so many seeds. More: ``python -m tests.simulation --set resets=True --set others=True``."""


def mixed(names: str) -> list[str]:
    return [f"{name}={2 if name == 'askers' else True}" for name in names.split()]


@pytest.mark.slow
@pytest.mark.parametrize("mix", MIXES)
def test_resets_lose_nothing_and_are_made_once(mix: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(100_000, 100_000 + MIXES[mix]):
        seen += simulate(seed, with_settings(mixed(mix))).seen
    assert seen["commit Reset"] > MIXES[mix] // 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "seeds", "mix"),
    [
        (plants.buffered_forgotten, 60, "resets"),
        (plants.repeats_not_known, 20, "resets"),
        (plants.late_messages_forgotten, 10, "resets"),
        (plants.child_not_taken_over, 10, "resets others"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_fault_is_found(plant: Plant, seeds: int, mix: str) -> None:
    with plant():
        found = first_finding(seeds, with_settings(mixed(mix)))

    assert found is not None, f"{plant.__name__}: {seeds} seeds found nothing"
