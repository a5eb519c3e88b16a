"""Short ways to call operations with the records that tests need."""

import itertools
from datetime import timedelta
from typing import Any

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.commands import Command
from stepwell.api.common import WorkflowExecution
from stepwell.api.events import HistoryEvent
from stepwell.api.operations import Operation
from stepwell.api.payloads import Payload, Payloads
from stepwell.transport import Transport

QUEUE = "orders"
WORKER = r.WorkerInfo(identity="worker-1", worker_key="key-1")
SOON = timedelta(milliseconds=200)
_numbers = itertools.count(1)


def json_payload(text: str) -> Payloads:
    return (Payload(metadata={"encoding": "json/plain"}, data=text.encode()),)


class ApiClient:
    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def call(self, operation: Operation[Any, Any], /, **fields: Any) -> Any:
        return await self.transport.call(operation, operation.request_type(**fields))

    async def start(self, workflow_id: str = "order-1", **fields: Any) -> r.StartWorkflowResponse:
        return await self.call(
            o.START_WORKFLOW,
            **({"workflow_id": workflow_id, "workflow_type": "Order", "task_queue": QUEUE} | fields),
        )

    async def signal(self, workflow_id: str = "order-1", **fields: Any) -> None:
        await self.call(
            o.SIGNAL_WORKFLOW,
            **({"execution": WorkflowExecution(workflow_id=workflow_id), "signal_name": "ship"} | fields),
        )

    async def describe(self, workflow_id: str = "order-1", run_id: str = "") -> r.DescribeWorkflowResponse:
        execution = WorkflowExecution(workflow_id=workflow_id, run_id=run_id)
        return await self.call(o.DESCRIBE_WORKFLOW, execution=execution)

    async def history(self, workflow_id: str = "order-1", **fields: Any) -> list[HistoryEvent]:
        events: list[HistoryEvent] = []
        token = b""
        while True:
            page = await self.call(
                o.GET_HISTORY,
                execution=WorkflowExecution(workflow_id=workflow_id),
                next_page_token=token,
                **fields,
            )
            events += page.events
            token = page.next_page_token
            if not token:
                return events

    async def workflow_task(self) -> r.WorkflowTask:
        response = await self.call(o.POLL_WORKFLOW_TASK, task_queue=QUEUE, worker=WORKER, timeout=timedelta(seconds=5))
        (task,) = response.tasks
        return task

    async def complete(
        self, task: r.WorkflowTask, *commands: Command, **fields: Any
    ) -> r.RespondWorkflowTaskCompletedResponse:
        return await self.call(
            o.RESPOND_WORKFLOW_TASK_COMPLETED,
            task_token=task.task_token,
            nonce=f"nonce {next(_numbers)}",
            worker=WORKER,
            commands=commands,
            **fields,
        )
