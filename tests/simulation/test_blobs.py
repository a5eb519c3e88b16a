"""Runs whose payloads are blobs, through all that a simulation does to them: chains, children, messages, resets."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.simulation.world import Scenario, simulate

SEEDS = range(71_000, 71_008)

MIXES: dict[str, dict[str, bool]] = {
    "chains": {"chains": True, "others": True, "updates": True},
    "resets": {"resets": True, "updates": True, "signal_bursts": True},
    "repeats": {"repeats": True, "starts": True, "replacements": True},
}


@pytest.mark.slow
@pytest.mark.parametrize("mix", sorted(MIXES))
def test_payloads_that_are_blobs_come_to_the_same_end(mix: str) -> None:
    def with_blobs(scenario: Scenario) -> Scenario:
        return replace(scenario, blobs=True, **MIXES[mix])  # type: ignore[arg-type]

    seen: Counter[str] = Counter()
    for seed in SEEDS:
        seen += simulate(seed, with_blobs).seen
    assert seen["blobs"] > 1_000
