"""A world whose store, queues and stream are those of AWS, and whose engines are functions, containers, or both."""

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from random import Random
from typing import Any, TypeVar
from unittest import mock

from stepwell.api.common import ProcessIdentity
from stepwell.api.errors import Unavailable
from stepwell.transport import Transport, queue_fed
from stepwell.transport.queue_fed import QueueFedTransport, Received

from stepwell_server.adapters import system
from stepwell_server.adapters.aws import keys
from stepwell_server.adapters.aws.attributes import from_attributes
from stepwell_server.adapters.aws.names import Names
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.entrypoints.aws_parts import open_parts
from stepwell_server.timer_sweeper.ports import Fire
from tests.simulation.aws.clocks import WrongClocks
from tests.simulation.aws.cloud import Cloud, CloudClients
from tests.simulation.aws.containers import ContainerHost, watched_fires
from tests.simulation.aws.functions import FeedHost, FrontendHost, Instance, Platform, TickHost, TimersHost
from tests.simulation.aws.objects import PASS_SECONDS, ObjectReader, payloads_are_objects, short_hours
from tests.simulation.aws.store import TablesModel
from tests.simulation.faults import CALM, FaultRates
from tests.simulation.loop import Process
from tests.simulation.network import Network, Server
from tests.simulation.servers import WorkerHost, WorkerTransport
from tests.simulation.violation import Violation
from tests.simulation.witness import Witness
from tests.simulation.world import Scenario, World, draw

T = TypeVar("T")

_FIRED_WITHIN = 600.0
"""Virtual seconds; more than clocks are apart, and than what fails is put off by."""

_LISTED_WITHIN = 600.0
"""Virtual seconds behind the end of everything; records that fail are tried again with pauses."""

ROUGH = FaultRates(
    crash_before_write=0.003,
    crash_after_write=0.003,
    write_answer_lost=0.01,
    request_lost=0.02,
    reply_lost=0.03,
    slow_network=0.05,
    stalled_network=0.002,
    worker_crash_in_activity=0.01,
    worker_crash_after_activity=0.01,
    worker_crash_on_reply=0.005,
    throttled=0.02,
    conflicted=0.01,
    stalled_call=0.002,
    read_answer_lost=0.005,
    message_lost=0.05,
    message_late=0.1,
    message_twice=0.1,
    message_not_taken=0.05,
    message_deleted_in_vain=0.05,
    record_twice=0.1,
    record_late=0.2,
    function_crash=0.02,
    tick_missed=0.1,
)


@dataclass(frozen=True)
class AwsScenario(Scenario):
    frontends: int = 2
    """Functions behind the API; 0: none of the functions is there."""
    containers: int = 0
    feed_lost: bool = False
    """No record of the stream is ever read."""
    outage: float = 0.0
    """Seconds for which the stream is out of order, from some moment of the rough time on."""
    pauses: bool = False
    """Containers stand still for minutes, and go on as if nothing had been."""
    clocks_apart: bool = False
    """Clocks of machines are minutes from each other, jump there, and are now and then hours off."""
    objects: bool = False
    """Nearly all payloads are objects, and garbage is collected all the time."""


def draw_aws(seed: int) -> AwsScenario:
    base = draw(seed)
    random = Random(f"aws scenario {seed}")
    strength = random.choice([0.0, 0.5, 1.0, 1.0, 2.0])
    values = {field.name: getattr(base, field.name) for field in fields(Scenario)}
    more = Random(f"more of aws {seed}")
    return AwsScenario(
        **{
            **values,
            "rates": CALM if not strength else ROUGH.scaled(strength),
            "crashes": strength > 0 and random.random() < 0.7,
            "clock_jumps": strength > 0 and more.random() < 0.15,
        },
        frontends=random.choice([1, 2, 3]),
        outage=random.choice([0.0, 0.0, 0.0, 120.0]),
        clocks_apart=strength > 0 and more.random() < 0.3,
        objects=more.random() < 0.3,
    )


def in_containers(scenario: AwsScenario) -> AwsScenario:
    """One or two containers, and now and then the functions beside them."""
    random = Random(f"containers {scenario.seed}")
    functions = scenario.frontends if random.random() < 0.3 else 0
    # A pause of minutes would be days of a world whose hours are short: longer than any write takes.
    pauses = scenario.rates != CALM and not scenario.objects
    return replace(scenario, frontends=functions, containers=random.choice([1, 2, 2]), pauses=pauses)


class AwsWorld(World):
    draw = staticmethod(draw_aws)
    option = " --aws"
    pause_of_clients = 1.0
    scenario: AwsScenario

    def build(self) -> None:
        scenario = self.scenario
        names = Names("sim")
        self.set_aside = 0
        self.platform: Platform | None = None
        self.clocks = WrongClocks(self.clock, scenario.seed, apart=scenario.clocks_apart)
        self.cloud = self.make_cloud(names)
        self.cloud.sqs.drops_first = scenario.drop_first_offers
        self.cloud.stream.lost = scenario.feed_lost
        self.tables = TablesModel(self.model, names, self.clock, ObjectReader(self.cloud.s3.objects))
        self.disk = _Reads(self)  # type: ignore[assignment]
        random = Random(f"network {scenario.seed}")
        self.network = _FunctionNetwork(self.faults, random, cancels=False)
        self.witness = _Witness(self.model, self.faults, self._incarnations, self.fail)
        if scenario.frontends:
            self._make_functions(scenario)
        self.engines += [ContainerHost(self, number) for number in range(scenario.containers)]
        worker = WorkerHost if scenario.containers else _QueueWorker
        self.workers += [worker(self, number, *layout) for number, layout in enumerate(scenario.workers)]

    def make_cloud(self, names: Names) -> Cloud:
        return Cloud(names, self.clock, Random(f"cloud {self.scenario.seed}"), self.faults, self.written)

    def _make_functions(self, scenario: AwsScenario) -> None:
        feed, tick = FeedHost(self, "feed"), TickHost(self, "tick")
        timers = TimersHost(self, "timers", hands_on=True)
        # Where there are containers, they are who serves the API: a worker has one address.
        count = 0 if scenario.containers else scenario.frontends
        self.engines += [*(FrontendHost(self, f"frontend {number}") for number in range(count)), feed, tick, timers]
        self.platform = Platform(self, feed, tick, timers)

    async def live(self) -> None:
        if self.platform is not None:
            self.platform.start()
        weather = [asyncio.create_task(work) for work in (self._weather(), self.clocks.jump_about())]
        self._by_themselves = weather
        await super().live()
        if not self.scenario.feed_lost:
            await self._listed()
        for task in weather:
            task.cancel()

    def _calm_down(self) -> None:
        super()._calm_down()
        self._by_themselves[-1].cancel()
        self.clocks.put_right()
        self.witness.seen["clock jump"] += self.clocks.jumps

    async def _paid(self) -> None:
        """Also nothing that fires is left out, and what is garbage by now is collected."""
        await super()._paid()
        ends = self.loop.time() + _FIRED_WITHIN
        while left := self.tables.left_out():
            if self.loop.time() > ends:
                raise Violation(f"deadlines of the timer table that nobody fired: {left[:3]}")
            await asyncio.sleep(5.0)
        if self.scenario.objects:
            await asyncio.sleep(1.3 * PASS_SECONDS)

    async def _listed(self) -> None:
        """Once the stream is read, lists show each run as it ended, however records came."""
        ends = self.loop.time() + self.scenario.outage + _LISTED_WITHIN
        while wrong := self._listed_wrongly():
            if self.loop.time() > ends:
                raise Violation(f"not listed as they ended: {wrong[:3]}, {self.set_aside} records were set aside")
            await asyncio.sleep(60.0 if self.cloud.stream.out else 5.0)

    def _listed_wrongly(self) -> list[str]:
        rows = map(from_attributes, self.cloud.dynamodb.rows(self.cloud.names.vis_table))
        shown = {(row["pk"], row["sk"]): row["st"] for row in rows if "st" in row}
        wrong = []
        for (key, run_id), record in self.model.runs.items():
            assert record.folded is not None
            status = shown.get((keys.visible_key(key), run_id))
            if status != record.folded.status.value:
                wrong.append(f"{key.workflow_id} run {run_id} is listed as {status}, it is {record.folded.status}")
        return wrong

    def written(self, table: str, item: Any) -> None:
        """What the model finds wrong ends the simulation, whatever the writer makes of it."""
        try:
            self.tables.on_write(table, item)
        except Exception as error:
            self.fail(error)
            raise

    async def _weather(self) -> None:
        """What happens to the services by themselves."""
        random = Random(f"weather {self.scenario.seed}")
        outage = self.scenario.outage
        if outage:
            await asyncio.sleep(random.random() * self.scenario.rough_time)
            self.cloud.stream.out = True
            await asyncio.sleep(outage)
            self.cloud.stream.out = False
        while True:
            await asyncio.sleep(30.0)
            self.cloud.dynamodb.delete_expired(0.3)
            if random.random() < 0.3:
                self.cloud.stream.split()

    def watched_fire(self, fire: Fire) -> Fire:
        return self.tables.watched(fire)

    @contextlib.contextmanager
    def seams(self) -> Iterator[None]:
        with super().seams(), contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(system, "_randomness", system._Randomness()))
            stack.enter_context(mock.patch.object(queue_fed.time, "monotonic", self.loop.time))
            stack.enter_context(watched_fires(self))
            if self.scenario.objects:
                stack.enter_context(payloads_are_objects())
                stack.enter_context(short_hours())
            yield


class ContainerWorld(AwsWorld):
    draw = staticmethod(lambda seed: in_containers(draw_aws(seed)))
    option = " --aws --containers"


class _Witness(Witness):
    def _store_failures(self) -> int:
        """Whatever goes wrong may be what a wake-up waits for."""
        return sum(self._faults.happened.values())


class _FunctionNetwork(Network):
    """An instance has one call at a time, while there are enough."""

    def _choose(self, listening: "list[tuple[Process, Server]]") -> "tuple[Process, Server]":
        idle = [one for one in listening if not (isinstance(one[0], Instance) and one[0].calls)]
        return super()._choose(idle or listening)


class _QueueWorker(WorkerHost):
    """Receives from the queues itself, as the SDK does."""

    world: AwsWorld

    def transport(self, identity: ProcessIdentity) -> Transport:
        return QueueFedTransport(WorkerTransport(self.world, identity), WorkerQueues(self.world.cloud))


class WorkerQueues:
    """Implements ``queue_fed.MessageQueues``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def receive(self, queue: str, maximum: int, wait: float, hold: int) -> Sequence[Received]:
        answer = await self._call(
            "receive_message",
            QueueUrl=queue,
            MaxNumberOfMessages=min(maximum, 10),
            WaitTimeSeconds=int(min(wait, 20.0)),
            VisibilityTimeout=hold,
        )
        return [Received(message["Body"], message["ReceiptHandle"]) for message in answer.get("Messages", ())]

    async def delete(self, queue: str, handles: Sequence[str]) -> None:
        entries = [{"Id": str(number), "ReceiptHandle": handle} for number, handle in enumerate(handles)]
        await self._call("delete_message_batch", QueueUrl=queue, Entries=entries)

    async def close(self) -> None:
        return

    async def _call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        faults = self._cloud.faults
        if faults.strikes("throttled"):
            raise Unavailable("simulated: throttled")
        answer = await self._cloud.arrives("sqs", operation, parameters, faults.delay(0.01))
        if faults.strikes("read_answer_lost"):
            raise Unavailable("simulated: the answer was lost")
        return answer


class _Reads:
    """The store as a process without faults reads it, for the verdict."""

    def __init__(self, world: AwsWorld) -> None:
        self._world = world

    @property
    def store(self) -> "_Reads":
        return self

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        return await work

    async def read_events(self, key: Any, run_id: str, after: int, limit: int) -> Any:
        settings = AwsSettings(self._world.cloud.names.cell, "bucket")
        parts = await open_parts(
            settings, stays=False, clock=self._world.clock, clients=CloudClients(self._world.cloud)
        )
        return await parts.backend.log.read_events(key, run_id, after, limit)
