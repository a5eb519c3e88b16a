"""Containers of a cell: whole ones, with stream reader, sweeper and pump, that die, are stopped, or stand still for
minutes and then go on as if nothing had been, with leases that others have taken meanwhile."""

import asyncio
import contextlib
import contextvars
from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING
from unittest import mock

from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.entrypoints import aws_server
from stepwell_server.entrypoints.aws_server import AwsContainer
from tests.simulation.aws.cloud import CloudClients
from tests.simulation.aws.functions import quiet
from tests.simulation.loop import Process
from tests.simulation.servers import EngineServer, Host

if TYPE_CHECKING:
    from tests.simulation.aws.world import AwsWorld

_PAUSES = (3.0, 20.0, 45.0, 100.0, 400.0)
"""Shorter and longer than leases, and than a row is young."""

_OUTSIDE = contextvars.Context()


class ContainerHost(Host):
    world: "AwsWorld"

    def __init__(self, world: "AwsWorld", number: int) -> None:
        super().__init__(world, f"container {number}")
        self._clock = world.clocks.machine()
        self._container: AwsContainer | None = None
        self._pauses = Random(f"pauses {number} {world.scenario.seed}")

    async def run(self, process: Process) -> None:
        self._container = None
        settings = AwsSettings(self.world.cloud.names.cell, "bucket")
        clients = CloudClients(self.world.cloud, self._clock)
        if self.world.scenario.pauses:
            self._pause_sometime(process)
        container = await AwsContainer.start(
            settings, clock=self._clock, owner=process.name, clients=clients, write=quiet
        )
        self._container = container
        self.world.network.listen(process, EngineServer(container.engine))
        await asyncio.get_running_loop().create_future()

    async def shut_down(self) -> None:
        process, container = self.process, self._container
        if container is not None:
            await container.stop()
        if process is not None:
            process.kill()

    def _pause_sometime(self, process: Process) -> None:
        loop = asyncio.get_running_loop()
        after = self._pauses.random() * 90.0

        def pause() -> None:
            if process.alive and not self.world.calm:
                self.world.witness.seen["pause"] += 1
                process.stand_still()
                loop.call_later(self._pauses.choice(_PAUSES), process.go_on, context=_OUTSIDE)

        loop.call_later(after, pause, context=_OUTSIDE)


@contextlib.contextmanager
def watched_fires(world: "AwsWorld") -> Iterator[None]:
    """Containers wire themselves; only what they fire is looked at."""
    fire_of = aws_server.fire_of
    with mock.patch.object(aws_server, "fire_of", lambda engine: world.watched_fire(fire_of(engine))):
        yield
