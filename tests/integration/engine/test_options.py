"""Options of an open run are changed by a call: what is named, once, and no workflow code is woken for it."""

import pytest
from stepwell.api import requests as r
from stepwell.api.common import Priority, WorkflowExecution
from stepwell.api.errors import InvalidArgument, NotFound, WorkflowExecutionClosed
from stepwell.api.events import WorkflowExecutionOptionsUpdated

from tests.support.engine import Driver, activity, running

ORDER = WorkflowExecution(workflow_id="order-1")


async def update(driver: Driver, mask: str, priority: Priority | None = None) -> None:
    options = r.WorkflowExecutionOptions(priority=priority)
    await driver.engine.update_workflow_options(
        r.UpdateWorkflowOptionsRequest(
            execution=ORDER, workflow_execution_options=options, update_mask=mask, identity="ops"
        )
    )


async def test_what_is_named_is_changed_once_and_holds_for_what_comes() -> None:
    async with running() as driver:
        await driver.start(priority=Priority(priority_key=4, fairness_key="tenant"))
        await update(driver, "priority.priority_key", Priority(priority_key=1, fairness_key="not named"))
        task = await driver.take()
        await driver.complete(task.task_token, activity("1", eager=False))
        count = len(driver.store.commits)
        await update(driver, "priority.priority_key", Priority(priority_key=1))
        assert len(driver.store.commits) == count and await driver.poll_workflow() is None
        await update(driver, "priority")
        changes = [
            event.attributes
            for event in await driver.history()
            if isinstance(event.attributes, WorkflowExecutionOptionsUpdated)
        ]
        assert [(change.priority, change.identity) for change in changes] == [
            (Priority(priority_key=1, fairness_key="tenant"), "ops"),
            (Priority(), "ops"),
        ]
        assert await driver.poll_workflow() is None


async def test_what_cannot_be_is_refused() -> None:
    async with running() as driver:
        with pytest.raises(NotFound):
            await update(driver, "priority")
        await driver.start()
        for mask, message in (("versioning_override", "cannot be changed"), ("", "update_mask is empty")):
            with pytest.raises(InvalidArgument, match=message):
                await update(driver, mask)
        with pytest.raises(InvalidArgument, match="priority_key is 9"):
            await update(driver, "priority", Priority(priority_key=9))
        await driver.finish(await driver.take())
        with pytest.raises(WorkflowExecutionClosed):
            await update(driver, "priority")
