"""Some hundred seeds in every run of the tests. More: ``python -m tests.simulation --seeds 5000``."""

from collections import Counter
from dataclasses import replace
from unittest import mock

import pytest

from stepwell_server.history import request_ids
from tests.simulation.world import Scenario, simulate

SEEDS = 100
BLOCK = 20
FEATURE_BLOCK = 14
"""Of what takes longer, or is met by ``test_same_result`` as well."""


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, SEEDS, BLOCK))
def test_every_seed_comes_to_its_right_end(start: int) -> None:
    for seed in range(start, start + BLOCK):
        simulate(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(10_000, 10_040, BLOCK))
def test_deadlines_alone_bring_every_run_to_its_end(start: int) -> None:
    """Every first offer of a task is lost, so that only what a deadline sends again reaches a worker (invariant 7)."""

    def drop(scenario: Scenario) -> Scenario:
        return replace(scenario, drop_first_offers=True)

    for seed in range(start, start + BLOCK):
        simulate(seed, drop)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(20_000, 20_020, BLOCK))
def test_signals_that_share_commits_are_each_recorded_once(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + BLOCK):
        seen += simulate(seed, lambda scenario: replace(scenario, signal_bursts=True)).seen
    assert seen["commit Signals"] > 100


@pytest.mark.slow
@pytest.mark.parametrize("start", range(30_000, 30_020, BLOCK))
def test_runs_that_replace_others_are_made_once(start: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(start, start + BLOCK):
        seen += simulate(seed, lambda scenario: replace(scenario, replacements=True)).seen
    assert seen["commit of two runs"] > 20


@pytest.mark.slow
@pytest.mark.parametrize("start", range(20_100, 20_120, BLOCK))
def test_signals_with_keys_are_each_recorded_once(start: int) -> None:
    """Behind others that pushed them out of the state, and from whatever crash left of their claims."""
    with mock.patch.dict(request_ids.KEPT, {request_ids.SIGNAL: 4}):
        for seed in range(start, start + BLOCK):
            simulate(seed, lambda scenario: replace(scenario, signal_keys=True))


def test_one_seed_is_one_simulation() -> None:
    assert simulate(3) == simulate(3)
