"""The engine on emulated services of AWS. More: ``python -m tests.simulation --aws --seeds 1000``."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.simulation.aws import streams
from tests.simulation.aws.world import AwsWorld, ContainerWorld
from tests.simulation.world import simulate

BLOCK = 5
_KEPT = timedelta(hours=2)


@pytest.mark.slow
@pytest.mark.parametrize("start", [0, 6, 12])
def test_every_seed_of_functions_comes_to_its_right_end(start: int) -> None:
    for seed in range(start, start + BLOCK):
        simulate(seed, world=AwsWorld)


@pytest.mark.slow
def test_every_seed_of_containers_comes_to_its_right_end() -> None:
    """Also with functions beside them, and where one stands still for longer than its leases."""
    outcomes = [simulate(seed, world=ContainerWorld) for seed in range(6)]
    assert sum(outcome.seen.get("pause", 0) for outcome in outcomes) > 1


@pytest.mark.slow
def test_behind_a_time_without_the_stream_lists_show_what_has_become_of_every_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ends shortly before records would go. Runs have ended by their deadlines long before; and iterators are over
    many times. Two hours stand for AWS's day, which says nothing more and takes twelve times as long."""

    def outage(scenario: Any) -> Any:
        return replace(scenario, outage=_KEPT.total_seconds() - 400.0, others=True, objects=False)

    monkeypatch.setattr(streams, "KEPT", _KEPT)
    assert simulate(10_100, outage, AwsWorld).virtual_seconds > _KEPT.total_seconds() - 400.0


@pytest.mark.slow
def test_deadlines_alone_finish_every_open_run_and_deliver_what_closes_owe() -> None:
    """No record of the stream is ever read, and of every task the first message is lost (invariant 7)."""

    def drop(scenario: Any) -> Any:
        return replace(scenario, feed_lost=True, drop_first_offers=True, others=True)

    seen = sum((simulate(seed, drop, AwsWorld).commits for seed in range(10_000, 10_004)), 0)
    assert seen > 40


def test_one_seed_is_one_simulation() -> None:
    assert simulate(6, world=AwsWorld) == simulate(6, world=AwsWorld)
