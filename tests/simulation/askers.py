"""Workflows that signal others, and the worker that carries them out by hand.

A run's plan is its input: rounds of targets. In each it sends one signal to each of them; a patient one awaits all
answers before the next round and before its end, a rash one closes with whatever it has not heard of, so that it owes
it. Each signal has a name of its own, by which the verdict finds it.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
from stepwell.api import events as e
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.commands import Command, CompleteWorkflowExecution, SignalExternalWorkflowExecution
from stepwell.api.common import ProcessIdentity, WorkflowExecution
from stepwell.api.enums import WorkflowIDConflictPolicy
from stepwell.api.errors import ApiError, NotFound, WorkflowExecutionAlreadyStarted
from stepwell.api.events import HistoryEvent
from stepwell.api.payloads import ENCODING, ENCODING_JSON, Payload

from tests.simulation.loop import Process
from tests.simulation.network import SimulatedTransport
from tests.simulation.servers import MACHINE, Host, WorkerTransport

if TYPE_CHECKING:
    from tests.simulation.world import World

ASKER_TYPE = "asker"
ASKER_QUEUE = "askers"
_TASK_TIMEOUT = timedelta(seconds=2)
_PAUSE = 0.5

_ANSWERS = (e.ExternalWorkflowExecutionSignaled, e.SignalExternalWorkflowExecutionFailed)


class Plan(msgspec.Struct, frozen=True):
    rounds: list[list[WorkflowExecution]]
    rash: bool


def draw_plan(random: Random, targets: Sequence[WorkflowExecution]) -> Plan:
    most = random.choice([2, 6, 40])
    rounds = [[random.choice(targets) for _ in range(random.randint(1, most))] for _ in range(random.randint(1, 3))]
    return Plan(rounds, random.random() < 0.5)


def next_commands(events: Sequence[HistoryEvent], run_id: str) -> list[Command]:
    """What the run decides on its history: a function of it, as workflow code is."""
    bodies = [event.attributes for event in events]
    plan = _plan_of(bodies[0])
    asked = sum(isinstance(body, e.SignalExternalWorkflowExecutionInitiated) for body in bodies)
    answered = sum(isinstance(body, _ANSWERS) for body in bodies)
    if not plan.rash and answered < asked:
        return []
    starts = [sum(map(len, plan.rounds[:number])) for number in range(len(plan.rounds))]
    if asked not in starts:
        return [CompleteWorkflowExecution()]
    number = starts.index(asked)
    commands: list[Command] = [
        _signal(target, f"x {run_id} {asked + index}") for index, target in enumerate(plan.rounds[number])
    ]
    if plan.rash and number == len(plan.rounds) - 1:
        commands.append(CompleteWorkflowExecution())
    return commands


def _plan_of(started: Any) -> Plan:
    if not isinstance(started, e.WorkflowExecutionStarted):
        raise TypeError(f"a history begins with {type(started).__name__}")
    return msgspec.json.decode(started.input[0].data, type=Plan)


def _signal(target: WorkflowExecution, name: str) -> SignalExternalWorkflowExecution:
    return SignalExternalWorkflowExecution(execution=target, signal_name="note", input=(_payload(name),))


def _payload(value: Any) -> Payload:
    return Payload(metadata={ENCODING: ENCODING_JSON}, data=msgspec.json.encode(value))


class AskerHost(Host):
    """A worker without the SDK: it polls, reads the history, and says what the plan says."""

    def __init__(self, world: "World") -> None:
        super().__init__(world, "asker worker")
        self._leaving = False

    async def run(self, process: Process) -> None:
        started = f"asker.{self.incarnation}"
        identity = ProcessIdentity(machine=MACHINE, pid=20_000_000, started=started)
        self.world.processes[identity] = process
        self._leaving = False
        self._transport = WorkerTransport(self.world, identity)
        self._worker = r.WorkerInfo(identity=process.name, worker_key=process.name)
        poll = r.PollWorkflowTaskRequest(task_queue=ASKER_QUEUE, worker=self._worker, maximum_tasks=2)
        while not self._leaving:
            try:
                tasks = (await self._transport.call(o.POLL_WORKFLOW_TASK, poll)).tasks
                for task in tasks:
                    await self._work_on(task)
            except ApiError:
                await asyncio.sleep(_PAUSE)

    async def _work_on(self, task: r.WorkflowTask) -> None:
        events: list[HistoryEvent] = []
        token = b""
        first = task.events[0].event_id
        while first > 1:
            request = r.GetHistoryRequest(execution=task.execution, next_page_token=token)
            page = await self._transport.call(o.GET_HISTORY, request)
            events += [event for event in page.events if event.event_id < first]
            token = page.next_page_token
            if not token:
                break
        completion = r.RespondWorkflowTaskCompletedRequest(
            task_token=task.task_token,
            nonce=self.world.ids.nonce(),
            worker=self._worker,
            commands=tuple(next_commands([*events, *task.events], task.execution.run_id)),
        )
        for _ in range(3):
            try:
                await self._transport.call(o.RESPOND_WORKFLOW_TASK_COMPLETED, completion)
            except ApiError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(_PAUSE)
            else:
                return

    async def shut_down(self) -> None:
        """Ends behind the poll that is open."""
        self._leaving = True


class AskerClient:
    """Starts askers of one id, one over or behind the other, and now and then ends one."""

    def __init__(self, world: "World", number: int, targets: Sequence[str]) -> None:
        self._world = world
        self._random = Random(f"asker {world.scenario.seed} {number}")
        self._id = f"ask-{number}"
        self._targets = targets
        self._transport = SimulatedTransport(world.network)

    async def live(self) -> None:
        random = self._random
        await asyncio.sleep(random.random() * 30.0)
        for count in range(random.randint(1, 4)):
            run_id = await self._start(count)
            if random.random() < 0.2:
                await asyncio.sleep(random.random() * 5.0)
                await self._terminate(run_id)
            elif random.random() < 0.4 and not self._world.calm:
                await asyncio.sleep(random.random() * 10.0)  # and the next start goes over it
                continue
            await self._wait_for_end(run_id)

    async def _start(self, count: int) -> str:
        request = r.StartWorkflowRequest(
            workflow_id=self._id,
            workflow_type=ASKER_TYPE,
            task_queue=ASKER_QUEUE,
            input=(_payload(draw_plan(self._random, list(self._possible_targets()))),),
            workflow_task_timeout=_TASK_TIMEOUT,
            request_id=f"{self._id} {count}",
            workflow_id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING,
        )
        return (await self._until_answered(o.START_WORKFLOW, request)).run_id

    def _possible_targets(self) -> Iterator[WorkflowExecution]:
        """Mostly programs; also some that are not there, other askers, itself, and a run that may be over."""
        for workflow_id in self._targets:
            yield from [WorkflowExecution(workflow_id=workflow_id)] * 3
        for workflow_id in ("ask-0", "ask-1", "nobody"):
            yield WorkflowExecution(workflow_id=workflow_id)
        for record in list(self._world.model.runs.values())[-2:]:
            yield WorkflowExecution(workflow_id=record.key.workflow_id, run_id=record.run_id)

    async def _terminate(self, run_id: str) -> None:
        execution = WorkflowExecution(workflow_id=self._id, run_id=run_id)
        with contextlib.suppress(NotFound):
            await self._until_answered(o.TERMINATE_WORKFLOW, r.TerminateWorkflowRequest(execution=execution))

    async def _wait_for_end(self, run_id: str) -> None:
        execution = WorkflowExecution(workflow_id=self._id, run_id=run_id)
        token = b""
        while True:
            request = r.GetHistoryRequest(
                execution=execution, wait_new_event=True, close_event_only=True, next_page_token=token
            )
            response = await self._until_answered(o.GET_HISTORY, request)
            if response.events:
                return
            token = response.next_page_token

    async def _until_answered(self, operation: Any, request: Any) -> Any:
        while True:
            try:
                return await self._transport.call(operation, request)
            except (NotFound, WorkflowExecutionAlreadyStarted):
                raise
            except ApiError:
                await asyncio.sleep(_PAUSE * (0.5 + self._random.random()))
