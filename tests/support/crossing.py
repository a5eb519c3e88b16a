"""Workflows that ask things of each other, turn by turn, on an engine that is driven by requests."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from stepwell.api.commands import CompleteWorkflowExecution, StartChildWorkflowExecution
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.requests import TerminateWorkflowRequest, WorkflowTask

from stepwell_server.history.commit import ExecutionKey
from tests.support.engine import QUEUE, Driver, payload, types

TIMEOUT = 20.0
DONE = CompleteWorkflowExecution(result=payload("done"))
BRIEF: Any = {"stop_grace": timedelta(milliseconds=20)}
PARENT, KID = ExecutionKey("default", "parent"), ExecutionKey("default", "kid")


def kid(workflow_id: str = "kid", **more: Any) -> StartChildWorkflowExecution:
    return StartChildWorkflowExecution(
        workflow_id=workflow_id, workflow_type="pack", task_queue=QUEUE, input=payload("box"), **more
    )


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not await condition():
            await asyncio.sleep(0.01)


async def take(driver: Driver, workflow_id: str) -> WorkflowTask:
    """The next workflow task of this workflow; those of others are put back when their time is over."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            task = await driver.poll_workflow(timedelta(milliseconds=50))
            if task is not None and task.execution.workflow_id == workflow_id:
                return task


async def begin(driver: Driver, *commands: Any) -> str:
    """A parent whose first workflow task has these commands."""
    run_id = await driver.start("parent")
    answer = await driver.complete((await take(driver, "parent")).task_token, *commands)
    assert answer.outcome == "ACCEPTED", answer.message
    return run_id


async def turn(driver: Driver, workflow_id: str, *commands: Any) -> list[str]:
    """One workflow task; what it was shown."""
    task = await take(driver, workflow_id)
    answer = await driver.complete(task.task_token, *commands)
    assert answer.outcome == "ACCEPTED", answer.message
    return types(task.events)


async def drive(driver: Driver, workflow_id: str, event: str) -> None:
    """Turns of a workflow that asks for nothing, until this is in its history."""

    async def there() -> bool:
        if event in types(await driver.history(workflow_id)):
            return True
        task = await driver.poll_workflow(timedelta(milliseconds=10))
        if task is not None and task.execution.workflow_id == workflow_id:
            await driver.complete(task.task_token)
        return False

    await until(there)


async def terminate(driver: Driver, workflow_id: str) -> None:
    execution = WorkflowExecution(workflow_id=workflow_id)
    await driver.engine.terminate_workflow(TerminateWorkflowRequest(execution=execution, reason="the test"))


async def settled(driver: Driver, key: ExecutionKey) -> None:
    async def nothing_owed() -> bool:
        head = await driver.store.head(key)
        return head is not None and not head.state.owed

    await until(nothing_owed)


async def status(driver: Driver, workflow_id: str = "kid") -> WorkflowExecutionStatus:
    return (await driver.describe(workflow_id)).info.status
