"""Each time of a schedule is acted on once, in containers of the emulated AWS."""

import pytest

from tests.simulation.aws.scheduled import ScheduledContainers
from tests.simulation.world import simulate


@pytest.mark.slow
def test_schedules_under_faults_of_services() -> None:
    for seed in range(4):
        simulate(seed, world=ScheduledContainers)
