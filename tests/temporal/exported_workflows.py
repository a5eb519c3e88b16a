"""Runs workflows of Temporal's Python SDK on Temporal's server and keeps what it exports, for our replayer's tests.

    python -m tests.temporal.exported_workflows

The same workflows in our SDK are ``tests/replay/temporal_workflows.py``. Files are added to, never edited.
"""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from . import real_server

FOLDER = Path(__file__).resolve().parents[1] / "replay" / "temporal_histories"
SHORT = timedelta(seconds=10)
QUICK = RetryPolicy(initial_interval=timedelta(milliseconds=20), maximum_attempts=3)
QUEUE = "exported"


@activity.defn
async def echo(value: str) -> str:
    return value


@activity.defn
async def flaky(value: str) -> str:
    if activity.info().attempt < 3:
        raise ApplicationError(f"attempt {activity.info().attempt} of {value}", type="Flaky")
    return value


@activity.defn
async def refuse(value: str) -> str:
    raise ApplicationError(f"{value} is refused", {"code": 7}, type="Refused", non_retryable=True)


@workflow.defn(name="exported_activities")
class Activities:
    @workflow.run
    async def run(self, value: str) -> list[str]:
        first = await workflow.execute_activity(flaky, value, start_to_close_timeout=SHORT, retry_policy=QUICK)
        await workflow.sleep(timedelta(seconds=0.1), summary="a pause")
        try:
            await workflow.execute_activity(refuse, value, start_to_close_timeout=SHORT)
        except ActivityError as error:
            first += f", {type(error.cause).__name__}"
        both = await asyncio.gather(
            *(workflow.execute_activity(echo, text, start_to_close_timeout=SHORT) for text in ("a", "b"))
        )
        return [first, *both]


@workflow.defn(name="exported_messages")
class Messages:
    def __init__(self) -> None:
        self.heard: list[str] = []
        self.closed = False

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.wait_condition(lambda: self.closed)
        if workflow.patched("loud"):
            self.heard.append(await workflow.execute_activity(echo, "LOUD", start_to_close_timeout=SHORT))
        workflow.upsert_memo({"heard": len(self.heard)})
        return self.heard

    @workflow.signal
    def hear(self, word: str) -> None:
        self.heard.append(word)

    @workflow.update
    async def close(self, word: str) -> int:
        self.heard.append(await workflow.execute_activity(echo, word, start_to_close_timeout=SHORT))
        self.closed = True
        return len(self.heard)


@workflow.defn(name="exported_child")
class Child:
    @workflow.run
    async def run(self, value: str) -> str:
        if value == "bad":
            raise ApplicationError("the child fails", type="Child")
        return f"child of {value}"


@workflow.defn(name="exported_children")
class Children:
    @workflow.run
    async def run(self) -> list[str]:
        good = await workflow.execute_child_workflow("exported_child", "good", id=f"{workflow.info().workflow_id}-good")
        try:
            await workflow.execute_child_workflow("exported_child", "bad", id=f"{workflow.info().workflow_id}-bad")
        except ChildWorkflowError as error:
            return [str(good), type(error.cause).__name__]
        return []


@workflow.defn(name="exported_cancelled")
class Cancelled:
    @workflow.run
    async def run(self) -> str:
        try:
            await asyncio.sleep(3600)
        finally:
            await workflow.execute_activity(echo, "cleaned", start_to_close_timeout=SHORT)
        return "not reached"


@workflow.defn(name="exported_chain")
class Chain:
    @workflow.run
    async def run(self, left: int) -> str:
        await workflow.sleep(timedelta(seconds=0.05))
        if left:
            workflow.continue_as_new(left - 1)
        return "done"


WORKFLOWS = [Activities, Messages, Children, Child, Cancelled, Chain]
ACTIVITIES = [echo, flaky, refuse]


async def run_all(client: Client) -> dict[str, str]:
    """The histories as JSON, by name."""
    async with Worker(
        client,
        task_queue=QUEUE,
        workflows=WORKFLOWS,
        activities=ACTIVITIES,
        workflow_runner=UnsandboxedWorkflowRunner(),
        identity="exported",
    ):

        async def start(name: str, *args: Any) -> WorkflowHandle[Any, Any]:
            return await client.start_workflow(f"exported_{name}", args=args, id=f"exported-{name}", task_queue=QUEUE)

        handles = {
            "activities": await start("activities", "parcel"),
            "messages": await start("messages"),
            "children": await start("children"),
            "cancelled": await start("cancelled"),
            "chain": await start("chain", 1),
        }
        await handles["messages"].signal("hear", "one")
        await handles["messages"].execute_update("close", "two")
        await _first_task(handles["cancelled"])
        await handles["cancelled"].cancel()
        for handle in handles.values():
            try:
                await handle.result()
            except WorkflowFailureError:
                pass
        return {name: (await handle.fetch_history()).to_json() for name, handle in handles.items()}


async def _first_task(handle: WorkflowHandle[Any, Any]) -> None:
    while len((await handle.fetch_history()).events) < 5:
        await asyncio.sleep(0.05)


async def main() -> None:
    async with real_server.running() as address:
        histories = await run_all(await Client.connect(address))
    FOLDER.mkdir(exist_ok=True)
    for name, text in histories.items():
        path = FOLDER / f"{name}.json"
        if path.exists():
            print(f"{path.name} is there already, and is not edited")
        else:
            path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
