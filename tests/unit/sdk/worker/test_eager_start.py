"""LC-08 in the SDK: a worker on the client that starts takes the first task, if it has room and knows the workflow."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.api.operations import POLL_WORKFLOW_TASK, START_WORKFLOW, Operation
from stepwell.api.requests import PollWorkflowTaskResponse
from stepwell.client import Client, RPCError
from stepwell.testing import DevEnvironment
from stepwell.transport import Transport
from stepwell.worker import Worker


@activity.defn
async def double(number: int) -> int:
    return 2 * number


@workflow.defn
async def doubles(number: int) -> int:
    return await workflow.execute_activity(double, number, start_to_close_timeout=timedelta(seconds=30))


@workflow.defn
async def unknown_here() -> None: ...


class WithoutPolls:
    """No poll gets a workflow task."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.starts: list[Any] = []

    async def call(self, operation: Operation[Any, Any], request: Any) -> Any:
        if operation is POLL_WORKFLOW_TASK:
            await asyncio.sleep(0.02)
            return PollWorkflowTaskResponse()
        if operation is START_WORKFLOW:
            self.starts.append(request.eager_worker)
        return await self.inner.call(operation, request)

    async def close(self) -> None:
        await self.inner.close()


async def test_the_worker_at_hand_runs_it_without_a_poll() -> None:
    async with await DevEnvironment.start() as env:
        transport = WithoutPolls(env.client.transport)
        client = Client(transport)
        async with Worker(client, task_queue="q", workflows=[doubles], activities=[double], identity="here"):
            result = await client.execute_workflow(
                doubles,
                21,
                id="eager",
                task_queue="q",
                request_eager_start=True,
                execution_timeout=timedelta(seconds=60),
            )
            assert result == 42
            for queue, started in (("other", doubles), ("q", unknown_here)):
                args = [1] if started is doubles else []
                await client.start_workflow(
                    started, args=args, id=f"{queue} {started}", task_queue=queue, request_eager_start=True
                )
            await client.start_workflow(doubles, 1, id="not asked for", task_queue="q")
        await client.start_workflow(doubles, 1, id="stopped", task_queue="q", request_eager_start=True)
        assert [worker is not None for worker in transport.starts] == [True, False, False, False, False]
        assert client.eager_hosts == []


async def test_room_that_was_kept_is_given_back() -> None:
    async with await DevEnvironment.start() as env:
        client = env.client
        async with Worker(
            client,
            task_queue="q",
            workflows=[doubles],
            activities=[double],
            max_concurrent_workflow_tasks=2,
            max_concurrent_workflow_task_polls=1,
        ):
            for number in range(5):
                with pytest.raises(RPCError):
                    await client.start_workflow(
                        doubles, number, id="bad", task_queue="q", cron_schedule="nonsense", request_eager_start=True
                    )
            for number in range(5):
                handle = await client.start_workflow(
                    doubles, number, id=f"{number}", task_queue="q", request_eager_start=True
                )
                assert await handle.result() == 2 * number
