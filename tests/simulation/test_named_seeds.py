"""Seeds that once found something, by what they found. ``test_bites`` plants some of these faults again."""

from dataclasses import replace

import pytest

from tests.simulation.world import Scenario, simulate


def jumping_clock(scenario: Scenario) -> Scenario:
    return replace(scenario, clock_jumps=True)


@pytest.mark.parametrize(
    "seed",
    [
        # Two polls of one worker took the same attempt at the same moment; the equal put was taken for a repeat.
        13,
        # A lost answer left the view of activity items with what another task had just replaced.
        92,
        # A workflow cancelled in the task that brings its activity's end asked the activity to stop all the same.
        15,
        # The answer of a write was lost while its caller was cancelled.
        375,
    ],
)
def test_a_seed_that_found_something(seed: int) -> None:
    simulate(seed)


@pytest.mark.parametrize(
    "seed",
    [
        # The clock went back behind a firing that had left a due timer to the outstanding workflow task: 30 s late.
        131,
        # The clock went back between a deadline's firing and its handling: the re-arm was the row that was struck off.
        226,
    ],
)
def test_a_seed_that_found_something_with_a_jumping_clock(seed: int) -> None:
    simulate(seed, jumping_clock)
