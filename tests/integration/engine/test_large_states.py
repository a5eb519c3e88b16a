"""DA-10: a run that would wait for more than a commit can carry is terminated, and says so."""

import logging

import pytest
from stepwell.api import limits
from stepwell.api import requests as r
from stepwell.api.common import RetryPolicy, WorkflowExecution
from stepwell.api.enums import CompletionOutcome, WorkflowExecutionStatus
from stepwell.api.errors import PayloadTooLarge, WorkflowExecutionClosed
from stepwell.api.events import WorkflowExecutionTerminated

from tests.support.engine import Driver, activity, payload, running

LARGE = RetryPolicy(non_retryable_error_types=tuple(f"error {number:03} {'x' * 990}" for number in range(100)))
"""As much as a retry policy may hold: about 100 kB that the state keeps with each activity."""


async def wait_for(driver: Driver, count: int) -> r.RespondWorkflowTaskCompletedResponse:
    await driver.start()
    task = await driver.take()
    return await driver.complete(
        task.task_token, *(activity(f"{number}", eager=False, retry_policy=LARGE) for number in range(count))
    )


async def test_it_is_terminated_with_the_reason() -> None:
    async with running() as driver:
        assert (await wait_for(driver, 90)).outcome is CompletionOutcome.STALE
        info = (await driver.describe()).info
        assert (info.status, info.history_length) == (WorkflowExecutionStatus.TERMINATED, 3)
        closed = (await driver.result()).attributes
        assert isinstance(closed, WorkflowExecutionTerminated) and closed.identity == "stepwell"
        assert closed.reason.startswith("Workflow state size exceeds limit: it would have ")
        assert str(limits.MAX_STATE_BYTES) in closed.reason


async def test_it_is_warned_of_once_before(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as driver:
        with caplog.at_level(logging.WARNING, "stepwell_server"):
            assert (await wait_for(driver, 20)).outcome is CompletionOutcome.ACCEPTED
            await driver.signal()
        (said,) = [record.message for record in caplog.records if "waits for and remembers" in record.message]
        assert said.startswith("Workflow order-1 run ")


async def test_a_signal_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as driver:
        await driver.start()
        await driver.take()
        monkeypatch.setattr(limits, "MAX_STATE_BYTES", 3_000)
        await driver.signal(input=payload("small"))
        with pytest.raises(WorkflowExecutionClosed, match="was terminated: Workflow state size exceeds limit"):
            await driver.signal(input=payload("x" * 3_000))
        kinds = [event.event_type for event in await driver.history()]
        assert kinds[-2:] == ["WorkflowExecutionSignaled", "WorkflowExecutionTerminated"], "the first was acknowledged"


async def test_a_start_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as driver:
        monkeypatch.setattr(limits, "MAX_STATE_BYTES", 3_000)
        with pytest.raises(PayloadTooLarge, match="cannot be started so"):
            await driver.start(memo={"note": payload("x" * 3_000)[0]})
        listed = await driver.engine.list_workflows(r.ListWorkflowsRequest())
        assert not listed.executions
        assert await driver.start()
        assert WorkflowExecution(workflow_id="order-1")
