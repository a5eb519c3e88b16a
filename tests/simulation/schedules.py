"""Schedules in the simulation: clients that make them and order them about, a worker for what they start, and the law
that each time is acted on once by its overlap policy.

What is checked at the end, when a schedule was paused and all has settled:

- Every time that its definition names up to its cursor, and every one that was ordered, was started or is counted among
  those that were not: none is lost, none counts twice.
- What it says it has started are the runs that are in the histories, one for each action.
- By a policy other than ALLOW_ALL no two runs were ever open at the same time.
"""

import asyncio
import itertools
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any

from stepwell.api import events as e
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api import schedules as s
from stepwell.api.commands import Command, CompleteWorkflowExecution, FailWorkflowExecution
from stepwell.api.common import ProcessIdentity
from stepwell.api.enums import ScheduleCatchUpPolicy, ScheduleOverlapPolicy
from stepwell.api.errors import ApiError, ConflictTokenMismatch
from stepwell.api.failures import ApplicationFailureInfo, Failure
from stepwell.transport import Transport

from stepwell_server.common.control import ControlRecord
from stepwell_server.scheduler import state
from stepwell_server.scheduler.spec import matching_times
from stepwell_server.scheduler.state import KIND, ScheduleRecord
from tests.simulation.history_rules import Violation
from tests.simulation.loop import Process
from tests.simulation.model import RunRecord
from tests.simulation.network import SimulatedTransport
from tests.simulation.servers import MACHINE, Host, WorkerTransport
from tests.simulation.world import Scenario, World

QUEUE = "scheduled"
_PAUSE = 0.5
_SETTLES = 2 * 3600.0
"""Virtual seconds without faults in which everything that a paused schedule has begun is over: longer than tasks and
debts that were lost take to be sent again, one run behind the other."""


class Scheduled(World):
    """Each client has a schedule in place of a workflow. Of any world."""

    clocks_differ = 0.0
    """Seconds by which the clock of who acts may be behind the right time."""

    def build(self) -> None:
        super().build()
        self.workers = [QuickWorker(self)]

    def _clients(self) -> list[asyncio.Task[None]]:
        clients = [ScheduleClient(self, number) for number in range(self.scenario.clients)]
        return [Process(client.id).spawn(client.live()) for client in clients]

    async def schedule(self, id: str) -> ControlRecord | None:
        """As a process without faults reads it."""
        return await self.backend.control.get(KIND, "default", id)


class ScheduledWorld(Scheduled):
    @staticmethod
    def draw(seed: int) -> Scenario:
        """Clocks run on: a schedule goes by them."""
        return replace(World.draw(seed), clock_jumps=False, small_limits=False)


class QuickWorker(Host):
    """Does what is started after a while, or fails it; without the SDK."""

    def __init__(self, world: World) -> None:
        super().__init__(world, "quick worker")

    async def run(self, process: Process) -> None:
        identity = ProcessIdentity(machine=MACHINE, pid=30_000_000, started=f"quick.{self.incarnation}")
        self.world.processes[identity] = process
        transport = self.transport(identity)
        worker = r.WorkerInfo(identity=process.name, worker_key=process.name)
        poll = r.PollWorkflowTaskRequest(task_queue=QUEUE, worker=worker, maximum_tasks=4)
        while True:
            try:
                tasks = (await transport.call(o.POLL_WORKFLOW_TASK, poll)).tasks
            except ApiError:
                await asyncio.sleep(_PAUSE)
                continue
            for task in tasks:
                process.spawn(self._work_on(transport, worker, task))

    def transport(self, identity: ProcessIdentity) -> Transport:
        return WorkerTransport(self.world, identity)

    async def shut_down(self) -> None:
        self.kill()

    async def _work_on(self, transport: Transport, worker: r.WorkerInfo, task: r.WorkflowTask) -> None:
        await asyncio.sleep(self._random.choice([0.0, 0.0, 1.0, 8.0]) * self._random.random())
        command: Command = CompleteWorkflowExecution()
        if self._random.random() < 0.15:
            command = FailWorkflowExecution(
                failure=Failure(message="no paper", info=ApplicationFailureInfo(failure_type="Trouble"))
            )
        done = r.RespondWorkflowTaskCompletedRequest(
            task_token=task.task_token, nonce=self.world.ids.nonce(), worker=worker, commands=(command,)
        )
        for _ in range(3):
            try:
                await transport.call(o.RESPOND_WORKFLOW_TASK_COMPLETED, done)
                return
            except ApiError:
                await asyncio.sleep(_PAUSE)


class ScheduleClient:
    def __init__(self, world: Scheduled, number: int) -> None:
        self._world = world
        self.id = f"schedule-{number}"
        self._random = random = Random(f"{self.id} {world.scenario.seed}")
        self._transport = SimulatedTransport(world.network)
        self._numbers = itertools.count(1)
        self.ordered = 0
        """Times that were ordered by triggers and backfills, which were all acknowledged."""
        self.overrides = False
        """Orders have had overlap policies of their own."""
        self.schedule = s.Schedule(
            spec=s.ScheduleSpec(
                intervals=(s.ScheduleIntervalSpec(every=timedelta(seconds=random.choice([2, 5, 11, 30]))),),
                jitter=timedelta(seconds=random.choice([0, 0, 1, 4])),
            ),
            action=s.ScheduleAction(
                start_workflow=s.NewWorkflowExecutionInfo(
                    workflow_id=self._prefix(),
                    workflow_type="quick",
                    task_queue=QUEUE,
                    workflow_task_timeout=timedelta(seconds=world.scenario.task_timeout),
                )
            ),
            policies=s.SchedulePolicies(
                overlap_policy=random.choice(list(ScheduleOverlapPolicy)),
                catchup_window=timedelta(seconds=random.choice([10, 30, 3_600])),
                pause_on_failure=random.random() < 0.2,
                catch_up_on_unpause=random.choice(list(ScheduleCatchUpPolicy)),
            ),
        )

    async def live(self) -> None:
        await asyncio.sleep(self._random.random() * 10.0)
        create = r.CreateScheduleRequest(schedule_id=self.id, schedule=self.schedule, request_id=self._request_id())
        await self._until_answered(o.CREATE_SCHEDULE, create)
        while not self._world.calm:
            await asyncio.sleep(self._random.random() * 20.0)
            await self._order()
        await asyncio.sleep(60.0)
        record = await self._record()
        if not record.schedule.state.paused and self._world.clock.now() - record.cursor > timedelta(
            seconds=45 + self._world.clocks_differ
        ):
            raise Violation(f"{self.id} has stopped at {record.cursor}, it is {self._world.clock.now()}")
        await self._patch(pause="the end")
        record = await self._settled()
        self._check(record)

    async def _order(self) -> None:
        random = self._random
        match random.choice(["trigger", "backfill", "pause", "unpause", "unpause", "update", "read"]):
            case "trigger":
                await self._patch(trigger_immediately=r.TriggerImmediatelyRequest(overlap_policy=self._policy()))
                self.ordered += 1
            case "backfill":
                start = self._world.clock.now() - timedelta(days=1)
                end = start + timedelta(seconds=random.choice([5, 40]))
                backfill = r.BackfillRequest(start_time=start, end_time=end, overlap_policy=self._policy())
                await self._patch(backfill=(backfill,))
                self.ordered += self._count(start, end)
            case "pause":
                await self._patch(pause="wait")
            case "unpause":
                await self._patch(unpause="go on")
            case "update":
                await self._update()
            case _:
                await self._until_answered(o.DESCRIBE_SCHEDULE, r.DescribeScheduleRequest(schedule_id=self.id))

    def _policy(self) -> ScheduleOverlapPolicy | None:
        if self._random.random() < 0.7:
            return None
        self.overrides = True
        return self._random.choice(list(ScheduleOverlapPolicy))

    async def _update(self) -> None:
        """What it is already, from what was read: nothing may come of it."""
        described = await self._until_answered(o.DESCRIBE_SCHEDULE, r.DescribeScheduleRequest(schedule_id=self.id))
        update = r.UpdateScheduleRequest(
            schedule_id=self.id,
            schedule=described.schedule,
            conflict_token=described.conflict_token,
            request_id=self._request_id(),
        )
        try:
            await self._until_answered(o.UPDATE_SCHEDULE, update)
        except ConflictTokenMismatch:
            return

    async def _patch(self, **patch: Any) -> None:
        request = r.PatchScheduleRequest(
            schedule_id=self.id, patch=r.SchedulePatch(**patch), request_id=self._request_id()
        )
        await self._until_answered(o.PATCH_SCHEDULE, request)

    def _request_id(self) -> str:
        return f"{self.id} request {next(self._numbers)}"

    async def _until_answered(self, operation: Any, request: Any) -> Any:
        while True:
            try:
                return await self._transport.call(operation, request)
            except ApiError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(self._random.random() * 2.0)

    # --- what must be true ---

    async def _record(self) -> ScheduleRecord:
        stored = await self._world.schedule(self.id)
        if stored is None:
            raise Violation(f"{self.id} is gone")
        return state.decode(stored.value)

    async def _settled(self) -> ScheduleRecord:
        """The record when nothing waits or runs any more."""
        end = self._world.loop.time() + _SETTLES
        while True:
            record = await self._record()
            if not (record.buffer or record.backfills or record.runs or self._open_runs()):
                return record
            if self._world.loop.time() > end:
                raise Violation(f"{self.id} does not settle: {record.buffer} {record.runs} {self._open_runs()}")
            await asyncio.sleep(5.0)

    def _runs(self) -> list[RunRecord]:
        prefix = f"{self._prefix()}-2"
        return [run for run in self._world.model.runs.values() if run.key.workflow_id.startswith(prefix)]

    def _prefix(self) -> str:
        """Of the workflow ids of its runs, before the year."""
        return f"{self.id}-run"

    def _open_runs(self) -> list[str]:
        return [run.run_id for run in self._runs() if not _closed(run)]

    def _count(self, after: datetime, end: datetime) -> int:
        return sum(1 for _ in matching_times(self.schedule.spec, after + timedelta(microseconds=1), end))

    def _check(self, record: ScheduleRecord) -> None:
        runs = self._runs()
        twice = [name for name, count in Counter(_request_of(run) for run in runs).items() if count > 1]
        if twice:
            raise Violation(f"{self.id}: actions that were started twice: {twice}")
        if len(runs) != record.action_count:
            raise Violation(f"{self.id} counts {record.action_count} actions, and has {len(runs)} runs")
        named = self._count(record.create_time, record.cursor) + self.ordered
        told = record.action_count + record.missed_catchup_window + record.missed_paused
        told += record.start_refused + record.overlap_skipped + record.buffer_dropped + (record.held is not None)
        if named != told:
            raise Violation(
                f"{self.id}: {named} times by its definition and by orders, and {told} dealt with: {record}"
            )
        policy = self.schedule.policies.overlap_policy
        if policy is not ScheduleOverlapPolicy.ALLOW_ALL and not self.overrides:
            self._check_alone(runs)

    def _check_alone(self, runs: list[RunRecord]) -> None:
        """By the order of commits: times of events are those of machines, whose clocks need not agree."""
        runs.sort(key=lambda run: run.began)
        for earlier, later in pairwise(runs):
            if later.began <= earlier.ended or not earlier.ended:
                raise Violation(f"{self.id}: {later.key.workflow_id} began before {earlier.key.workflow_id} had ended")


def _closed(run: RunRecord) -> bool:
    last = run.events[-1].attributes
    return isinstance(last, e.WorkflowExecutionCompleted | e.WorkflowExecutionFailed | e.WorkflowExecutionTerminated)


def _request_of(run: RunRecord) -> str:
    started = run.events[0].attributes
    assert isinstance(started, e.WorkflowExecutionStarted)
    return started.request_id
