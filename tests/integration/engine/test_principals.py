"""Who is known to have asked (MT-10) stands in the event of what was asked, and nobody can put it there."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from stepwell.api import requests as r
from stepwell.api.common import Priority, WorkflowExecution
from stepwell.api.enums import WorkflowUpdateStage
from stepwell.api.events import HistoryEvent, WorkflowExecutionUpdateAdmitted
from stepwell.api.updates import UpdateInput, UpdateMeta, UpdateRequest

from stepwell_server.common.principals import acting, current
from stepwell_server.history.importing import _of_nobody
from tests.support.engine import Driver, running

ALICE, BOB = "arn:aws:iam::123456789012:user/alice", "AKBOB"
RUN = WorkflowExecution(workflow_id="order-1")
Ask = Callable[[Driver], Awaitable[Any]]

ASKED: list[tuple[str, Ask]] = [
    ("WorkflowExecutionSignaled", lambda d: d.signal()),
    ("WorkflowExecutionCancelRequested", lambda d: d.engine.cancel_workflow(r.CancelWorkflowRequest(execution=RUN))),
    ("WorkflowExecutionTerminated", lambda d: d.engine.terminate_workflow(r.TerminateWorkflowRequest(execution=RUN))),
    ("WorkflowExecutionPaused", lambda d: d.engine.pause_workflow(r.PauseWorkflowRequest(execution=RUN))),
    (
        "WorkflowExecutionOptionsUpdated",
        lambda d: d.engine.update_workflow_options(
            r.UpdateWorkflowOptionsRequest(
                execution=RUN,
                workflow_execution_options=r.WorkflowExecutionOptions(priority=Priority(priority_key=2)),
                update_mask="priority",
            )
        ),
    ),
]


async def who(driver: Driver, event_type: str) -> list[str]:
    return [each.attributes.principal for each in await driver.history() if each.event_type == event_type]  # type: ignore[union-attr]


@pytest.mark.parametrize(("event_type", "ask"), ASKED, ids=[f"{index}" for index in range(len(ASKED))])
async def test_an_event_says_who_is_known_to_have_asked_for_it(event_type: str, ask: Ask) -> None:
    """Also one that waits in the buffer, and gets its number by another's request."""
    async with running() as driver:
        with acting(ALICE):
            await driver.start()
        task = await driver.take()
        with acting(BOB):
            await ask(driver)
        with acting(ALICE):
            await driver.complete(task.task_token)
        assert await who(driver, event_type) == [BOB]
        assert await who(driver, "WorkflowExecutionStarted") == [ALICE]


async def test_a_reset_and_what_it_does_say_who() -> None:
    async with running() as driver:
        await driver.start()
        await driver.complete((await driver.take()).task_token)
        await driver.signal()
        with acting(ALICE):
            await driver.reset(
                post_reset_operations=(r.PostResetOperation(signal_workflow=r.PostResetSignal(signal_name="again")),)
            )
        assert await who(driver, "WorkflowTaskFailed") == [ALICE]
        assert await who(driver, "WorkflowExecutionSignaled") == ["", ALICE]


async def test_an_update_says_who_sent_it() -> None:
    async with running() as driver:
        await driver.start()
        await driver.complete((await driver.take()).task_token)
        with acting(ALICE):
            request = r.UpdateWorkflowRequest(
                execution=RUN, update_id="u", update_name="n", wait_for_stage=WorkflowUpdateStage.ADMITTED
            )
            await driver.engine.update_workflow(request)
        (shown,) = (await driver.take()).updates
        assert shown.request.meta.principal == ALICE


def test_what_an_imported_history_claims_is_not_taken_over() -> None:
    update = WorkflowExecutionUpdateAdmitted(
        request=UpdateRequest(meta=UpdateMeta(update_id="u", principal=ALICE), input=UpdateInput(name="n"))
    )
    event = HistoryEvent(event_id=1, event_time=datetime(2026, 12, 1, tzinfo=UTC), attributes=update)
    attributes: Any = _of_nobody(event).attributes
    assert attributes.request == msgspec.structs.replace(update.request, meta=UpdateMeta(update_id="u"))


def test_nobody_is_left_behind() -> None:
    with acting("x" * 5_000):
        assert len(current()) == 1_000
    assert current() == ""
