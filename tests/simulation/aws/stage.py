"""A stage for one scene: an installation without clients and without faults by chance, and a script that plays the one
order of things that counts. It keeps a call on its way, lets its process die, lets time go by, begins another process.

What faults that are drawn meet once in hundreds of seeds is met here with the one there is; and since scripts wait for
what they name, and not for so many steps, they go on meeting it when the product awaits more or less than today. The
rules are those of the simulation: the model looks at each write.
"""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Coroutine, Iterator, Mapping
from datetime import timedelta
from random import Random
from typing import Any, TypeVar

from stepwell.api.enums import WorkflowExecutionStatus

from stepwell_server.adapters.aws.client import _resource
from stepwell_server.adapters.aws.names import Names
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.entrypoints.aws_parts import AwsParts, container_engine, fire_of, function_engine, open_parts
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.engine import Engine
from stepwell_server.timer_sweeper.bucket_sweeper import BucketSweeper
from stepwell_server.timer_sweeper.due_messages import DueMessages, Postponed
from tests.simulation.aws.clocks import MachineClock
from tests.simulation.aws.cloud import Cloud, CloudClients
from tests.simulation.aws.functions import quiet
from tests.simulation.aws.world import AwsScenario, AwsWorld
from tests.simulation.faults import CALM
from tests.simulation.loop import Process
from tests.simulation.violation import Violation
from tests.simulation.world import live_through
from tests.support.counting import CountingStore
from tests.support.engine import Driver

T = TypeVar("T")

Scene = Callable[["Stage"], Coroutine[Any, Any, None]]

_LOOK = 0.5
_COMES_WITHIN = 60.0
_NOBODY = AwsScenario(
    seed=0,
    clients=0,
    engines=0,
    rates=CALM,
    rough_time=0.0,
    workers=(),
    drop_first_offers=False,
    cancels_travel=False,
    crashes=False,
    clock_jumps=False,
    task_timeout=10.0,
    small_limits=False,
    frontends=0,
)


def play(scene: Scene) -> None:
    """Raises Violation when it does not end as it should."""
    live_through(_NOBODY, functools.partial(Stage, scene))


class Hold:
    """Calls of one process that are on their way, also when it has died, until they ``arrive``."""

    def __init__(self, process: Process, operation: str, where: str) -> None:
        self._process = process
        self._operation = operation
        self._where = where
        self._came = asyncio.Event()
        self._released = asyncio.Event()

    def takes(self, operation: str, parameters: Mapping[str, Any], caller: Process | None) -> bool:
        return (
            caller is self._process
            and operation in (self._operation or operation)
            and (_resource(parameters).endswith(self._where))
        )

    async def passes(self) -> None:
        self._came.set()
        await self._released.wait()

    async def comes(self) -> None:
        """Until there is one."""
        try:
            await asyncio.wait_for(self._came.wait(), _COMES_WITHIN)
        except TimeoutError:
            what = self._operation or "call"
            raise Violation(
                f"no {what} of {self._process} came to {self._where} within {_COMES_WITHIN:.0f} s"
            ) from None

    def arrive(self) -> None:
        self._released.set()


class _HoldingCloud(Cloud):
    def __init__(self, *ports: Any) -> None:
        super().__init__(*ports, lags=False)
        self.holds: list[Hold] = []

    async def travel(self, way: float, operation: str, parameters: Mapping[str, Any], caller: Process | None) -> None:
        for hold in self.holds:
            if hold.takes(operation, parameters, caller):
                await hold.passes()
                return
        await super().travel(way, operation, parameters, caller)


class Machine:
    """One process of the cell, which does what it is told to. Made by ``Stage.machine``."""

    def __init__(self, process: Process, parts: AwsParts, engine: Engine) -> None:
        self.process = process
        self.parts = parts
        self.engine = engine
        self.driver = Driver(engine, CountingStore(parts.backend.log))  # type: ignore[arg-type]

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return self.process.spawn(work)

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        return await self.begin(work)

    def die(self) -> None:
        self.process.kill()


class Stage(AwsWorld):
    cloud: _HoldingCloud

    def __init__(self, scene: Scene, *parts: Any) -> None:
        self._scene = scene
        super().__init__(*parts)

    def make_cloud(self, names: Names) -> Cloud:
        return _HoldingCloud(names, self.clock, Random("stage"), self.faults, self.written)

    async def live(self) -> None:
        await self._scene(self)

    # --- who plays ---

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

    # --- what happens ---

    @contextlib.contextmanager
    def holding(self, machine: Machine, operation: str, where: str) -> Iterator[Hold]:
        """Inside: calls of that process to the table, queue or bucket whose name ends so stay on their way. An
        empty ``operation`` is any. At the end those that have not arrived never will."""
        hold = Hold(machine.process, operation, where)
        self.cloud.holds.append(hold)
        try:
            yield hold
        finally:
            self.cloud.holds.remove(hold)

    def jump(self, by: timedelta) -> None:
        """All clocks: so long nothing happens."""
        self.clock.jump(by)

    async def ends(self, workflow_id: str, within: float) -> None:
        """Waits until the newest run of that id is closed."""

        def is_over() -> bool:
            head = self.model.heads.get(ExecutionKey("default", workflow_id))
            return head is not None and head.state.status is not WorkflowExecutionStatus.RUNNING

        await self.until(is_over, within, f"{workflow_id} has not ended")

    async def until(self, happened: Callable[[], bool], within: float, otherwise: str) -> None:
        ends = self.loop.time() + within
        while not happened():
            if self.loop.time() > ends:
                raise Violation(f"{otherwise} within {within:.0f} s, and nothing is left that would see to it")
            await asyncio.sleep(_LOOK)
