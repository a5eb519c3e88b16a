"""Each time of a schedule is acted on once, in containers and in functions of the emulated AWS."""

from typing import Any
from unittest import mock

import pytest

from stepwell_server.adapters.aws import control_table
from stepwell_server.adapters.aws.control_table import ControlItem
from tests.simulation.aws.made_anew import MadeAnew
from tests.simulation.aws.scheduled import ScheduledContainers, ScheduledFunctions
from tests.simulation.violation import Violation
from tests.simulation.world import simulate


@pytest.mark.slow
def test_schedules_under_faults_of_services() -> None:
    for seed in range(4):
        simulate(seed, world=ScheduledContainers)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2, 9])
def test_schedules_of_functions_under_faults_of_services(seed: int) -> None:
    simulate(seed, world=ScheduledFunctions)


def test_what_stood_still_changes_nothing_of_a_schedule_made_anew() -> None:
    assert simulate(0, world=MadeAnew).seen["stall"] > 5


@pytest.mark.slow
def test_a_condition_without_the_incarnation_is_found_within_two_seeds() -> None:
    def version_alone(record: Any, version: int) -> Any:
        return ControlItem.version == version

    def look() -> None:
        for seed in range(2):
            simulate(seed, world=MadeAnew)

    with (
        mock.patch.object(control_table, "_is", version_alone),
        pytest.raises(Violation, match="a deleted one was written over"),
    ):
        look()
