"""Messages that start their workflow while everything goes wrong: each is recorded once, and its sender knows where."""

from collections import Counter
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from stepwell_server.history.signalling import Signalling
from tests.simulation.test_bites import first_finding
from tests.simulation.test_simulation import FEATURE_BLOCK
from tests.simulation.world import Scenario, simulate


def starts(scenario: Scenario) -> Scenario:
    return replace(scenario, starts=True)


@pytest.mark.slow
def test_messages_that_start_their_workflow_are_recorded_once() -> None:
    seen: Counter[str] = Counter()
    for seed in range(90_000, 90_000 + FEATURE_BLOCK):
        seen += simulate(seed, starts).seen
    assert seen["commit Signals"] > 20
    assert seen["WorkflowExecutionOptionsUpdated"] > 10


def repeats_led_to_the_newest_run() -> Any:
    """A repeat is told of the run that is open now, whichever took the first call's signal."""
    return mock.patch.object(Signalling, "_taken_by", mock.AsyncMock(return_value=None))


@pytest.mark.slow
def test_a_planted_fault_is_found() -> None:
    with repeats_led_to_the_newest_run():
        found = first_finding(20, starts)

    assert found is not None
