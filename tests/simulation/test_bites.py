"""The simulation bites: each fault planted into the engine is found within a stated number of seeds.

What takes one order of things is found by scenes (``test_scenes``).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from unittest import mock

import pytest

from stepwell_server.history import request_ids
from tests.simulation import plants
from tests.simulation.world import Scenario, simulate

Adjust = Callable[[Scenario], Scenario]


def as_drawn(scenario: Scenario) -> Scenario:
    return scenario


def small_limits(scenario: Scenario) -> Scenario:
    """So that buffers overflow, which production limits make rare."""
    return replace(scenario, small_limits=True)


def replacing(scenario: Scenario) -> Scenario:
    return replace(scenario, replacements=True)


def signal_keys(scenario: Scenario) -> Scenario:
    return replace(scenario, signal_keys=True)


@pytest.fixture
def short_ring() -> Iterator[None]:
    """The state remembers few signals, so that repeats of older ones are met."""
    with mock.patch.dict(request_ids.KEPT, {request_ids.SIGNAL: 4}):
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("short_ring")
@pytest.mark.parametrize("plant", [plants.claims_always_taken_over, plants.claims_taken_for_kept])
def test_a_planted_fault_of_claims_is_found(plant: plants.Plant) -> None:
    with plant():
        found = first_finding(20, signal_keys)

    assert found is not None, f"{plant.__name__}: found nothing"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "seeds", "adjust"),
    [
        (plants.completion_validation_removed, 20, as_drawn),
        (plants.arm_after_write, 5, as_drawn),
        (plants.firing_without_rearm, 20, as_drawn),
        (plants.second_nonce_answered, 100, as_drawn),
        (plants.validity_by_kind, 100, small_limits),
        (plants.buffer_lost_between_runs, 20, replacing),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_fault_is_found(plant: plants.Plant, seeds: int, adjust: Adjust) -> None:
    with plant():
        found = first_finding(seeds, adjust)

    assert found is not None, f"{plant.__name__}: {seeds} seeds found nothing"


def first_finding(seeds: int, adjust: Adjust, start: int = 0) -> tuple[int, BaseException] | None:
    """The first seed that objects, and what to; the error has a note with the command that reproduces it."""
    for seed in range(start, start + seeds):
        try:
            simulate(seed, adjust)
        except Exception as error:
            return seed, error
    return None


def test_a_finding_says_how_to_reproduce_it() -> None:
    with plants.arm_after_write():
        found = first_finding(5, as_drawn)

    assert found is not None
    seed, error = found
    assert f"--start {seed} --seeds 1" in "".join(getattr(error, "__notes__", []))
