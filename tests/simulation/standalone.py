"""Stand-alone activities in the simulation (AC-28): clients that start, cancel, terminate and await them, a worker that
does their attempts, and the law for each.

- A start that is made again is the same run, and each activity comes to an end that every reader is told alike.
- What a worker was told counts is the end, unless somebody ended the activity otherwise.
- It completed only with a result that a worker has given, and was cancelled or terminated only when that was asked.
"""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import Any

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.common import ProcessIdentity, RetryPolicy
from stepwell.api.enums import WorkflowExecutionStatus as Status
from stepwell.api.errors import ApiError
from stepwell.api.failures import ApplicationFailureInfo, Failure
from stepwell.api.payloads import Payload

from tests.simulation.history_rules import Violation
from tests.simulation.loop import Process
from tests.simulation.network import SimulatedTransport
from tests.simulation.servers import MACHINE, Host, WorkerTransport
from tests.simulation.world import Scenario, World

QUEUE = "alone"
_LONGEST = 2 * 3600.0
_PAUSE = 0.5


@dataclass
class Told:
    """What happened to one activity, as those around it know."""

    given: set[bytes] = field(default_factory=set)
    """Results that workers have sent."""
    counted: set[bytes] = field(default_factory=set)
    """Those that they were told count."""
    cancelled: bool = False
    terminated: bool = False


class StandaloneWorld(World):
    def build(self) -> None:
        super().build()
        self.told: dict[str, Told] = {}
        self.workers = [AttemptWorker(self, number) for number in range(2)]

    def _clients(self) -> list[asyncio.Task[None]]:
        clients = [StandaloneClient(self, number) for number in range(self.scenario.clients)]
        return [Process(client.id).spawn(client.live()) for client in clients]

    @staticmethod
    def draw(seed: int) -> Scenario:
        return replace(World.draw(seed), small_limits=False)


class AttemptWorker(Host):
    """Does attempts after a while, or fails them, or forgets them; without the SDK."""

    def __init__(self, world: StandaloneWorld, number: int) -> None:
        super().__init__(world, f"attempt worker {number}")
        self._told = world.told
        self._number = number

    async def run(self, process: Process) -> None:
        identity = ProcessIdentity(
            machine=MACHINE, pid=40_000_000 + self._number, started=f"attempts.{self._number}.{self.incarnation}"
        )
        self.world.processes[identity] = process
        transport = WorkerTransport(self.world, identity)
        worker = r.WorkerInfo(identity=process.name, worker_key=process.name)
        poll = r.PollActivityTaskRequest(task_queue=QUEUE, worker=worker, maximum_tasks=4)
        while True:
            try:
                tasks = (await transport.call(o.POLL_ACTIVITY_TASK, poll)).tasks
            except ApiError:
                await asyncio.sleep(_PAUSE)
                continue
            for task in tasks:
                process.spawn(self._do(transport, worker, task))

    async def shut_down(self) -> None:
        self.kill()

    async def _do(self, transport: Any, worker: r.WorkerInfo, task: r.ActivityTask) -> None:
        random, told = self._random, self._told[task.activity_id]
        if task.execution.workflow_id or not task.activity_run_id:
            raise Violation(f"{task.activity_id} is said to be of workflow {task.execution.workflow_id!r}")
        await asyncio.sleep(random.choice([0.0, 0.1, 2.0]) * random.random())
        try:
            beat = r.RecordActivityHeartbeatRequest(task_token=task.task_token)
            asked = (await transport.call(o.RECORD_ACTIVITY_HEARTBEAT, beat)).cancel_requested
        except ApiError:
            return
        result = f"{task.activity_id} {task.attempt}".encode()
        outcome: r.ActivityOutcome = r.ActivityCompleted(task_token=task.task_token, result=(Payload(data=result),))
        if asked:
            outcome = r.ActivityCanceled(task_token=task.task_token)
        elif random.random() < 0.4:
            failure = Failure(message="no", info=ApplicationFailureInfo(failure_type="Trouble"))
            outcome = r.ActivityFailed(task_token=task.task_token, failure=failure)
        else:
            told.given.add(result)
        request = r.RespondActivityTasksRequest(worker=worker, outcomes=(outcome,))
        for _ in range(3):
            try:
                (reply,) = (await transport.call(o.RESPOND_ACTIVITY_TASKS, request)).replies
            except ApiError:
                await asyncio.sleep(_PAUSE)
                continue
            if not reply.error_code and isinstance(outcome, r.ActivityCompleted):
                told.counted.add(result)
            return


class StandaloneClient:
    def __init__(self, world: StandaloneWorld, number: int) -> None:
        self._world = world
        self.id = f"alone-{number}"
        self._random = Random(f"{self.id} {world.scenario.seed}")
        self._transport = SimulatedTransport(world.network)

    async def live(self) -> None:
        number = 0
        while not self._world.calm or number < 3:
            number += 1
            await asyncio.gather(
                *(self._one(f"{self.id}-{number}-{each}") for each in range(self._random.randint(1, 3)))
            )
            await asyncio.sleep(self._random.random() * 10.0)

    async def _one(self, id: str) -> None:
        random, told = self._random, Told()
        self._world.told[id] = told
        start = r.StartActivityRequest(
            activity_id=id,
            activity_type="work",
            task_queue=QUEUE,
            request_id=id,
            start_to_close_timeout=timedelta(seconds=5),
            schedule_to_close_timeout=random.choice([None, timedelta(seconds=20)]),
            heartbeat_timeout=random.choice([None, timedelta(seconds=3)]),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(seconds=random.choice([0.1, 1.0])), maximum_attempts=random.choice([0, 2])
            ),
        )
        run_id = (await self._until_answered(o.START_ACTIVITY, start)).run_id
        again = (await self._until_answered(o.START_ACTIVITY, start)).run_id
        if again != run_id:
            raise Violation(f"{id} was started as run {run_id}, and again as run {again}")
        await asyncio.sleep(random.random() * 3.0)
        named: dict[str, Any] = {"activity_id": id, "run_id": random.choice(["", run_id])}
        what = random.random()
        if what < 0.25:
            told.cancelled = True
            await self._until_answered(o.CANCEL_ACTIVITY, r.CancelActivityRequest(**named, request_id=f"{id} c"))
        elif what < 0.4:
            told.terminated = True
            await self._until_answered(o.TERMINATE_ACTIVITY, r.TerminateActivityRequest(**named), ended=True)
        self._check(id, told, await self._outcome(named))
        shown = await self._until_answered(o.DESCRIBE_ACTIVITY, r.DescribeActivityRequest(**named))
        self._check(id, told, shown.outcome)
        if shown.info.status is not shown.outcome.status or shown.info.run_id != run_id:
            raise Violation(f"{id} is shown as {shown.info}, its end is {shown.outcome}")

    def _check(self, id: str, told: Told, outcome: r.ActivityResult | None) -> None:
        if outcome is None:
            raise Violation(f"{id} has ended and has no outcome")
        results = {payload.data for payload in outcome.result}
        allowed = {
            Status.COMPLETED: len(results) == 1 and results <= told.given,
            Status.CANCELED: told.cancelled,
            Status.TERMINATED: told.terminated,
            Status.FAILED: True,
            Status.TIMED_OUT: True,
        }
        if not allowed[outcome.status]:
            raise Violation(f"{id} ended as {outcome}, but {told}")
        if told.counted and not told.terminated and (outcome.status is not Status.COMPLETED or told.counted != results):
            raise Violation(f"a worker was told that {told.counted} counts for {id}, which ended as {outcome}")

    async def _outcome(self, named: dict[str, Any]) -> r.ActivityResult:
        end = self._world.loop.time() + _LONGEST
        while True:
            poll = r.PollActivityRequest(**named, timeout=timedelta(seconds=10))
            found: r.ActivityResult | None = (await self._until_answered(o.POLL_ACTIVITY, poll)).outcome
            if found is not None:
                return found
            if self._world.loop.time() > end:
                raise Violation(f"{named} does not come to an end")

    async def _until_answered(self, operation: Any, request: Any, *, ended: bool = False) -> Any:
        """``ended``: a refusal because it has ended will do."""
        while True:
            try:
                return await self._transport.call(operation, request)
            except ApiError as error:
                if ended and error.code == "FAILED_PRECONDITION":
                    return None
                if not error.retryable:
                    raise Violation(f"{operation.name} of {request.activity_id} is refused: {error}") from error
                await asyncio.sleep(self._random.random() * 2.0)
