"""Those who operate workflows, by the unmodified SDK: lists and counts, resets, task queues, search attributes."""

from datetime import UTC, datetime

import grpc.aio
import pytest
from temporalio import workflow
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import IndexedValueType, TaskQueueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, ResetWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

QUEUE = "operating"
CUSTOMER = SearchAttributeKey.for_keyword("Customer")
SINCE = SearchAttributeKey.for_datetime("Since")
WHEN = datetime(2026, 12, 1, tzinfo=UTC)


@workflow.defn
class Order:
    @workflow.run
    async def run(self) -> str:
        workflow.upsert_search_attributes([SINCE.value_set(WHEN)])
        return "done"


async def test_runs_are_found_and_counted(client: Client) -> None:
    async with Worker(client, task_queue=QUEUE, workflows=[Order], workflow_runner=UnsandboxedWorkflowRunner()):
        for number in range(3):
            attributes = TypedSearchAttributes([SearchAttributePair(CUSTOMER, f"c{number % 2}")])
            await client.execute_workflow(Order.run, id=f"o{number}", task_queue=QUEUE, search_attributes=attributes)
    found = [run async for run in client.list_workflows("Customer = 'c0'", page_size=1)]
    assert sorted(run.id for run in found) == ["o0", "o2"]
    assert found[0].typed_search_attributes[CUSTOMER] == "c0" and found[0].typed_search_attributes[SINCE] == WHEN
    assert (await client.count_workflows("WorkflowType = 'Order'")).count == 3
    groups = (await client.count_workflows("GROUP BY ExecutionStatus")).groups
    assert [(group.group_values, group.count) for group in groups] == [(["Completed"], 3)]


async def test_a_run_is_reset(client: Client) -> None:
    async with Worker(client, task_queue=QUEUE, workflows=[Order], workflow_runner=UnsandboxedWorkflowRunner()):
        handle = await client.start_workflow(Order.run, id="o", task_queue=QUEUE)
        await handle.result()
        answer = await client.workflow_service.reset_workflow_execution(
            ResetWorkflowExecutionRequest(
                namespace="default",
                workflow_execution=WorkflowExecution(workflow_id="o", run_id=handle.first_execution_run_id or ""),
                workflow_task_finish_event_id=4,
                request_id="r",
            )
        )
        again = client.get_workflow_handle("o", run_id=answer.run_id)
        assert await again.result() == "done"
        asked = DescribeTaskQueueRequest(
            namespace="default",
            task_queue=TaskQueue(name=QUEUE),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
        assert (await client.workflow_service.describe_task_queue(asked)).pollers


async def test_search_attributes_are_registered_with_their_types(client: Client) -> None:
    kinds = {
        "Amount": IndexedValueType.INDEXED_VALUE_TYPE_DOUBLE,
        "Tags": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
    }
    await client.operator_service.add_search_attributes(
        AddSearchAttributesRequest(namespace="default", search_attributes=kinds)
    )
    listed = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace="default"))
    assert listed.custom_attributes == kinds


async def test_what_is_not_there_says_so(served: object, client: Client) -> None:
    with pytest.raises(RPCError) as refused:
        await client.start_workflow("any", id="w", task_queue="q", start_signal="s", cron_schedule="nonsense")
    assert refused.value.status is RPCStatusCode.INVALID_ARGUMENT and "cron_schedule" in refused.value.message
    async with grpc.aio.insecure_channel(served.address) as channel:  # type: ignore[attr-defined]
        call = channel.unary_unary("/temporal.api.workflowservice.v1.WorkflowService/PollNexusTaskQueue")
        with pytest.raises(grpc.aio.AioRpcError) as unknown:
            await call(b"")
        assert unknown.value.code() is grpc.StatusCode.UNIMPLEMENTED and "PollNexusTaskQueue" in unknown.value.details()
