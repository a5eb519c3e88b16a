"""Schedules in containers of the emulated AWS: wake-ups are armed before the writes that need them, by two services."""

from dataclasses import replace

from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.common.control import ControlRecord
from stepwell_server.entrypoints.aws_parts import open_parts
from stepwell_server.scheduler.state import KIND
from tests.simulation.aws.clocks import APART
from tests.simulation.aws.cloud import CloudClients
from tests.simulation.aws.world import AwsScenario, ContainerWorld
from tests.simulation.schedules import Scheduled


class ScheduledContainers(Scheduled, ContainerWorld):
    scenario: AwsScenario
    clocks_differ = APART

    @staticmethod
    def draw(seed: int) -> AwsScenario:
        return replace(ContainerWorld.draw(seed), frontends=0, small_limits=False)

    async def schedule(self, id: str) -> ControlRecord | None:
        settings = AwsSettings(self.cloud.names.cell, "bucket")
        parts = await open_parts(settings, stays=False, clock=self.clock, clients=CloudClients(self.cloud))
        return await parts.backend.control.get(KIND, "default", id)
