"""The workflows of ``tests/temporal/exported_workflows.py``, in our SDK: what those recorded replays in these."""

import asyncio
from datetime import timedelta

from stepwell import activity, workflow
from stepwell.common import RetryPolicy
from stepwell.exceptions import ActivityError, ApplicationError, ChildWorkflowError

SHORT = timedelta(seconds=10)
QUICK = RetryPolicy(initial_interval=timedelta(milliseconds=20), maximum_attempts=3)


@activity.defn
async def echo(value: str) -> str:
    return value


@activity.defn
async def flaky(value: str) -> str:
    return value


@activity.defn
async def refuse(value: str) -> str:
    return value


@workflow.defn(name="exported_activities")
async def activities(value: str) -> list[str]:
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
async def child(value: str) -> str:
    if value == "bad":
        raise ApplicationError("the child fails", type="Child")
    return f"child of {value}"


@workflow.defn(name="exported_children")
async def children() -> list[str]:
    own = workflow.info().workflow_id
    good = await workflow.execute_child_workflow(child, "good", id=f"{own}-good")
    try:
        await workflow.execute_child_workflow(child, "bad", id=f"{own}-bad")
    except ChildWorkflowError as error:
        return [good, type(error.cause).__name__]
    return []


@workflow.defn(name="exported_cancelled")
async def cancelled() -> str:
    try:
        await asyncio.sleep(3600)
    finally:
        await workflow.execute_activity(echo, "cleaned", start_to_close_timeout=SHORT)
    return "not reached"


@workflow.defn(name="exported_chain")
async def chain(left: int) -> str:
    await workflow.sleep(timedelta(seconds=0.05))
    if left:
        workflow.continue_as_new(left - 1)
    return "done"


WORKFLOWS = [activities, Messages, children, child, cancelled, chain]
