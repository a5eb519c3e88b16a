"""One simulation: store, engines, workers, clients and whatever goes wrong, all from one seed.

``simulate(seed)`` runs a rough time with faults and then a calm one, in which everything must come to its end; every
write is checked when it is made (``model``), every answer when it is given (``witness``), every promise at the end
(``verdict``).
"""

import asyncio
import contextlib
import gc
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from random import Random
from typing import Any
from unittest import mock

from stepwell.api import limits
from stepwell.api.common import ProcessIdentity
from stepwell.worker import watchdog, workflow_turns

from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.embedded import embedded_backend
from tests.simulation import workflows
from tests.simulation.askers import AskerClient, AskerHost
from tests.simulation.blobbed import BlobbedStore
from tests.simulation.clients import SimulatedClient
from tests.simulation.ends import End, ends_of
from tests.simulation.environment import ErrorLog, SeededIds, SimulatedClock, surroundings
from tests.simulation.faults import CALM, ROUGH, FaultRates, Faults
from tests.simulation.history_rules import Violation
from tests.simulation.ledger import Ledger
from tests.simulation.loop import Process, SimulatedLoop
from tests.simulation.model import Model
from tests.simulation.nemesis import Nemesis
from tests.simulation.network import Network, SimulatedTransport
from tests.simulation.outsider import Outsider
from tests.simulation.ports import Disk, FaultyControl, FaultyLog, FaultyTimers
from tests.simulation.programs import ProgramMaker
from tests.simulation.servers import EngineHost, Host, WorkerHost
from tests.simulation.verdict import check_everything
from tests.simulation.witness import Witness

MAIN_QUEUE = "main"
SIDE_QUEUE = "side"
_LOOK = 5.0
_CALM_LIMIT = 6 * 3600.0
"""Virtual seconds after the last fault in which everything must have come to its end."""


@dataclass(frozen=True)
class Scenario:
    """What one seed sets up; drawn by ``draw`` and open to a test that wants something special."""

    seed: int
    clients: int
    engines: int
    """More than one share the store, as on AWS."""
    rates: FaultRates
    rough_time: float
    workers: tuple[tuple[str, bool], ...]
    """Per worker its queue, and whether it runs workflows as well."""
    drop_first_offers: bool
    cancels_travel: bool
    crashes: bool
    clock_jumps: bool
    task_timeout: float
    """Seconds after which a workflow task is offered to another worker."""
    small_limits: bool
    """Few buffered and few placed events, so that their limits are met."""
    signal_bursts: bool = False
    """Clients send several signals at once, which then share commits."""
    replacements: bool = False
    """Clients start again over the run that is open, which ends it in the commit that begins the next."""
    signal_keys: bool = False
    """Signals have keys of their senders' own, and are sent again behind others."""
    askers: int = 0
    """Ids of workflows that signal the others."""
    chains: bool = False
    """Programs continue as new."""
    others: bool = False
    """Programs start children, and signal other workflows."""
    locals: bool = False
    """Programs have local activities."""
    repeats: bool = False
    """Workflows are retried as a whole, run by a schedule, or begin after a delay."""
    resets: bool = False
    """Clients reset their workflows."""
    starts: bool = False
    """Clients send messages that start the workflow when it is closed."""
    updates: bool = False
    """Clients send updates."""
    blobs: bool = False
    """Nearly every payload is a blob."""
    late: bool = False
    """Programs have activities that somebody else ends than their functions."""
    steering: bool = False
    """Operators pause, reset and change pending activities."""
    waits: bool = False
    """Programs wait for workflows that they did not start, attach to children, and have children retried."""
    sessions: bool = False
    """Programs have sessions."""
    query_within: float | None = None
    """Clients ask more, and have an answer within so many seconds; for times without faults. Workers have room."""


def draw(seed: int) -> Scenario:
    random = Random(f"scenario {seed}")
    layouts: list[tuple[tuple[str, bool], ...]] = [
        ((MAIN_QUEUE, True), (SIDE_QUEUE, False)),
        ((MAIN_QUEUE, True), (MAIN_QUEUE, True), (SIDE_QUEUE, False)),
        ((MAIN_QUEUE, True), (MAIN_QUEUE, False), (SIDE_QUEUE, False)),
    ]
    strength = random.choice([0.0, 0.5, 1.0, 1.0, 2.0, 4.0])
    return Scenario(
        seed=seed,
        clients=random.randint(1, 4),
        engines=random.choice([1, 1, 1, 2]),
        rates=ROUGH.scaled(strength),
        rough_time=random.choice([30.0, 60.0, 120.0]),
        workers=random.choice(layouts),
        drop_first_offers=random.random() < 0.15,
        cancels_travel=random.random() < 0.5,
        crashes=strength > 0 and random.random() < 0.7,
        clock_jumps=random.random() < 0.2,
        task_timeout=random.choice([0.5, 2.0, 10.0]),
        small_limits=random.random() < 0.3,
    )


@dataclass
class Outcome:
    """Numbers of a simulation that found nothing wrong."""

    seed: int
    digest: int
    steps: int
    commits: int
    virtual_seconds: float
    faults: dict[str, int]
    seen: dict[str, int]
    """Answers to completions, kinds of commits and ends of runs."""
    ends: list[End]


class World:
    draw = staticmethod(draw)
    option = ""
    """With which the command line makes such worlds."""
    pause_of_clients = 0.0

    def __init__(self, scenario: Scenario, loop: SimulatedLoop, ids: SeededIds, errors: ErrorLog) -> None:
        self.scenario = scenario
        self.loop = loop
        self.ids = ids
        self.errors = errors
        self.random = Random(f"world {scenario.seed}")
        self.faults = Faults(Random(f"faults {scenario.seed}"), scenario.rates)
        self.faults.drop_first_offers = scenario.drop_first_offers
        self.clock = SimulatedClock(loop)
        self.model = Model()
        self.engines: list[Host] = []
        self.workers: list[Host] = []
        self.processes: dict[ProcessIdentity, Process] = {}
        self.calm = False
        workflows.bugs_are_fixed = False
        self.ledgers: list[Ledger] = []
        self.build()
        self.network.watch_reply = self.witness.reply
        if scenario.askers:
            self.workers.append(AskerHost(self))
        self.outsider = Outsider(self)

    def build(self) -> None:
        """Store, network and hosts."""
        scenario = self.scenario
        self.backend = embedded_backend(":memory:", clock=self.clock, ids=self.ids)
        store: Any = self.backend.log
        if scenario.blobs:
            store = BlobbedStore(store, self.clock, self.model.seen)
        self.disk = Disk(store, self.model, self.clock, self.fail)
        network_random = Random(f"network {scenario.seed}")
        self.network = Network(self.faults, network_random, cancels=scenario.cancels_travel)
        offered: set[Any] = set()
        self.engines += [EngineHost(self, number, offered) for number in range(scenario.engines)]
        self.witness = Witness(self.model, self.faults, self._incarnations, self.fail)
        self.workers += [WorkerHost(self, number, *layout) for number, layout in enumerate(scenario.workers)]

    @contextlib.contextmanager
    def seams(self) -> Iterator[None]:
        """Where product code asks the machine it runs on."""
        with contextlib.ExitStack() as stack:
            if self.scenario.small_limits:
                stack.enter_context(mock.patch.object(limits, "MAX_BUFFERED_EVENTS", 3))
                stack.enter_context(mock.patch.object(limits, "MAX_PLACED_EVENTS", 4))
            for module in (watchdog, workflow_turns):
                stack.enter_context(mock.patch.object(module, "monotonic", self.loop.time))
            yield

    def _incarnations(self) -> int:
        return sum(engine.incarnation for engine in self.engines)

    def fail(self, reason: BaseException) -> None:
        """Ends the simulation with this; the first reason counts."""
        if self.loop.stop_reason is None:
            self.loop.stop_reason = reason

    def faulty_backend(self) -> Backend:
        return replace(
            self.backend,
            log=FaultyLog(self.disk, self.faults),
            timers=FaultyTimers(self.disk, self.faults),
            control=FaultyControl(self.disk, self.backend.control, self.faults),
        )

    def kill_a_worker(self) -> None:
        self.random.choice(self.workers).kill()

    def can_tell(self, identity: ProcessIdentity | None) -> bool:
        return identity in self.processes

    def is_gone(self, identity: ProcessIdentity | None) -> bool:
        """What the engine would see on a machine that it shares with the workers."""
        process = self.processes.get(identity) if identity is not None else None
        return process is not None and not process.alive

    async def live(self) -> None:
        for host in (*self.engines, *self.workers):
            host.start()
        clients = self._clients()
        clients += [self._asker(number) for number in range(self.scenario.askers)]
        nemesis = asyncio.create_task(Nemesis(self, self.scenario).rage())
        await asyncio.wait([nemesis])
        nemesis.result()
        self._calm_down()
        _, late = await asyncio.wait(clients, timeout=_CALM_LIMIT)
        if late:
            raise Violation(f"did not come to an end in {_CALM_LIMIT:.0f} s without faults: {self._stuck()}")
        for client in clients:
            client.result()
        await self._paid()
        await check_everything(self)

    def _clients(self) -> list[asyncio.Task[None]]:
        return [self._client(number) for number in range(self.scenario.clients)]

    def _client(self, number: int) -> asyncio.Task[None]:
        random = Random(f"client {self.scenario.seed} {number}")
        scenario = self.scenario
        program = ProgramMaker(
            random,
            SIDE_QUEUE,
            chains=scenario.chains,
            others=scenario.others,
            locals=scenario.locals,
            repeats=scenario.repeats,
            late=scenario.late,
            sessions=scenario.sessions,
            waits_for=[f"wf-{other}" for other in range(number)] if scenario.waits else None,
        ).make()
        run_timeout = round(5.0 + random.random() * 60.0, 3) if random.random() < 0.1 else None
        ledger = Ledger(f"wf-{number}", program, self.scenario.task_timeout, run_timeout)
        if scenario.repeats and not program.cron:
            ledger.execution_timeout = round(10.0 + random.random() * 60.0, 3) if random.random() < 0.25 else None
            ledger.start_delay = round(random.random() * 20.0, 3) if random.random() < 0.2 else None
        may_restart = program.signals_needed == 0 and (random.random() < 0.4 or scenario.replacements)
        ledger.may_restart = may_restart and not program.cron
        self.ledgers.append(ledger)
        transport = SimulatedTransport(self.network)
        client = SimulatedClient(transport, random, ledger, MAIN_QUEUE, lambda: self.calm)
        client.pause = self.pause_of_clients
        client.bursts = self.scenario.signal_bursts
        client.replaces = self.scenario.replacements and ledger.may_restart
        client.keys = self.scenario.signal_keys
        client.resets = self.scenario.resets
        client.starts = self.scenario.starts
        client.updates = self.scenario.updates
        client.steers = self.scenario.steering
        client.query_within = None if program.buggy else self.scenario.query_within
        return Process(f"client {number}").spawn(client.live())

    def _asker(self, number: int) -> asyncio.Task[None]:
        targets = [f"wf-{client}" for client in range(self.scenario.clients)]
        return Process(f"asker {number}").spawn(AskerClient(self, number, targets).live())

    async def _paid(self) -> None:
        """When the clients' workflows have ended, so does what they have left behind, and nothing stays owed."""
        end = self.loop.time() + _CALM_LIMIT
        while going_on := [head for head in self.model.heads.values() if not head.state.close_time or head.state.owed]:
            if self.loop.time() > end:
                raise Violation(f"did not end, or still owe something: {[head.workflow_id for head in going_on]}")
            await asyncio.sleep(_LOOK)

    def _calm_down(self) -> None:
        self.calm = True
        workflows.bugs_are_fixed = True
        self.faults.calm()
        self.loop.calm()

    def _stuck(self) -> str:
        parts = []
        for record in self.model.open_runs():
            state = self.model.heads[record.key].state
            armed = sorted(self.model.armed.get(record.key, []))
            parts.append(
                f"{record.key.workflow_id} at commit {state.seq}, last event {record.events[-1].event_type}, "
                f"workflow task {state.workflow_task}, activities {list(state.activities.values())}, timers "
                f"{list(state.timers)}, buffered {len(state.buffered)}, armed {armed[:3]}, now {self.clock.now()}"
            )
        return "; ".join(parts) or f"no run is open; unfinished clients: {[x for x in self.ledgers if not x.finished]}"


def simulate(seed: int, adjust: Callable[[Scenario], Scenario] | None = None, world: type[World] = World) -> Outcome:
    """Runs one seed to its end. Raises the first :class:`Violation`, or whatever else went wrong, naming the seed."""
    drawn = world.draw(seed)
    scenario = drawn if adjust is None else adjust(drawn)
    try:
        return live_through(scenario, world)
    except BaseException as error:
        error.add_note(
            f"reproduce with: python -m tests.simulation{world.option} --start {seed} --seeds 1"
            f"{settings_of(drawn, scenario)}"
        )
        raise


def live_through(scenario: Scenario, kind: Callable[..., World]) -> Outcome:
    """One world to its end. ``kind`` makes it."""
    gc.disable()
    try:
        return _simulate(scenario, kind)
    except BaseException as error:
        _let_go(error)
        raise
    finally:
        with mock.patch.object(sys, "unraisablehook", return_value=None), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect(0)  # all that was made since collecting was switched off
        gc.enable()


def _let_go(error: BaseException | None) -> None:
    """A finding must not keep the world that it was found in."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def settings_of(drawn: Scenario, scenario: Scenario) -> str:
    """Command-line options for what was not left as drawn."""
    changed = [f.name for f in fields(drawn) if getattr(drawn, f.name) != getattr(scenario, f.name)]
    return "".join(f" --set '{name}={getattr(scenario, name)!r}'" for name in changed)


def with_settings(settings: Sequence[str]) -> Callable[[Scenario], Scenario]:
    """Reverse of what a finding's note says: each is ``name=value``."""
    values = {name: eval(value, {"FaultRates": FaultRates}) for name, _, value in (s.partition("=") for s in settings)}
    return lambda scenario: replace(scenario, **values)


def _simulate(scenario: Scenario, kind: Callable[..., World]) -> Outcome:
    seed = scenario.seed
    loop = SimulatedLoop(Random(f"loop {seed}"), pause=0.0 if scenario.rates == CALM else 0.01)
    ids = SeededIds(Random(f"ids {seed}"))
    errors = ErrorLog(_was_injected)
    with surroundings(ids, seed, errors):
        world = kind(scenario, loop, ids, errors)
        loop.set_exception_handler(lambda _, context: world.fail(_as_error(context)))
        try:
            with world.seams():
                loop.run_until_complete(world.live())
            if errors.first is not None:
                message, cause = errors.first
                raise Violation(f"an error was logged: {message}") from cause
        finally:
            loop.bury()
            loop.close()
    return Outcome(
        seed=seed,
        digest=loop.digest,
        steps=loop.steps,
        commits=world.model.commits,
        virtual_seconds=loop.time() - 1_000.0,
        faults=dict(sorted(world.faults.happened.items())),
        seen=dict(sorted((world.witness.seen + world.model.seen).items())),
        ends=ends_of(world.ledgers, world.model.runs.values()),
    )


def _was_injected(error: BaseException | None) -> bool:
    """Whether a logged error goes back to a fault that the simulation made."""
    while error is not None:
        if "simulated:" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _as_error(context: dict[str, Any]) -> BaseException:
    error = context.get("exception")
    if isinstance(error, BaseException):
        return error
    return Violation(f"the event loop reports: {context.get('message')}")
