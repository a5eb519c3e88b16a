"""Batch operations by the client, on a real engine in memory."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from stepwell import workflow
from stepwell.client import (
    BatchCancel,
    BatchDelete,
    BatchOperationState,
    BatchReset,
    BatchSignal,
    BatchTerminate,
    BatchUnpause,
    BatchUpdatePriority,
    Client,
    RPCError,
    WorkflowExecutionStatus,
    WorkflowHandle,
)
from stepwell.common import Priority
from stepwell.converter import ArgumentError
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker


@workflow.defn
class Order:
    def __init__(self) -> None:
        self.notes: list[str] = []

    @workflow.run
    async def run(self, wanted: int) -> list[str]:
        await workflow.wait_condition(lambda: len(self.notes) >= wanted)
        return self.notes

    @workflow.signal
    def note(self, text: str, times: int = 1) -> None:
        self.notes += [text] * times


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with await DevEnvironment.start() as environment:
        async with Worker(environment.client, task_queue="q", workflows=[Order]):
            yield environment.client


async def orders(client: Client, *ids: str, wanted: int = 2) -> list[WorkflowHandle[list[str]]]:
    return [await client.start_workflow(Order.run, wanted, id=id, task_queue="q") for id in ids]


async def test_a_signal_to_all_that_a_filter_finds(client: Client) -> None:
    handles = await orders(client, "a", "b", "c")
    batch = await client.start_batch_operation(
        BatchSignal(Order.note, ["hurry", 2]), query="WorkflowType = 'Order'", reason="it is late"
    )
    described = await batch.wait()
    assert (described.state, described.total, described.done, described.failed) == ("COMPLETED", 3, 3, 0)
    assert described.reason == "it is late" and described.identity == client.identity and not described.failures
    assert [await handle.result() for handle in handles] == [["hurry", "hurry"]] * 3
    assert [found.id async for found in client.list_batch_operations()] == [batch.id]


async def test_listed_by_id_by_handle_and_by_row(client: Client) -> None:
    first, second, third = await orders(client, "a", "b", "c")
    rows = [row async for row in client.list_workflows() if row.id == "c"]
    batch = await client.start_batch_operation(
        BatchTerminate(["why", 7]), executions=["a", second, *rows, "nobody"], id="clean-up"
    )
    described = await client.get_batch_operation_handle("clean-up").wait()
    assert (batch.id, described.done, described.failed) == ("clean-up", 3, 1)
    (failure,) = described.failures
    assert (failure.execution.workflow_id, failure.code) == ("nobody", "NOT_FOUND")
    for handle in (first, second, third):
        assert (await handle.describe()).status is WorkflowExecutionStatus.TERMINATED


async def test_every_action_becomes_its_operation(client: Client) -> None:
    (handle,) = await orders(client, "a")
    await handle.pause()
    one = {"executions": [handle]}
    for action, kind in (
        (BatchUnpause(), "UNPAUSE"),
        (BatchUpdatePriority(Priority(priority_key=1)), "UPDATE_OPTIONS"),
        (BatchReset(signals=[(Order.note, ["again"])]), "RESET"),
        (BatchCancel(), "CANCEL"),
        (BatchDelete(), "DELETE"),
    ):
        described = await (await client.start_batch_operation(action, **one)).wait()
        assert (described.operation_type, described.done, described.failures) == (kind, 1, ()), kind
    with pytest.raises(RPCError):
        await client.get_workflow_handle("a").describe()


async def test_a_batch_can_be_stopped_and_is_waited_for(client: Client) -> None:
    handles = await orders(client, "a", "b", "c")
    batch = await client.start_batch_operation(
        BatchSignal("note", ["x"]), executions=handles, max_operations_per_second=0.2
    )
    with pytest.raises(RPCError, match="running") as refused:
        await client.start_batch_operation(BatchCancel(), executions=handles)
    assert refused.value.code == "FAILED_PRECONDITION"
    waiting = asyncio.create_task(batch.wait())
    await batch.stop(reason="enough")
    assert (await waiting).state is BatchOperationState.STOPPED
    assert "enough" in (await batch.describe()).close_reason


async def test_what_does_not_fit_is_refused_at_the_call(client: Client) -> None:
    with pytest.raises(ArgumentError):
        await client.start_batch_operation(BatchSignal(Order.note, []), executions=["a"])
    with pytest.raises(ValueError, match="id is empty"):
        await client.start_batch_operation(BatchCancel(), executions=["a"], id="")
    for wrong in ("cancel", BatchCancel):
        action: Any = wrong
        with pytest.raises(TypeError, match=r"one of the batch actions, such as BatchCancel\(\), not "):
            await client.start_batch_operation(action, executions=["a"])
    with pytest.raises(RPCError, match="neither is given"):
        await client.start_batch_operation(BatchCancel())
    with pytest.raises(RPCError, match="no batch operation"):
        await client.get_batch_operation_handle("nobody").describe()
