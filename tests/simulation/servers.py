"""Engines and workers as processes that die, stop and come again over the same store."""

import asyncio
import contextlib
import contextvars
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
from stepwell.activity import Info
from stepwell.api.common import ProcessIdentity
from stepwell.api.errors import ApiError
from stepwell.api.operations import Operation
from stepwell.client import Client
from stepwell.transport import Transport
from stepwell.worker import Worker

from stepwell_server.common.control import ControlWakeUps
from stepwell_server.common.settings import EngineSettings, ProcessKind
from stepwell_server.entrypoints.making import attach_batches, attach_schedules
from stepwell_server.frontend.refusals import api_error
from stepwell_server.frontend.routes import HANDLERS
from stepwell_server.history.engine import Engine
from tests.simulation.loop import CURRENT_PROCESS, Process
from tests.simulation.network import SimulatedTransport
from tests.simulation.ports import FaultyDispatcher
from tests.simulation.workflows import Activities, SimulatedProgram

if TYPE_CHECKING:
    from tests.simulation.world import World

MACHINE = "simulated machine"
SETTINGS = EngineSettings(
    poll_timeout=timedelta(seconds=60), liveness_interval=timedelta(seconds=5), query_no_poller=timedelta(seconds=5)
)
"""Longer waits than the defaults, so that idle virtual time costs less."""

_LONGEST_OUTAGE = 6.0


class Host:
    """Keeps one role filled: when its process dies, another one follows."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.incarnation = 0
        self.process: Process | None = None
        self.stopping = False
        self._random = Random(f"{name} {world.scenario.seed}")
        self._outside = contextvars.copy_context()

    def start(self) -> None:
        self.incarnation += 1
        self.stopping = False
        process = self.process = self.new_process(f"{self.name}.{self.incarnation}")
        process.on_death.append(self._schedule_next)
        process.spawn(self._guarded(process), name=process.name)

    def new_process(self, name: str) -> Process:
        return Process(name)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()

    def stop(self) -> None:
        """Asks the process to end in good order."""
        if self.process is not None and self.process.alive and not self.stopping:
            self.stopping = True
            self.process.spawn(self.shut_down(), name=f"stop {self.process.name}")

    async def _guarded(self, process: Process) -> None:
        try:
            await self.run(process)
        except Exception as error:
            if "simulated:" not in str(error):
                self.world.fail(error)
        process.kill()

    def _schedule_next(self) -> None:
        outage = self._random.random() * _LONGEST_OUTAGE
        asyncio.get_running_loop().call_later(outage, self.start, context=self._outside)

    async def run(self, process: Process) -> None:
        raise NotImplementedError

    async def shut_down(self) -> None:
        raise NotImplementedError


class EngineHost(Host):
    """The engine behind ROUTES' handlers, as a server runs it."""

    def __init__(self, world: "World", number: int, offered: set[Any]) -> None:
        super().__init__(world, f"engine {number}")
        self._engine: Engine | None = None
        self._offered = offered

    async def run(self, process: Process) -> None:
        engine = self._engine = new_engine(self.world, self._offered)
        await engine.start()
        self.world.network.listen(process, EngineServer(engine))
        await asyncio.get_running_loop().create_future()

    async def shut_down(self) -> None:
        process = self.process
        if self._engine is not None:
            await self._engine.stop()
        if process is not None:
            process.kill()


def new_engine(world: "World", offered: set[Any]) -> Engine:
    """A real engine over the wrapped ports."""
    backend, faults = world.faulty_backend(), world.faults
    wake_ups = ControlWakeUps(backend.control)
    engine = Engine(
        log=backend.log,
        timers=backend.timers,
        visibility=backend.visibility,
        clock=backend.clock,
        ids=backend.ids,
        token_key=backend.token_key,
        settings=replace(
            SETTINGS, process=ProcessKind.SOLE_OWNER if world.scenario.engines == 1 else ProcessKind.ONE_OF_MANY
        ),
        liveness=world,
        wake_ups=wake_ups,
        wrap_dispatcher=lambda matching: FaultyDispatcher(matching, faults, offered, world.kill_a_worker),
    )
    attach_schedules(engine, wake_ups, backend)
    attach_batches(engine, wake_ups, backend)
    return engine


class EngineServer:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def serve(self, operation: Operation[Any, Any], request: Any) -> Any:
        try:
            return await HANDLERS[operation.name](self._engine, request)
        except Exception as error:
            raise api_error(error, operation.name) from error

    async def undelivered(self, response: Any) -> None:
        with contextlib.suppress(ApiError):
            await self._engine.undelivered(response)


class WorkerTransport(SimulatedTransport):
    """Says who its process is, so that the engine can learn of its end, and may die on an answer."""

    def __init__(self, world: "World", process: ProcessIdentity) -> None:
        super().__init__(world.network)
        self._network = world.network
        self._faults = world.faults
        self._identity = process
        self.call = self._call

    async def _call(self, operation: Operation[Any, Any], request: Any) -> Any:
        worker = getattr(request, "worker", None)
        if worker is not None:
            worker = msgspec.structs.replace(worker, process=self._identity)
            request = msgspec.structs.replace(request, worker=worker)
        response = await self._network.call(operation, request)
        await self._faults.crash("worker_crash_on_reply")
        return response


class WorkerHost(Host):
    """A real worker with the simulation's transport. Its process identity tells every incarnation apart."""

    def __init__(self, world: "World", number: int, task_queue: str, runs_workflows: bool) -> None:
        super().__init__(world, f"worker {number}")
        self._number = number
        self._task_queue = task_queue
        self._runs_workflows = runs_workflows
        self._worker: Worker | None = None

    async def run(self, process: Process) -> None:
        identity = ProcessIdentity(
            machine=MACHINE, pid=10_000_000 + self._number, started=f"{self._number}.{self.incarnation}"
        )
        self.world.processes[identity] = process
        client = Client(self.transport(identity), identity=process.name)
        narrow = self.world.scenario.query_within is None
        activities = Activities(self._attempt_begins, self._about_to_end, self.world.outsider.take)
        self._worker = Worker(
            client,
            task_queue=self._task_queue,
            workflows=[SimulatedProgram] if self._runs_workflows else [],
            activities=[activities.work],
            graceful_shutdown_timeout=timedelta(seconds=self._random.choice([0.0, 1.0, 10.0])),
            max_cached_workflows=self._random.choice([0, 1, 1000]),
            max_concurrent_activities=self._random.choice([2, 4, 100]),
            max_concurrent_workflow_tasks=self._random.choice([1, 10] if narrow else [100]),
            max_concurrent_workflow_task_polls=self._random.choice([1, 2]),
            max_concurrent_activity_task_polls=1,
            max_concurrent_sessions=2 if self.world.scenario.sessions and self._runs_workflows else 0,
            max_eager_activity_reservations_per_workflow_task=self._random.choice([None, None, None, 0, 1]),
            debug_mode=True,
        )
        await self._worker.run()

    def transport(self, identity: ProcessIdentity) -> Transport:
        return WorkerTransport(self.world, identity)

    async def shut_down(self) -> None:
        if self._worker is not None:
            await self._worker.shutdown()

    async def _attempt_begins(self, info: Info) -> None:
        process = CURRENT_PROCESS.get()
        self.world.witness.attempt_begins(info, process.name if process is not None else "nobody")
        await self.world.faults.crash("worker_crash_in_activity")

    async def _about_to_end(self, info: Info) -> None:
        await self.world.faults.crash("worker_crash_after_activity")
