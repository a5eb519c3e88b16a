"""Those who operate workflows, by the unmodified SDK: lists and counts, resets, task queues, search attributes."""

import warnings
from datetime import UTC, datetime, timedelta

import grpc.aio
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from temporalio import workflow
from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.common.v1 import Priority, RetryPolicy, WorkflowExecution
from temporalio.api.enums.v1 import IndexedValueType, TaskQueueType
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
    RemoveSearchAttributesRequest,
)
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import PendingActivityInfo, WorkflowExecutionOptions
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    GetSearchAttributesRequest,
    ResetStickyTaskQueueRequest,
    ResetWorkflowExecutionRequest,
    UpdateActivityOptionsRequest,
    UpdateWorkflowExecutionOptionsRequest,
)
from temporalio.client import Client
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.support.cases import until

QUEUE = "operating"
CUSTOMER = SearchAttributeKey.for_keyword("Customer")
SINCE = SearchAttributeKey.for_datetime("Since")
VERSIONS = SearchAttributeKey.for_keyword_list("TemporalChangeVersion")
WHEN = datetime(2026, 12, 1, tzinfo=UTC)


@workflow.defn
class Order:
    @workflow.run
    async def run(self) -> str:
        workflow.upsert_search_attributes([SINCE.value_set(WHEN)])
        return "done"


@workflow.defn
class Changed:
    @workflow.run
    async def run(self) -> str:
        return "new" if workflow.patched("greeting") else "old"


@workflow.defn
class Untyped:
    @workflow.run
    async def run(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            workflow.upsert_search_attributes({"Customer": ["ada"]})


@workflow.defn
class Calls:
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(
            "call", activity_id="call", task_queue="nobody", start_to_close_timeout=timedelta(minutes=1)
        )


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


async def test_versions_of_changed_code_are_searched_for(client: Client) -> None:
    async with Worker(client, task_queue=QUEUE, workflows=[Changed], workflow_runner=UnsandboxedWorkflowRunner()):
        handle = await client.start_workflow(Changed.run, id="p", task_queue=QUEUE)
        assert await handle.result() == "new"
    assert (await handle.describe()).typed_search_attributes[VERSIONS] == ["greeting"]
    assert (await client.count_workflows("TemporalChangeVersion = 'greeting'")).count == 1
    assert (await client.count_workflows("WorkflowId = 'TemporalChangeVersion'")).count == 0


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
    keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
    assert listed.system_attributes["WorkflowType"] == listed.system_attributes["TemporalScheduledById"] == keyword
    gone = RemoveSearchAttributesRequest(namespace="default", search_attributes=["Tags"])
    await client.operator_service.remove_search_attributes(gone)
    with pytest.raises(RPCError) as unknown:
        await client.operator_service.remove_search_attributes(gone)
    assert unknown.value.status is RPCStatusCode.NOT_FOUND
    left = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace="default"))
    assert set(left.custom_attributes) == {"Amount"}
    everywhere = await client.workflow_service.get_search_attributes(GetSearchAttributesRequest())
    assert everywhere.keys == listed.system_attributes


async def test_workflow_code_gives_attributes_without_a_type_the_registered_one(client: Client) -> None:
    asked = AddSearchAttributesRequest(
        namespace="default", search_attributes={"Customer": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD}
    )
    await client.operator_service.add_search_attributes(asked)
    async with Worker(client, task_queue=QUEUE, workflows=[Untyped], workflow_runner=UnsandboxedWorkflowRunner()):
        handle = await client.start_workflow(Untyped.run, id="u", task_queue=QUEUE)
        await handle.result()
    assert (await handle.describe()).typed_search_attributes[CUSTOMER] == "ada"
    assert (await client.count_workflows("Customer = 'ada'")).count == 1


async def test_options_of_a_pending_activity_and_of_its_run_are_changed(client: Client) -> None:
    async with Worker(client, task_queue=QUEUE, workflows=[Calls], workflow_runner=UnsandboxedWorkflowRunner()):
        handle = await client.start_workflow(Calls.run, id="c", task_queue=QUEUE)

        async def pending() -> PendingActivityInfo | None:
            found = (await handle.describe()).raw_description.pending_activities
            return found[0] if found else None

        await until(pending)
    service, run = client.workflow_service, WorkflowExecution(workflow_id="c")
    asked = UpdateActivityOptionsRequest(
        namespace="default",
        execution=run,
        id="call",
        activity_options=ActivityOptions(
            task_queue=TaskQueue(name="others"), retry_policy=RetryPolicy(maximum_attempts=7)
        ),
        update_mask=FieldMask(paths=["task_queue.name", "retry_policy.maximum_attempts"]),
    )
    changed = (await service.update_activity_options(asked)).activity_options
    assert (changed.task_queue.name, changed.retry_policy.maximum_attempts) == ("others", 7)
    assert changed.start_to_close_timeout.seconds == 60
    asked.update_mask.paths[:] = ["priority"]
    with pytest.raises(RPCError, match="priority") as unknown:
        await service.update_activity_options(asked)
    assert unknown.value.status is RPCStatusCode.UNIMPLEMENTED
    options = UpdateWorkflowExecutionOptionsRequest(
        namespace="default",
        workflow_execution=run,
        workflow_execution_options=WorkflowExecutionOptions(priority=Priority(priority_key=1)),
        update_mask=FieldMask(paths=["priority"]),
    )
    answer = await service.update_workflow_execution_options(options)
    assert answer.workflow_execution_options.priority.priority_key == 1
    events = [event async for event in handle.fetch_history_events()]
    updated = events[-1].workflow_execution_options_updated_event_attributes
    assert updated.priority.priority_key == 1
    started = next(event for event in events if event.HasField("workflow_task_started_event_attributes"))
    assert started.workflow_task_started_event_attributes.identity == client.identity
    forget = ResetStickyTaskQueueRequest(namespace="default", execution=run)
    await service.reset_sticky_task_queue(forget)
    await handle.terminate()
    with pytest.raises(RPCError) as closed:
        await service.reset_sticky_task_queue(forget)
    assert closed.value.status is RPCStatusCode.NOT_FOUND


async def test_what_is_not_there_says_so(served: object, client: Client) -> None:
    with pytest.raises(RPCError) as refused:
        await client.start_workflow("any", id="w", task_queue="q", start_signal="s", cron_schedule="nonsense")
    assert refused.value.status is RPCStatusCode.INVALID_ARGUMENT and "cron_schedule" in refused.value.message
    async with grpc.aio.insecure_channel(served.address) as channel:  # type: ignore[attr-defined]
        for name in ("PollNexusTaskQueue", "ListTaskQueuePartitions", "GetWorkerTaskReachability"):
            call = channel.unary_unary(f"/temporal.api.workflowservice.v1.WorkflowService/{name}")
            with pytest.raises(grpc.aio.AioRpcError) as unknown:
                await call(b"")
            assert unknown.value.code() is grpc.StatusCode.UNIMPLEMENTED
            assert f"{name} of temporal.api.workflowservice.v1.WorkflowService is not" in unknown.value.details()
