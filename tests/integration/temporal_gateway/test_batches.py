"""Batch operations by the unmodified SDK's client."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.empty_pb2 import Empty
from google.protobuf.field_mask_pb2 import FieldMask
from temporalio import workflow
from temporalio.api.batch.v1 import (
    BatchOperationCancelActivities,
    BatchOperationReset,
    BatchOperationSignal,
    BatchOperationTerminateActivities,
    BatchOperationTermination,
    BatchOperationUnpauseActivities,
    BatchOperationUpdateActivityOptions,
)
from temporalio.api.common.v1 import Execution, Payloads, ResetOptions, WorkflowExecution
from temporalio.api.enums.v1 import BatchOperationState, BatchOperationType, ExecutionType
from temporalio.api.workflowservice.v1 import (
    DescribeBatchOperationRequest,
    DescribeBatchOperationResponse,
    ListBatchOperationsRequest,
    StartBatchOperationRequest,
    StopBatchOperationRequest,
)
from temporalio.client import ActivityExecutionStatus, Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.support.cases import until

QUEUE = "many"
COMPLETED = BatchOperationState.BATCH_OPERATION_STATE_COMPLETED


@workflow.defn
class Waits:
    def __init__(self) -> None:
        self.heard: list[str] = []

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.wait_condition(lambda: bool(self.heard))
        return self.heard

    @workflow.signal
    def hear(self, word: str) -> None:
        self.heard.append(word)


async def start(client: Client, job: str, **more: Any) -> None:
    asked = StartBatchOperationRequest(namespace="default", job_id=job, reason="because", **more)
    await client.workflow_service.start_batch_operation(asked)


async def ended(client: Client, job: str) -> DescribeBatchOperationResponse:
    asked = DescribeBatchOperationRequest(namespace="default", job_id=job)

    async def over() -> DescribeBatchOperationResponse | None:
        answer = await client.workflow_service.describe_batch_operation(asked)
        return answer if answer.HasField("close_time") else None

    return await until(over)


async def test_runs_that_a_query_finds_are_signalled(client: Client) -> None:
    async with Worker(client, task_queue=QUEUE, workflows=[Waits], workflow_runner=UnsandboxedWorkflowRunner()):
        handles = [await client.start_workflow(Waits.run, id=f"w{number}", task_queue=QUEUE) for number in range(3)]
        said = Payloads(payloads=client.data_converter.payload_converter.to_payloads(["hello"]))
        signal = BatchOperationSignal(signal="hear", input=said, identity="me")
        await start(client, "signals", visibility_query="WorkflowType = 'Waits'", signal_operation=signal)
        assert await asyncio.gather(*[handle.result() for handle in handles]) == [["hello"]] * 3
        answer = await ended(client, "signals")
        assert (answer.state, answer.operation_type) == (COMPLETED, BatchOperationType.BATCH_OPERATION_TYPE_SIGNAL)
        assert (answer.total_operation_count, answer.complete_operation_count) == (3, 3)
        assert (answer.reason, answer.identity) == ("because", "me") and "WorkflowType = 'Waits'" in answer.query
        reset = BatchOperationReset(options=ResetOptions(first_workflow_task=Empty()))
        await start(client, "resets", executions=[WorkflowExecution(workflow_id="w0")], reset_operation=reset)
        assert (await ended(client, "resets")).complete_operation_count == 1
        assert (await client.get_workflow_handle("w0").describe()).run_id != handles[0].first_execution_run_id


async def test_listed_runs_are_terminated_and_what_failed_is_counted(client: Client) -> None:
    handle = await client.start_workflow(Waits.run, id="w", task_queue=QUEUE)
    named = [WorkflowExecution(workflow_id="w"), WorkflowExecution(workflow_id="nobody")]
    await start(client, "ends", executions=named, termination_operation=BatchOperationTermination(identity="me"))
    answer = await ended(client, "ends")
    assert (answer.state, answer.complete_operation_count, answer.failure_operation_count) == (COMPLETED, 1, 1)
    assert (await handle.describe()).status is WorkflowExecutionStatus.TERMINATED
    listed = await client.workflow_service.list_batch_operations(ListBatchOperationsRequest(namespace="default"))
    assert [(info.job_id, info.state) for info in listed.operation_info] == [("ends", COMPLETED)]


async def test_a_batch_is_stopped(client: Client) -> None:
    for number in range(3):
        await client.start_workflow(Waits.run, id=f"w{number}", task_queue=QUEUE)
    await start(
        client,
        "slow",
        visibility_query="WorkflowType = 'Waits'",
        termination_operation=BatchOperationTermination(),
        max_operations_per_second=0.001,
    )
    stop = StopBatchOperationRequest(namespace="default", job_id="slow", reason="enough", identity="me")
    await client.workflow_service.stop_batch_operation(stop)
    assert (await ended(client, "slow")).state == BatchOperationState.BATCH_OPERATION_STATE_FAILED
    with pytest.raises(RPCError) as unknown:
        await ended(client, "nobody")
    assert unknown.value.status is RPCStatusCode.NOT_FOUND


async def test_activities_without_a_workflow_are_cancelled_by_name_and_terminated_by_query(client: Client) -> None:
    limit = timedelta(minutes=1)
    for name in ("a", "b"):
        await client.start_activity("call", id=name, task_queue="nobody", schedule_to_close_timeout=limit)
    named = [Execution(type=ExecutionType.EXECUTION_TYPE_ACTIVITY, business_id="a")]
    await start(client, "one", target_executions=named, cancel_activities_operation=BatchOperationCancelActivities())
    assert (await ended(client, "one")).complete_operation_count == 1
    rest = BatchOperationTerminateActivities(reason="enough")
    await start(client, "rest", visibility_query="ActivityType = 'call'", terminate_activities_operation=rest)
    answer = await ended(client, "rest")
    assert answer.operation_type == BatchOperationType.BATCH_OPERATION_TYPE_TERMINATE_ACTIVITY
    expected = {"a": ActivityExecutionStatus.CANCELED, "b": ActivityExecutionStatus.TERMINATED}

    async def over() -> bool:
        return {it.activity_id: it.status async for it in client.list_activities("")} == expected

    await until(over)


@pytest.mark.parametrize(
    ("operation", "status", "word"),
    [
        ({}, RPCStatusCode.INVALID_ARGUMENT, "operation"),
        (
            {
                "cancel_activities_operation": BatchOperationCancelActivities(),
                "target_executions": [Execution(type=ExecutionType.EXECUTION_TYPE_WORKFLOW, business_id="w")],
            },
            RPCStatusCode.INVALID_ARGUMENT,
            "activities without a workflow",
        ),
        (
            {"unpause_activities_operation": BatchOperationUnpauseActivities(match_all=True)},
            RPCStatusCode.UNIMPLEMENTED,
            "type",
        ),
        ({"reset_operation": BatchOperationReset()}, RPCStatusCode.INVALID_ARGUMENT, "options"),
        (
            {"reset_operation": BatchOperationReset(options=ResetOptions(workflow_task_id=4))},
            RPCStatusCode.INVALID_ARGUMENT,
            "last_workflow_task",
        ),
        (
            {
                "update_activity_options_operation": BatchOperationUpdateActivityOptions(
                    type="any", update_mask=FieldMask(paths=["heartbeat_timeout"])
                )
            },
            RPCStatusCode.INVALID_ARGUMENT,
            "heartbeat_timeout",
        ),
    ],
)
async def test_what_is_not_there_says_so(
    client: Client, operation: dict[str, Any], status: RPCStatusCode, word: str
) -> None:
    with pytest.raises(RPCError, match=word) as refused:
        await start(client, "b", visibility_query="WorkflowType = 'Waits'", **operation)
    assert refused.value.status is status
