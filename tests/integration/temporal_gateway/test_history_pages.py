"""A worker that has no run in memory reads long histories page by page."""

import asyncio

import pytest
from temporalio import workflow
from temporalio.api.enums.v1 import EventType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    GetWorkflowExecutionHistoryRequest,
    PollWorkflowTaskQueueRequest,
    PollWorkflowTaskQueueResponse,
    RegisterNamespaceRequest,
    RespondWorkflowTaskCompletedRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from stepwell_server.temporal_gateway import task_history

QUEUE = "pages"


@workflow.defn
class Collecting:
    def __init__(self) -> None:
        self.seen: list[int] = []

    @workflow.run
    async def run(self, count: int) -> list[int]:
        await workflow.wait_condition(lambda: len(self.seen) >= count)
        await asyncio.sleep(0.001)
        return self.seen

    @workflow.signal
    def add(self, number: int) -> None:
        self.seen.append(number)

    @workflow.query
    def count(self) -> int:
        return len(self.seen)


async def test_tasks_and_queries_come_with_all_pages(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_history, "PAGE_EVENTS", 4)
    async with Worker(
        client,
        task_queue=QUEUE,
        workflows=[Collecting],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_cached_workflows=0,
    ):
        handle = await client.start_workflow(Collecting.run, 5, id="w", task_queue=QUEUE)
        for number in range(4):
            await handle.signal(Collecting.add, number)
            assert await handle.query(Collecting.count) == number + 1
        await handle.signal(Collecting.add, 4)
        assert await handle.result() == [0, 1, 2, 3, 4]
        history = await handle.fetch_history()
        assert [event.event_id for event in history.events] == list(range(1, len(history.events) + 1))
        assert EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED not in [event.event_type for event in history.events]


async def test_a_page_of_a_task_is_of_its_namespace(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """MT-09, for what only this process knows."""
    monkeypatch.setattr(task_history, "PAGE_EVENTS", 2)
    service = client.workflow_service
    await service.register_namespace(RegisterNamespaceRequest(namespace="other"))

    async def poll() -> PollWorkflowTaskQueueResponse:
        return await service.poll_workflow_task_queue(
            PollWorkflowTaskQueueRequest(namespace="default", task_queue=TaskQueue(name=QUEUE))
        )

    await client.start_workflow("Any", id="w", task_queue=QUEUE)
    completed = RespondWorkflowTaskCompletedRequest(namespace="default", task_token=(await poll()).task_token)
    await service.respond_workflow_task_completed(completed)
    await client.get_workflow_handle("w").signal("more")
    task = await poll()
    assert task.next_page_token and len(task.history.events) == 2
    asked = GetWorkflowExecutionHistoryRequest(
        namespace="other", execution=task.workflow_execution, next_page_token=task.next_page_token
    )
    with pytest.raises(RPCError, match="workflow task of this page") as refused:
        await service.get_workflow_execution_history(asked)
    assert refused.value.status is RPCStatusCode.NOT_FOUND
    asked.namespace = "default"
    assert (await service.get_workflow_execution_history(asked)).history.events[0].event_id == 3
