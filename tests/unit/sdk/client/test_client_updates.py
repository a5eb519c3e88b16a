"""Updates and messages that start their workflow, through the client, on a real engine in memory."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from stepwell import workflow
from stepwell.client import (
    Client,
    Interceptor,
    OutboundInterceptor,
    RPCError,
    StartWorkflowUpdateInput,
    StartWorkflowUpdateWithStartInput,
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
    WorkflowUpdateHandle,
    WorkflowUpdateRPCTimeoutOrCancelledError,
    WorkflowUpdateStage,
)
from stepwell.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from stepwell.converter import ArgumentError
from stepwell.exceptions import ApplicationError, WorkflowAlreadyStartedError
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker


@workflow.defn
class Counter:
    def __init__(self) -> None:
        self.count = 0
        self.ended = False

    @workflow.run
    async def run(self) -> int:
        await workflow.wait_condition(lambda: self.ended)
        return self.count

    @workflow.update
    async def add(self, number: int) -> int:
        self.count += number
        return self.count

    @add.validator
    def check_add(self, number: int) -> None:
        if number < 0:
            raise ApplicationError("only up")

    @workflow.update
    async def wait(self) -> None:
        await workflow.wait_condition(lambda: self.ended)

    @workflow.signal
    def put(self, number: int, another: int = 0) -> None:
        self.count += number + another

    @workflow.signal
    def end(self) -> None:
        self.ended = True


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with await DevEnvironment.start() as env:
        async with Worker(env.client, task_queue="q", workflows=[Counter]):
            yield env.client


def operation(
    policy: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.USE_EXISTING, id: str = "c"
) -> WithStartWorkflowOperation[int]:
    return WithStartWorkflowOperation(Counter.run, id=id, task_queue="q", id_conflict_policy=policy)


async def test_stages_and_handles(client: Client) -> None:
    handle = await client.start_workflow(Counter.run, id="c", task_queue="q")
    assert await handle.execute_update(Counter.add, 3) == 3
    assert await handle.execute_update("add", 1, result_type=int) == 4
    sent = await handle.start_update(Counter.wait, id="w", wait_for_stage=WorkflowUpdateStage.ACCEPTED)
    assert (sent.id, sent.workflow_id, sent.workflow_run_id) == ("w", "c", handle.result_run_id)
    with pytest.raises(WorkflowUpdateRPCTimeoutOrCancelledError, match="get_update_handle"):
        await sent.result(rpc_timeout=timedelta(milliseconds=20))
    with pytest.raises(WorkflowUpdateRPCTimeoutOrCancelledError):
        await handle.execute_update(Counter.wait, id="w", rpc_timeout=timedelta(milliseconds=20))
    await handle.signal(Counter.end)
    with pytest.raises(WorkflowUpdateFailedError):
        await handle.get_update_handle_for(Counter.wait, "w").result()
    assert await handle.result() == 4


async def test_what_is_refused_at_the_call(client: Client) -> None:
    handle = await client.start_workflow(Counter.run, id="c", task_queue="q")
    with pytest.raises(ArgumentError, match="takes 1 argument"):
        await handle.execute_update(Counter.add)
    with pytest.raises(ValueError, match="id is empty"):
        await handle.execute_update(Counter.add, 1, id="")
    with pytest.raises(ValueError, match="not an update"):
        await handle.execute_update(Counter.put, 1)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="one argument goes by position"):
        await handle.start_update(Counter.add, 1, 2, wait_for_stage=WorkflowUpdateStage.COMPLETED)  # type: ignore[call-overload]
    for wait in (1, "1s"):
        with pytest.raises(TypeError, match=f"rpc_timeout must be a timedelta, not {wait!r}; write timedelta"):
            await handle.execute_update(Counter.add, 1, rpc_timeout=wait)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="start_workflow_operation must be a WithStartWorkflowOperation, not NoneType"):
        await client.execute_update_with_start_workflow(Counter.add, 1, start_workflow_operation=None)  # type: ignore[call-overload]
    assert await handle.execute_update(Counter.add, 0) == 0, "none of them came through"
    with pytest.raises(RPCError, match="limit is 2097152"):
        await handle.execute_update("add", "x" * 2_100_000)
    with pytest.raises(RPCError, match="update_id has 1001 bytes"):
        await handle.execute_update(Counter.add, 1, id="i" * 1001)
    with pytest.raises(RPCError, match="knows no update"):
        await handle.get_update_handle("never").result()
    with pytest.raises(ValueError, match="id is empty"):
        await client.execute_update_with_start_workflow(Counter.add, 1, start_workflow_operation=operation(), id="")


async def test_update_with_start(client: Client) -> None:
    start = operation()
    assert await client.execute_update_with_start_workflow(Counter.add, 5, start_workflow_operation=start) == 5
    handle = await start.workflow_handle()
    again = operation()
    sent = await client.start_update_with_start_workflow(
        "add", 2, start_workflow_operation=again, wait_for_stage=WorkflowUpdateStage.ACCEPTED, result_type=int
    )
    assert await sent.result() == 7
    assert (await again.workflow_handle()).result_run_id == handle.result_run_id
    with pytest.raises(RuntimeError, match="good for one call"):
        await client.execute_update_with_start_workflow(Counter.add, 5, start_workflow_operation=again)
    with pytest.raises(WorkflowUpdateFailedError):
        await client.execute_update_with_start_workflow(Counter.add, -1, start_workflow_operation=operation())
    refused = operation(WorkflowIDConflictPolicy.FAIL)
    waiting = asyncio.create_task(refused.workflow_handle())
    with pytest.raises(WorkflowAlreadyStartedError):
        await client.execute_update_with_start_workflow(Counter.add, 1, start_workflow_operation=refused)
    with pytest.raises(WorkflowAlreadyStartedError):
        await waiting
    await handle.signal(Counter.end)
    assert await handle.result() == 7


async def test_signal_with_start(client: Client) -> None:
    options = {"id": "c", "task_queue": "q"}
    first = await client.start_workflow(Counter.run, start_signal="put", start_signal_args=[3, 4], **options)
    second = await client.start_workflow(Counter.run, start_signal="put", start_signal_args=[1], **options)
    assert second.result_run_id == first.result_run_id
    assert await client.execute_workflow(Counter.run, start_signal="end", **options) == 8
    with pytest.raises(WorkflowAlreadyStartedError):
        await client.start_workflow(
            Counter.run, start_signal="put", id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE, **options
        )


async def test_interceptors_see_updates() -> None:
    seen: list[str] = []

    class Outbound(OutboundInterceptor):
        async def start_workflow_update(self, input: StartWorkflowUpdateInput) -> WorkflowUpdateHandle[int]:
            seen.append(input.update)
            return await super().start_workflow_update(input)

        async def start_update_with_start_workflow(
            self, input: StartWorkflowUpdateWithStartInput
        ) -> WorkflowUpdateHandle[int]:
            seen.append(f"{input.start.workflow} {input.update.update}")
            return await super().start_update_with_start_workflow(input)

    class Seeing(Interceptor):
        def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
            return Outbound(next)

    async with await DevEnvironment.start() as env:
        client = Client(env.client.transport, interceptors=[Seeing()])
        async with Worker(client, task_queue="q", workflows=[Counter]):
            await client.execute_update_with_start_workflow(Counter.add, 1, start_workflow_operation=operation())
            assert await client.get_workflow_handle("c").execute_update(Counter.add, 1) == 2
    assert seen == ["Counter add", "add"]
