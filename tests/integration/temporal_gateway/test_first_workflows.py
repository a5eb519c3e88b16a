"""Workflows of the unmodified Temporal SDK on the gateway."""

import asyncio
import uuid
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker


@activity.defn
async def greet(name: str) -> str:
    return f"Hello, {name}"


@workflow.defn
class Greeting:
    def __init__(self) -> None:
        self.names: list[str] = []

    @workflow.run
    async def run(self, name: str) -> list[str]:
        first = await workflow.execute_activity(greet, name, start_to_close_timeout=timedelta(seconds=20))
        await asyncio.sleep(0.01)
        await workflow.wait_condition(lambda: bool(self.names))
        return [first, *self.names]

    @workflow.signal
    def also(self, name: str) -> None:
        self.names.append(name)


async def test_a_workflow_with_an_activity_a_timer_and_a_signal(client: Client) -> None:
    queue = f"queue-{uuid.uuid4()}"
    async with Worker(
        client, task_queue=queue, workflows=[Greeting], activities=[greet], workflow_runner=UnsandboxedWorkflowRunner()
    ):
        handle = await client.start_workflow(Greeting.run, "Ada", id="greeting", task_queue=queue)
        await handle.signal(Greeting.also, "Grace")
        assert await handle.result() == ["Hello, Ada", "Grace"]
    history = await handle.fetch_history()
    assert history.events[0].workflow_execution_started_event_attributes.workflow_id == "greeting"
