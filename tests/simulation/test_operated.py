"""What is done to workflows from outside, and what they wait for, while everything goes wrong; and faults there."""

from collections import Counter

import pytest

from tests.simulation import plants_operated as plants
from tests.simulation.plants import Plant
from tests.simulation.test_bites import first_finding
from tests.simulation.test_resets import mixed
from tests.simulation.world import simulate, with_settings

MIXES = {
    "late": ("commit Detach", 8),
    "steering late resets": ("steered", 8),
    "waits": ("ChildWorkflowExecutionStarted", 8),
    "waits resets chains": ("ChildWorkflowExecutionStarted", 6),
    "sessions": ("session signal", 12),
}
"""By what goes together: what must have been met, and how many seeds."""


@pytest.mark.slow
@pytest.mark.parametrize("mix", MIXES)
def test_programs_come_to_their_right_end(mix: str) -> None:
    what, seeds = MIXES[mix]
    seen: Counter[str] = Counter()
    for seed in range(140_000, 140_000 + seeds):
        seen += simulate(seed, with_settings(mixed(mix))).seen
    assert seen[what] > 3, seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "seeds", "mix"),
    [
        (plants.stamp_kept_by_a_reset, 20, "steering"),
        (plants.left_open_attempt_forgotten, 20, "late"),
        (plants.waiters_not_told, 20, "waits"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_fault_is_found(plant: Plant, seeds: int, mix: str) -> None:
    with plant():
        found = first_finding(seeds, with_settings(mixed(mix)))

    assert found is not None, f"{plant.__name__}: {seeds} seeds found nothing"
