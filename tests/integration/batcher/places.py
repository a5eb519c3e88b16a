"""An engine with batch operations on each store, and what a test asks of it."""

import asyncio
import dataclasses
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from stepwell.api import requests as r
from stepwell.api.batches import BatchOperation
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import BatchOperationState
from stepwell.api.events import HistoryEvent, WorkflowExecutionSignaled

from stepwell_server.adapters.aws.backend import aws_backend
from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.aws.timer_leases import TimerLeases
from stepwell_server.adapters.aws.timer_rows import TimerRows
from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.batcher.batches import Batches
from stepwell_server.common.settings import EngineSettings, ProcessKind
from stepwell_server.entrypoints.aws_parts import fire_of
from stepwell_server.entrypoints.making import make_engine
from stepwell_server.frontend.routes import HANDLERS
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.engine import Engine
from stepwell_server.timer_sweeper.bucket_sweeper import BucketSweeper
from tests.support.aws.cells import Cell
from tests.support.aws.projecting import ProjectingLog
from tests.support.cases import until
from tests.support.engine import QUEUE, ShiftedClock

_numbers = itertools.count(1)
Over = Callable[[r.DescribeBatchOperationResponse], bool]


class Place:
    def __init__(self, backend: Backend, engine: Engine) -> None:
        self.backend = backend
        self.engine = engine

    @property
    def batches(self) -> Batches:
        return self.engine.attached(Batches)

    async def call(self, name: str, request: Any) -> Any:
        """As the frontend does: checked first."""
        return await HANDLERS[name](self.engine, request)

    async def runs(self, *workflow_ids: str, **more: Any) -> list[WorkflowExecution]:
        async def start(workflow_id: str) -> WorkflowExecution:
            values = {"workflow_type": "order", "task_queue": QUEUE, "request_id": f"{next(_numbers)}"} | more
            request = r.StartWorkflowRequest(workflow_id=workflow_id, **values)
            return WorkflowExecution(workflow_id=workflow_id, run_id=(await self.engine.start_workflow(request)).run_id)

        return list(await asyncio.gather(*map(start, workflow_ids)))

    async def work(self, count: int) -> None:
        """A worker does so many workflow tasks, and nothing comes of them."""
        worker = r.WorkerInfo(identity="worker", worker_key="key")
        for _ in range(count):
            poll = r.PollWorkflowTaskRequest(task_queue=QUEUE, worker=worker, timeout=timedelta(seconds=20))
            (task,) = (await self.engine.poll_workflow_task(poll)).tasks
            await self.engine.respond_workflow_task_completed(
                r.RespondWorkflowTaskCompletedRequest(
                    task_token=task.task_token, nonce=f"completion {next(_numbers)}", worker=worker
                )
            )

    async def batch(
        self, operation: BatchOperation, executions: Sequence[WorkflowExecution] = (), job_id: str = "job", **more: Any
    ) -> None:
        request = r.StartBatchOperationRequest(job_id=job_id, operation=operation, executions=tuple(executions), **more)
        await self.call("StartBatchOperation", request)

    async def described(self, job_id: str = "job") -> r.DescribeBatchOperationResponse:
        found: r.DescribeBatchOperationResponse = await self.call(
            "DescribeBatchOperation", r.DescribeBatchOperationRequest(job_id=job_id)
        )
        return found

    async def over(self, job_id: str = "job", holds: Over | None = None) -> r.DescribeBatchOperationResponse:
        """Once it is over, or something holds of it."""
        holds = holds or (lambda found: found.info.state is not BatchOperationState.RUNNING)

        async def is_so() -> bool:
            return holds(await self.described(job_id))

        await until(is_so)
        return await self.described(job_id)

    async def history(self, execution: WorkflowExecution) -> list[HistoryEvent]:
        page = await self.engine.get_history(r.GetHistoryRequest(execution=execution))
        return list(page.events)

    async def signals(self, execution: WorkflowExecution) -> list[WorkflowExecutionSignaled]:
        """Recorded, whether or not they have a number yet: nobody works here."""
        commit = await self.backend.log.find_run(ExecutionKey("default", execution.workflow_id), execution.run_id)
        state = None if commit is None else commit.state_of(execution.run_id)
        assert state is not None
        found = [event.attributes for event in await self.history(execution)]
        found += [entry.attributes for entry in state.buffered]
        return [attributes for attributes in found if isinstance(attributes, WorkflowExecutionSignaled)]

    async def status(self, execution: WorkflowExecution) -> str:
        described = await self.engine.describe_workflow(r.DescribeWorkflowRequest(execution=execution))
        return described.info.status.value


@asynccontextmanager
async def embedded(path: Path | str = ":memory:", clock: ShiftedClock | None = None) -> AsyncIterator[Place]:
    backend = embedded_backend(path, clock=clock)
    engine = make_engine(backend, EngineSettings(stop_grace=timedelta(0)))
    await engine.start()
    try:
        yield Place(backend, engine)
    finally:
        await engine.stop()
        await backend.close()


@asynccontextmanager
async def on_aws(cell: Cell, clock: ShiftedClock | None = None) -> AsyncIterator[Place]:
    """A container's engine and sweeper on the emulated tables; lists show what is written at once."""
    clients = AwsClients()
    backend = await aws_backend(AwsSettings(cell.names.cell, cell.bucket), clients=clients, clock=clock)
    projecting: Any = ProjectingLog(backend.log, backend.visibility)
    backend = dataclasses.replace(backend, log=projecting)
    engine = make_engine(backend, EngineSettings(process=ProcessKind.ONE_OF_MANY, sweeps=False))
    await engine.start()
    rows = TimerRows(clients.service("dynamodb"), cell.names.timer_table)
    leases = TimerLeases(clients.service("dynamodb"), cell.names.ctl_table)
    sweeper = BucketSweeper(rows, leases, backend.clock, fire_of(engine), "test")
    sweeper.start()
    try:
        await sweeper.ready()
        yield Place(backend, engine)
    finally:
        await sweeper.stop()
        await engine.stop()
        await backend.close()
