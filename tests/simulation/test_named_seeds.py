"""Seeds that once found something, by what they found. ``test_bites`` plants these faults again.

When seeds come to draw otherwise, take new ones: those at which the plants are found.
"""

from dataclasses import replace

import pytest

from tests.simulation.world import Scenario, simulate


def jumping_clock(scenario: Scenario) -> Scenario:
    return replace(scenario, clock_jumps=True)


def in_process(scenario: Scenario) -> Scenario:
    return replace(scenario, cancels_travel=True)


def test_two_polls_of_one_worker_take_one_attempt_at_the_same_moment() -> None:
    """Equal puts of an activity item were taken for one whose answer was lost."""
    simulate(0)


def test_a_worker_dies_at_the_moment_of_a_match() -> None:
    """A hint was handed to a poll that was cancelled and had not run since."""
    simulate(162, in_process)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(4, id="item's armed time had fired and counted as armed"),
        pytest.param(89, id="due timer left to the outstanding task came 30 s late"),
        pytest.param(374, id="armed time of the closed run before had fired"),
        pytest.param(739, id="re-arm was the row that was struck off"),
    ],
)
def test_the_clock_goes_back_behind_a_firing(seed: int) -> None:
    simulate(seed, jumping_clock)
