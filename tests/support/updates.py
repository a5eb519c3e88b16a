"""Updates as clients send them and workers answer them, in requests."""

from datetime import timedelta
from typing import Any

from stepwell.api import requests as r
from stepwell.api.commands import (
    AcceptUpdate,
    Command,
    CompleteUpdate,
    CompleteWorkflowExecution,
    RejectUpdate,
)
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowUpdateStage
from stepwell.api.updates import UpdateOutcome

from tests.support.engine import Driver, failure, payload

ADMITTED, ACCEPTED, COMPLETED = WorkflowUpdateStage
DONE = CompleteWorkflowExecution(result=payload("done"))


async def update(
    driver: Driver,
    update_id: str = "u",
    stage: WorkflowUpdateStage = COMPLETED,
    *,
    timeout: timedelta = timedelta(seconds=5),
    run_id: str = "",
    **more: Any,
) -> r.UpdateWorkflowResponse:
    return await driver.engine.update_workflow(
        r.UpdateWorkflowRequest(
            execution=WorkflowExecution(workflow_id="order-1", run_id=run_id),
            update_id=update_id,
            **({"update_name": "add", "input": payload(update_id)} | more),
            wait_for_stage=stage,
            timeout=timeout,
        )
    )


async def poll(
    driver: Driver, update_id: str = "u", stage: WorkflowUpdateStage = COMPLETED, *, run_id: str = ""
) -> r.PollWorkflowUpdateResponse:
    return await driver.engine.poll_workflow_update(
        r.PollWorkflowUpdateRequest(
            execution=WorkflowExecution(workflow_id="order-1", run_id=run_id),
            update_id=update_id,
            wait_for_stage=stage,
            timeout=timedelta(seconds=5),
        )
    )


async def idle(driver: Driver, *commands: Command) -> r.RespondWorkflowTaskCompletedResponse:
    """A started run whose first task is done."""
    await driver.start()
    return await driver.complete((await driver.take()).task_token, *commands)


def accepted(update_id: str = "u") -> AcceptUpdate:
    return AcceptUpdate(update_id=update_id)


def completed(update_id: str = "u", result: str = "result") -> CompleteUpdate:
    return CompleteUpdate(update_id=update_id, outcome=UpdateOutcome(success=payload(result)))


def rejected(update_id: str = "u", why: str = "no") -> RejectUpdate:
    return RejectUpdate(update_id=update_id, failure=failure(why))
