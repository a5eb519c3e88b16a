"""Workflows of the unmodified Temporal SDK on the gateway: what its core records and replays."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity, workflow
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.common import RetryPolicy
from temporalio.converter import DataConverter, PayloadCodec
from temporalio.exceptions import ApplicationError, CancelledError, TerminatedError
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, Worker

SHORT = timedelta(seconds=20)
QUEUE = "gateway"


@activity.defn
async def greet(name: str) -> str:
    return f"Hello, {name}"


@activity.defn
async def stumble() -> int:
    if activity.info().attempt < 2:
        raise ApplicationError("not yet", {"why": "first"})
    return activity.info().attempt


@activity.defn
async def until_cancelled() -> None:
    try:
        while True:
            activity.heartbeat("still here")
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        activity.logger.debug("cancelled")
        raise


@workflow.defn
class Greeting:
    def __init__(self) -> None:
        self.names: list[str] = []

    @workflow.run
    async def run(self, name: str) -> list[str]:
        first = await workflow.execute_activity(greet, name, start_to_close_timeout=SHORT)
        await asyncio.sleep(0.01)
        await workflow.wait_condition(lambda: bool(self.names))
        return [first, *self.names]

    @workflow.signal
    def also(self, name: str) -> None:
        self.names.append(name)

    @workflow.query
    def known(self) -> list[str]:
        return self.names


@workflow.defn
class Tour:
    """A bit of all that leaves something in a history."""

    @workflow.run
    async def run(self, turn: int) -> list[Any]:
        if turn:
            workflow.continue_as_new(turn - 1)
        seen: list[Any] = [workflow.patched("tour")]
        seen.append(await workflow.execute_local_activity(greet, "local", start_to_close_timeout=SHORT))
        policy = RetryPolicy(initial_interval=timedelta(milliseconds=1))
        seen.append(await workflow.execute_activity(stumble, start_to_close_timeout=SHORT, retry_policy=policy))
        child = await workflow.start_child_workflow(Greeting.run, "child", id=f"{workflow.info().workflow_id}-child")
        await child.signal(Greeting.also, "parent")
        seen.append(await child)
        workflow.upsert_memo({"seen": len(seen)})
        return seen


@workflow.defn
class Cancelled:
    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(
            until_cancelled,
            start_to_close_timeout=SHORT,
            heartbeat_timeout=timedelta(seconds=10),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )


@asynccontextmanager
async def worker(client: Client, **options: Any) -> AsyncIterator[None]:
    async with Worker(
        client,
        task_queue=QUEUE,
        workflows=[Greeting, Tour, Cancelled],
        activities=[greet, stumble, until_cancelled],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_heartbeat_throttle_interval=timedelta(milliseconds=100),
        default_heartbeat_throttle_interval=timedelta(milliseconds=100),
        **options,
    ):
        yield


async def test_an_activity_a_timer_a_signal_and_a_query(client: Client) -> None:
    async with worker(client):
        handle = await client.start_workflow(Greeting.run, "Ada", id="w", task_queue=QUEUE)
        assert await handle.query(Greeting.known) == []
        described = await handle.describe()
        assert (described.status, described.workflow_type) == (WorkflowExecutionStatus.RUNNING, "Greeting")
        await handle.signal(Greeting.also, "Grace")
        assert await handle.result() == ["Hello, Ada", "Grace"]
        assert (await handle.describe()).status is WorkflowExecutionStatus.COMPLETED


@pytest.mark.parametrize("cached", [True, False])
async def test_what_was_recorded_replays(client: Client, cached: bool) -> None:
    """Without a cache every task comes with the whole history, and each is a replay."""
    options: dict[str, Any] = {} if cached else {"max_cached_workflows": 0}
    async with worker(client, **options):
        handle = await client.start_workflow(Tour.run, 1, id="w", task_queue=QUEUE)
        assert await handle.result() == [True, "Hello, local", 2, ["Hello, child", "parent"]]
        assert await (await handle.describe()).memo() == {"seen": 4}
    history = await client.get_workflow_handle("w").fetch_history()
    replayer = Replayer(workflows=[Tour], workflow_runner=UnsandboxedWorkflowRunner())
    assert (await replayer.replay_workflow(history)).replay_failure is None


async def test_cancellation_reaches_an_activity(client: Client) -> None:
    async with worker(client):
        handle = await client.start_workflow(Cancelled.run, id="w", task_queue=QUEUE)
        while not (await handle.describe()).raw_description.pending_activities[:1]:
            await asyncio.sleep(0.01)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
        assert isinstance(failed.value.cause, CancelledError)


async def test_termination_is_told(client: Client) -> None:
    handle = await client.start_workflow(Greeting.run, "Ada", id="w", task_queue=QUEUE)
    await handle.terminate("enough")
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    assert isinstance(failed.value.cause, TerminatedError)


class Marking(PayloadCodec):
    """Metadata that is no text, and an encoding of its own."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": b"test/marked", "mark": b"\xff\x00"}, data=payload.SerializeToString())
            for payload in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        for payload in payloads:
            assert payload.metadata["mark"] == b"\xff\x00"
        return [Payload.FromString(payload.data) for payload in payloads]


async def test_payloads_of_a_codec_come_back_as_they_were(served: Any) -> None:
    converter = replace(DataConverter.default, payload_codec=Marking())
    client = await Client.connect(served.address, data_converter=converter)
    async with worker(client):
        workflow_id = str(uuid.uuid4())
        handle = await client.start_workflow(Greeting.run, "Ada", id=workflow_id, task_queue=QUEUE)
        await handle.signal(Greeting.also, "Grace")
        assert await handle.result() == ["Hello, Ada", "Grace"]


async def test_what_is_handed_over_at_once(client: Client) -> None:
    """The first task comes with the start, and the first activity with its completion: nothing waits in a queue."""
    async with worker(client):
        handle = await client.start_workflow(Greeting.run, "Ada", id="w", task_queue=QUEUE, request_eager_start=True)
        await handle.signal(Greeting.also, "Grace")
        assert await handle.result() == ["Hello, Ada", "Grace"]
        history = await handle.fetch_history()
    assert history.events[0].workflow_execution_started_event_attributes.eager_execution_accepted


async def test_an_activity_is_leased_with_the_completion(served: Any, client: Client) -> None:
    """No poll for activities is answered: the worker has none open but that of its own slot."""
    polled: list[str] = []
    call = served.calls.call

    async def counting(operation: Any, request: Any) -> Any:
        answer = await call(operation, request)
        if operation.name == "PollActivityTask":
            polled.extend(task.activity_type for task in answer.tasks)
        return answer

    served.calls.call = counting
    async with worker(client):
        handle = await client.start_workflow(Greeting.run, "Ada", id="w", task_queue=QUEUE)
        await handle.signal(Greeting.also, "Grace")
        assert await handle.result() == ["Hello, Ada", "Grace"]
    assert polled == []
