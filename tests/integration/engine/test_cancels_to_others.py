"""Requests from one workflow to cancel another: once, whatever is lost, and never at a later run of the id."""

from pathlib import Path
from typing import Any

import pytest
from stepwell.api.commands import RequestCancelExternalWorkflowExecution

from tests.support.crossing import BRIEF, DONE, PARENT, begin, drive, settled, take, terminate, until
from tests.support.engine import running


def cancel(target: str = "kid", **more: Any) -> RequestCancelExternalWorkflowExecution:
    return RequestCancelExternalWorkflowExecution(workflow_id=target, reason="late", **more)


@pytest.mark.parametrize(
    ("command", "event"),
    [
        (cancel(), "ExternalWorkflowExecutionCancelRequested"),
        (cancel("closed"), "ExternalWorkflowExecutionCancelRequested"),
        (cancel("nobody"), "RequestCancelExternalWorkflowExecutionFailed"),
        (cancel("parent"), "RequestCancelExternalWorkflowExecutionFailed"),
        (cancel(run_id="another-run"), "RequestCancelExternalWorkflowExecutionFailed"),
        (cancel(child_workflow_only=True), "RequestCancelExternalWorkflowExecutionFailed"),
        (cancel(namespace="elsewhere"), "RequestCancelExternalWorkflowExecutionFailed"),
    ],
)
async def test_a_request_to_cancel_another(command: RequestCancelExternalWorkflowExecution, event: str) -> None:
    async with running() as driver:
        await driver.start("kid")
        await driver.start("closed")
        await driver.finish(await take(driver, "closed"))
        await begin(driver, command)
        await drive(driver, "parent", event)
        reached = command == cancel()
        assert (await driver.describe("kid")).cancel_requested is reached


@pytest.mark.parametrize("dies_before", ["RequestCancel", "ExternalDelivered", "Discharge"])
@pytest.mark.parametrize("closes", [False, True])
async def test_a_process_that_dies_while_another_is_cancelled(tmp_path: Path, dies_before: str, closes: bool) -> None:
    """A run of the same id that is started in between is not asked."""
    path = tmp_path / "orders.db"
    async with running(path, **BRIEF) as driver:
        await driver.start("kid")
        await driver.start("parent")
        task = await take(driver, "parent")
        driver.store.refuse_kinds.add(dies_before)
        await driver.complete(task.task_token, cancel(), *([DONE] if closes else []))
        if dies_before != "RequestCancel":

            async def is_asked() -> bool:
                return (await driver.describe("kid")).cancel_requested

            await until(is_asked)
            await terminate(driver, "kid")
            await driver.start("kid")
    async with running(path) as driver:
        if not closes:
            await drive(driver, "parent", "ExternalWorkflowExecutionCancelRequested")
        await settled(driver, PARENT)
        assert (await driver.describe("kid")).cancel_requested is (dies_before == "RequestCancel")
