"""Activities without a workflow, by the unmodified SDK."""

import asyncio
from datetime import timedelta

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from temporalio import activity
from temporalio.api.workflowservice.v1 import (
    DeleteActivityExecutionRequest,
    DescribeNamespaceRequest,
    PauseActivityExecutionRequest,
    ResetActivityExecutionRequest,
    StartActivityExecutionRequest,
    UnpauseActivityExecutionRequest,
    UpdateActivityExecutionOptionsRequest,
)
from temporalio.client import ActivityExecutionStatus, ActivityFailureError, Client, PendingActivityState
from temporalio.exceptions import ActivityAlreadyStartedError, ApplicationError, CancelledError, TerminatedError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Worker

QUEUE = "alone"
LIMIT = timedelta(minutes=1)


@activity.defn
async def charge(amount: int) -> str:
    info = activity.info()
    assert info.workflow_id is None and info.activity_run_id
    if amount < 0:
        raise ApplicationError("no such amount", non_retryable=True)
    return f"charged {amount} for {info.activity_id}"


@activity.defn
async def elsewhere() -> str:
    activity.raise_complete_async()


async def test_results_failures_and_what_is_told_of_them(client: Client) -> None:
    asked = DescribeNamespaceRequest(namespace="default")
    described = await client.workflow_service.describe_namespace(asked)
    assert described.namespace_info.capabilities.standalone_activities
    async with Worker(client, task_queue=QUEUE, activities=[charge, elsewhere]):
        common = {"task_queue": QUEUE, "start_to_close_timeout": LIMIT}
        assert await client.execute_activity(charge, 7, id="a", summary="for people", **common) == "charged 7 for a"
        failed = await client.start_activity(charge, -1, id="b", **common)
        with pytest.raises(ActivityFailureError) as error:
            await failed.result()
        assert isinstance(error.value.cause, ApplicationError) and error.value.cause.message == "no such amount"
        assert (await failed.describe()).status is ActivityExecutionStatus.FAILED

        by_hand = await client.start_activity(elsewhere, id="c", **common)
        while (await by_hand.describe()).last_started_time is None:
            await asyncio.sleep(0.02)
        with pytest.raises(ActivityAlreadyStartedError):
            await client.start_activity(elsewhere, id="c", **common)
        await client.get_async_activity_handle(activity_id="c", run_id=by_hand.run_id).complete("by hand")
        assert await by_hand.result() == "by hand"

    found = {it.activity_id: it.status async for it in client.list_activities("ActivityType != 'elsewhere'")}
    assert found == {"a": ActivityExecutionStatus.COMPLETED, "b": ActivityExecutionStatus.FAILED}
    assert (await client.count_activities("ActivityId = 'c'")).count == 1
    assert not [it async for it in client.list_workflows()]


async def test_one_that_waits_is_cancelled_and_one_is_terminated_and_deleted(client: Client) -> None:
    common = {"task_queue": "nobody", "schedule_to_close_timeout": LIMIT}
    handle = await client.start_activity(charge, 1, id="a", **common)
    await handle.cancel(reason="not needed")
    with pytest.raises(ActivityFailureError) as error:
        await handle.result()
    assert isinstance(error.value.cause, CancelledError)
    assert (await handle.describe()).canceled_reason == "not needed"

    handle = await client.start_activity(charge, 1, id="a", **common)
    await handle.terminate(reason="enough")
    with pytest.raises(ActivityFailureError) as error:
        await handle.result()
    assert isinstance(error.value.cause, TerminatedError)
    deleted = DeleteActivityExecutionRequest(namespace="default", activity_id="a", run_id=handle.run_id or "")
    await client.workflow_service.delete_activity_execution(deleted)
    with pytest.raises(RPCError) as missing:
        await handle.describe()
    assert missing.value.status is RPCStatusCode.NOT_FOUND


async def test_who_operates_one_pauses_it_changes_its_options_and_lets_it_begin_anew(client: Client) -> None:
    service, named = client.workflow_service, {"namespace": "default", "activity_id": "a"}
    handle = await client.start_activity(charge, 1, id="a", task_queue="nobody", schedule_to_close_timeout=LIMIT)
    await service.pause_activity_execution(PauseActivityExecutionRequest(**named, reason="wait"))
    assert (await handle.describe()).run_state is PendingActivityState.PAUSED
    change = UpdateActivityExecutionOptionsRequest(**named, update_mask=FieldMask(paths=["task_queue.name"]))
    change.activity_options.task_queue.name = QUEUE
    await service.update_activity_execution_options(change)
    await service.unpause_activity_execution(UnpauseActivityExecutionRequest(**named))
    await service.reset_activity_execution(ResetActivityExecutionRequest(**named))
    async with Worker(client, task_queue=QUEUE, activities=[charge]):
        assert await handle.result() == "charged 1 for a"
    with pytest.raises(RPCError) as over:
        await service.pause_activity_execution(PauseActivityExecutionRequest(**named))
    assert over.value.status is RPCStatusCode.NOT_FOUND


async def test_callbacks_are_refused_rather_than_forgotten(client: Client) -> None:
    request = StartActivityExecutionRequest(namespace="default", activity_id="a")
    request.completion_callbacks.add().nexus.url = "https://example.com"
    with pytest.raises(RPCError, match="completion_callbacks of an activity without a workflow") as refused:
        await client.workflow_service.start_activity_execution(request)
    assert refused.value.status is RPCStatusCode.UNIMPLEMENTED
