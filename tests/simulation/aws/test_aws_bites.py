"""The simulation on AWS bites: each fault planted into an adapter is found within a few seeds.

What takes one order of things is found by scenes (``test_aws_scenes``).
"""

from dataclasses import replace
from typing import Any

import pytest

from stepwell_server.adapters.aws.log_ends import LogEnds
from stepwell_server.adapters.aws.timer_rows import TimerRows
from tests.simulation.aws import plants
from tests.simulation.aws.world import AwsWorld, ContainerWorld
from tests.simulation.violation import Violation
from tests.simulation.world import simulate

SEEDS = range(500, 504)


def find() -> str:
    """The first finding; empty when there is none."""
    for seed in SEEDS:
        try:
            simulate(seed, world=AwsWorld)
        except Exception as error:
            return str(error)
    return ""


@pytest.mark.slow
def test_a_commit_whose_deadline_stands_nowhere_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forgotten(self: TimerRows, row: Any) -> None:
        return

    monkeypatch.setattr(TimerRows, "put", forgotten)
    assert "invariant 3" in find()


@pytest.mark.slow
def test_heads_that_are_read_eventually_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    strong = LogEnds._commits
    monkeypatch.setattr(LogEnds, "_commits", lambda self, key: {**strong(self, key), "ConsistentRead": False})
    assert "there is no such workflow" in find()


@pytest.mark.slow
def test_objects_that_are_acknowledged_before_they_are_durable_are_found_within_a_seed() -> None:
    def objects(scenario: Any) -> Any:
        return replace(scenario, objects=True, pauses=False)

    with plants.put_acknowledged_before_it_is_durable(), pytest.raises(Violation, match="which is not there"):
        simulate(700, objects, ContainerWorld)
