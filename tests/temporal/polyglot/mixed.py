"""A Python workflow whose activities are in TypeScript: values, failures and heartbeats across the languages."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from . import typescript
from .steps import LIMIT, Step

WORKFLOW_QUEUE, ACTIVITY_QUEUE = (f"mixed-{kind}-{uuid.uuid4()}" for kind in ("workflows", "activities"))


@workflow.defn
class CallsTypeScript:
    @workflow.run
    async def run(self, activity: str, argument: Any, queue: str) -> Any:
        try:
            return await workflow.execute_activity(
                activity,
                argument,
                task_queue=queue,
                start_to_close_timeout=timedelta(seconds=30),
                retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=50)),
            )
        except ActivityError as error:
            if not isinstance(error.cause, ApplicationError):
                raise
            return [error.cause.type, error.cause.message, *error.cause.details]


EXPECTED = {
    "result": ("greet", "Ada", "Hello, Ada, at attempt 2"),
    "failure": ("refuse", "no such thing", ["Refused", "no such thing", {"by": "TypeScript", "codes": [4, 2]}]),
    "heartbeat": ("countUp", 10, {"from": 9, "to": 10}),
}
"""What is called in each step, and what comes back; the names are those of typescript/src/activities.ts."""


async def run(address: str, folder: Path) -> list[Step]:
    built = await asyncio.to_thread(typescript.build, folder / "typescript")
    client = await Client.connect(address)
    command = typescript.command(address, ACTIVITY_QUEUE)
    served = await asyncio.create_subprocess_exec(*command, cwd=built, stdin=asyncio.subprocess.PIPE)
    assert served.stdin is not None
    try:
        async with Worker(
            client,
            task_queue=WORKFLOW_QUEUE,
            workflows=[CallsTypeScript],
            workflow_runner=UnsandboxedWorkflowRunner(),  # the sandbox would import this package's relatives anew
        ):
            return [await told(step, lambda step=step: called(client, step)) for step in EXPECTED]
    finally:
        served.stdin.close()
        try:
            async with asyncio.timeout(30):
                await served.wait()
        except TimeoutError:
            served.kill()
            await served.wait()


async def called(client: Client, step: str) -> None:
    activity, argument, expected = EXPECTED[step]
    name = f"mixed-{step}-{uuid.uuid4()}"
    arguments = [activity, argument, ACTIVITY_QUEUE]
    got = await client.execute_workflow(CallsTypeScript.run, args=arguments, id=name, task_queue=WORKFLOW_QUEUE)
    if got != expected:
        raise AssertionError(f"expected {expected!r}, got {got!r}")


async def told(step: str, work: Callable[[], Awaitable[None]]) -> Step:
    """Whatever goes wrong is the outcome of the step, not the end of the run."""
    try:
        async with asyncio.timeout(LIMIT / len(EXPECTED)):
            await work()
    except Exception as error:
        return Step(step=step, passed=False, reason=f"{type(error).__name__}: {error}")
    return Step(step=step, passed=True)
