"""A stage for scenes of an installation on the emulated services: calls to them are held on their way."""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Coroutine, Mapping
from random import Random
from typing import Any

from stepwell_server.adapters.aws.client import _resource
from stepwell_server.adapters.aws.names import Names
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.entrypoints import aws_server
from stepwell_server.entrypoints.aws_parts import (
    AwsParts,
    container_engine,
    feed_of,
    fire_of,
    function_engine,
    open_parts,
)
from stepwell_server.history.engine import Engine
from stepwell_server.timer_sweeper.bucket_sweeper import BucketSweeper
from stepwell_server.timer_sweeper.due_messages import DueMessages, Postponed
from tests.simulation import stage
from tests.simulation.aws.clocks import MachineClock
from tests.simulation.aws.cloud import Cloud, CloudClients
from tests.simulation.aws.functions import quiet
from tests.simulation.aws.world import AwsScenario, AwsWorld
from tests.simulation.loop import Process
from tests.simulation.stage import NOBODY, Staged
from tests.simulation.world import live_through

Scene = Callable[["Stage"], Coroutine[Any, Any, None]]


def play(scene: Scene) -> None:
    """Raises Violation when it does not end as it should."""
    live_through(AwsScenario(**NOBODY, frontends=0), functools.partial(Stage, scene))


class _HoldingCloud(Cloud):
    def __init__(self, staged: Staged, *ports: Any) -> None:
        super().__init__(*ports, lags=False)
        self._staged = staged

    async def travel(self, way: float, operation: str, parameters: Mapping[str, Any], caller: Process | None) -> None:
        resource, item = _resource(parameters), parameters.get("Item", {})
        kind = item["sk"]["S"][:2] if "sk" in item else ""
        held = self._staged.held
        hold = held(caller, operation, resource) or held(caller, operation, f"{resource} {kind}")
        if hold is not None:
            await hold.passes()
        else:
            await super().travel(way, operation, parameters, caller)


class Machine(stage.Machine):
    """One process of the cell. Made by ``Stage.machine``."""

    def __init__(self, process: Process, parts: AwsParts, engine: Engine) -> None:
        super().__init__(process, engine)
        self.parts = parts


class Stage(Staged, AwsWorld):
    """Held are calls to the table, queue or bucket whose name ends so; of puts, also by the beginning of the sort key:
    ``exec A#``."""

    def make_cloud(self, names: Names) -> Cloud:
        return _HoldingCloud(self, names, self.clock, Random("stage"), self.faults, self.written)

    async def machine(self, name: str, *, function: bool = False, slow: float = 0.0) -> Machine:
        """A container without a sweeper, as one is whose partitions others have; or a function. ``slow``: its clock."""
        process, clock = Process(name), MachineClock(self.clock)
        clock.off = -slow

        async def opened() -> Machine:
            settings = AwsSettings(self.cloud.names.cell, "bucket")
            clients = CloudClients(self.cloud, clock)
            parts = await open_parts(settings, stays=not function, clock=clock, clients=clients, write=quiet)
            engine = function_engine(parts) if function else container_engine(parts)
            await engine.start()
            return Machine(process, parts, engine)

        return await process.spawn(opened())

    async def sweeper(self, name: str) -> tuple[Machine, BucketSweeper]:
        """A machine with one that has all partitions by now."""
        machine = await self.machine(name)
        return machine, await self.sweeps(machine, name)

    async def sweeps(self, machine: Machine, name: str) -> BucketSweeper:
        parts, fire = machine.parts, self.watched_fire(fire_of(machine.engine))
        sweeper = BucketSweeper(parts.rows, parts.leases, parts.clock, fire, name, parts.layouts)

        async def ready() -> None:
            sweeper.start()
            await sweeper.ready()

        await machine.do(ready())
        return sweeper

    async def feeds(self, machine: Machine) -> None:
        """From now on: it reads the stream, as far as others do not."""

        async def start() -> None:
            feed = feed_of(machine.parts, machine.engine)
            (await aws_server._reader(machine.parts, feed, machine.process.name)).start()

        await machine.do(start())

    async def fires_messages(self, machine: Machine) -> None:
        """From now on: what is due in the delay queue is handled there, and comes again until it is done."""
        parts, sqs = machine.parts, self.cloud.sqs
        due = DueMessages(parts.rows, parts.delays, parts.clock, self.watched_fire(fire_of(machine.engine)))
        url = f"https://queues/1/{self.cloud.names.timer_queue}"

        async def deliver() -> None:
            while True:
                asked = {"QueueUrl": url, "WaitTimeSeconds": 20, "VisibilityTimeout": 120}
                for message in (await sqs.call("receive_message", asked)).get("Messages", ()):
                    receipt, count = message["ReceiptHandle"], message["Attributes"]["ApproximateReceiveCount"]
                    with contextlib.suppress(Postponed):
                        await due.handle(message["Body"], receipt, int(count), message["MessageId"])
                        entries = [{"Id": "0", "ReceiptHandle": receipt}]
                        await sqs.call("delete_message_batch", {"QueueUrl": url, "Entries": entries})

        machine.begin(deliver()).add_done_callback(self._unforeseen)

    def _unforeseen(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)
