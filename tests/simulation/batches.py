"""Batch operations in the simulation: clients that signal and end what they have started by batches, and the law that
each batch comes to its end and reaches each of its workflows once.

Nobody works on these workflows, so that what is recorded is what batches have done.
"""

import asyncio
from dataclasses import replace
from random import Random
from typing import Any

from stepwell.api import batches as b
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import BatchOperationState
from stepwell.api.errors import ApiError, FailedPrecondition
from stepwell.api.events import WorkflowExecutionSignaled, WorkflowExecutionTerminated

from stepwell_server.history.commit import ExecutionKey
from tests.simulation.history_rules import Violation
from tests.simulation.loop import Process
from tests.simulation.network import SimulatedTransport
from tests.simulation.schedules import QuickWorker
from tests.simulation.world import Scenario, World

_LONGEST = 2 * 3600.0
"""Virtual seconds within which a batch is over: longer than turns, faults and repeats take."""


class BatchedWorld(World):
    """Each client has a few workflows, and batches for them."""

    def build(self) -> None:
        super().build()
        self.batches: list[BatchClient] = []
        self.workers = [QuickWorker(self)]

    def _clients(self) -> list[asyncio.Task[None]]:
        self.batches += [BatchClient(self, number) for number in range(self.scenario.clients)]
        return [Process(client.id).spawn(client.live()) for client in self.batches]

    @staticmethod
    def draw(seed: int) -> Scenario:
        """Clocks run on, since leases go by them."""
        return replace(World.draw(seed), clock_jumps=False, small_limits=False)


class BatchClient:
    def __init__(self, world: BatchedWorld, number: int) -> None:
        self._world = world
        self.id = f"batch-{number}"
        self._random = Random(f"{self.id} {world.scenario.seed}")
        self._transport = SimulatedTransport(world.network)
        self._runs: list[WorkflowExecution] = []

    async def live(self) -> None:
        random = self._random
        for number in range(random.randint(2, 14)):
            start = r.StartWorkflowRequest(
                workflow_id=f"{self.id}-{number}", workflow_type=self.id, task_queue="nobody", request_id=f"{number}"
            )
            started = await self._until_answered(o.START_WORKFLOW, start)
            self._runs.append(WorkflowExecution(workflow_id=start.workflow_id, run_id=started.run_id))
        sent, deletes = 0, random.random() < 0.5
        while not sent or not (self._world.calm or deletes):  # who deletes does so while things still fail
            await asyncio.sleep(random.random() * 20.0)
            sent += 1
            await self._batch(f"{self.id} signal {sent}", b.BatchSignal(signal_name=f"signal {sent}"))
        await self._batch(f"{self.id} end", b.BatchTerminate())
        for run in self._runs:
            await self._check(run, sent)
        if deletes:
            await self._batch(f"{self.id} delete", b.BatchDelete())
            for run in self._runs:
                await self._check_gone(run)

    async def _batch(self, job_id: str, operation: b.BatchOperation) -> None:
        """Until it is done with all, by a list, with or without run ids, or by a filter."""
        random, tries = self._random, 0
        match random.choice(["runs", "ids", "filter"]):
            case "runs":
                what: dict[str, Any] = {"executions": tuple(self._runs)}
            case "ids":
                what = {"executions": tuple([replace_run(run) for run in self._runs])}
            case _:
                what = {"query": f"WorkflowType = '{self.id}'"}
        what["max_operations_per_second"] = random.choice([0.0, 3.0, 0.5])
        while True:
            tries += 1
            name = f"{job_id} try {tries}"
            await self._start(r.StartBatchOperationRequest(job_id=name, operation=operation, **what))
            described = await self._over(name)
            counts = described.info.complete_operation_count, described.info.failure_operation_count
            if described.info.state is BatchOperationState.COMPLETED and counts == (len(self._runs), 0):
                return
            if described.info.state is not BatchOperationState.FAILED or counts != (0, 0):
                raise Violation(f"{name} of {len(self._runs)} workflows: {described}")

    async def _start(self, request: r.StartBatchOperationRequest) -> None:
        while True:
            try:
                await self._until_answered(o.START_BATCH_OPERATION, request)
                return
            except FailedPrecondition as refused:
                if refused.details.get("cause") != "BATCH_RUNNING":
                    raise
                await asyncio.sleep(1.0 + self._random.random() * 5.0)

    async def _over(self, job_id: str) -> r.DescribeBatchOperationResponse:
        end = self._world.loop.time() + _LONGEST
        while True:
            described: r.DescribeBatchOperationResponse = await self._until_answered(
                o.DESCRIBE_BATCH_OPERATION, r.DescribeBatchOperationRequest(job_id=job_id)
            )
            if described.info.state is not BatchOperationState.RUNNING:
                return described
            if self._world.loop.time() > end:
                raise Violation(f"{job_id} does not come to an end: {described}")
            await asyncio.sleep(2.0)

    async def _until_answered(self, operation: Any, request: Any) -> Any:
        while True:
            try:
                return await self._transport.call(operation, request)
            except ApiError as error:
                if not error.retryable:
                    raise
                await asyncio.sleep(self._random.random() * 2.0)

    async def _check_gone(self, run: WorkflowExecution) -> None:
        """In the end no run is found, whoever died. Who died after the last record of it leaves that to retention."""
        key = ExecutionKey("default", run.workflow_id)
        end = self._world.loop.time() + _LONGEST
        while (head := await self._world.backend.log.head(key)) is not None and not head.state.deleted:
            if self._world.loop.time() > end:
                raise Violation(f"{run.workflow_id} is still there: {head}")
            await asyncio.sleep(5.0)

    async def _check(self, run: WorkflowExecution, sent: int) -> None:
        """Ended by a batch, with each signal once."""
        key = ExecutionKey("default", run.workflow_id)
        page = await self._world.backend.log.read_events(key, run.run_id, 0, 10_000)
        found = [event.attributes for event in page.events]
        signals = [each.signal_name for each in found if isinstance(each, WorkflowExecutionSignaled)]
        if sorted(signals) != sorted(f"signal {number + 1}" for number in range(sent)):
            raise Violation(f"{run.workflow_id} was signalled {signals}, by {sent} batches")
        if not isinstance(found[-1], WorkflowExecutionTerminated):
            raise Violation(f"{run.workflow_id} is not ended: {found[-1]}")


def replace_run(run: WorkflowExecution) -> WorkflowExecution:
    return WorkflowExecution(workflow_id=run.workflow_id)
