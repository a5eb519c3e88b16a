"""Schedules in containers and in functions of the emulated AWS: wake-ups are armed before the writes that need them, by
two services; functions stand still between two calls, and their clock, stream and queue are all that calls them."""

from dataclasses import replace

from stepwell.api.common import ProcessIdentity
from stepwell.transport import Transport
from stepwell.transport.queue_fed import QueueFedTransport

from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.common.control import ControlRecord
from stepwell_server.entrypoints.aws_parts import open_parts
from stepwell_server.scheduler.state import KIND
from tests.simulation.aws.clocks import APART
from tests.simulation.aws.cloud import CloudClients
from tests.simulation.aws.world import AwsScenario, AwsWorld, ContainerWorld, WorkerQueues
from tests.simulation.schedules import QuickWorker, Scheduled


class ScheduledOnAws(Scheduled, AwsWorld):
    scenario: AwsScenario
    clocks_differ = APART

    async def schedule(self, id: str) -> ControlRecord | None:
        settings = AwsSettings(self.cloud.names.cell, "bucket")
        parts = await open_parts(settings, stays=False, clock=self.clock, clients=CloudClients(self.cloud))
        return await parts.backend.control.get(KIND, "default", id)


class ScheduledContainers(ScheduledOnAws, ContainerWorld):
    @staticmethod
    def draw(seed: int) -> AwsScenario:
        return replace(ContainerWorld.draw(seed), frontends=0, small_limits=False)


class ScheduledFunctions(ScheduledOnAws):
    @staticmethod
    def draw(seed: int) -> AwsScenario:
        return replace(AwsWorld.draw(seed), small_limits=False)

    def build(self) -> None:
        super().build()
        self.workers = [_QueueFedWorker(self)]


class _QueueFedWorker(QuickWorker):
    world: ScheduledFunctions

    def transport(self, identity: ProcessIdentity) -> Transport:
        return QueueFedTransport(super().transport(identity), WorkerQueues(self.world.cloud))
