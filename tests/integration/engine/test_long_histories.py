"""A history of 50,000 events ends with a reason that a person understands; a chain of runs has no end (DA-09)."""

import logging

import pytest
from stepwell.api import limits
from stepwell.api import requests as r
from stepwell.api.commands import ContinueAsNewWorkflowExecution, RecordMarker
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import CompletionOutcome, SuggestContinueAsNewReason, WorkflowExecutionStatus
from stepwell.api.errors import WorkflowExecutionClosed
from stepwell.api.events import WorkflowExecutionTerminated, WorkflowTaskStarted

from tests.support.engine import QUEUE, Driver, running

MARKERS = (RecordMarker(marker_name="step"),) * (limits.MAX_COMMANDS_PER_TASK - 2)


async def fill(driver: Driver) -> r.RespondWorkflowTaskCompletedResponse:
    """One workflow task of 10,000 events."""
    task = await driver.take()
    response = await driver.complete(task.task_token, *MARKERS)
    await driver.signal()
    return response


async def test_at_the_limit_it_is_terminated_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as driver:
        await driver.start()
        with caplog.at_level(logging.WARNING, "stepwell_server"):
            for _ in range(5):
                response = await fill(driver)
        assert [record.message for record in caplog.records if "continue as new" in record.message] == [
            f"Workflow order-1 run {(await driver.describe()).info.execution.run_id} has 20004 events; at 51200 it is "
            "terminated: let it continue as new"
        ]
        assert SuggestContinueAsNewReason.TOO_MANY_HISTORY_EVENTS in response.suggest_continue_as_new_reasons
        task = await driver.take()
        assert (await driver.complete(task.task_token, *MARKERS)).outcome is CompletionOutcome.STALE
        info = (await driver.describe()).info
        assert info.status is WorkflowExecutionStatus.TERMINATED
        assert 50_000 < info.history_length <= limits.MAX_HISTORY_EVENTS
        closed = await driver.result()
        assert isinstance(closed.attributes, WorkflowExecutionTerminated)
        assert closed.attributes.reason.startswith("Workflow history count exceeds limit: the history would have 60")
        started = [e.attributes for e in task.events if isinstance(e.attributes, WorkflowTaskStarted)]
        assert started[-1].suggest_continue_as_new
        with pytest.raises(WorkflowExecutionClosed):
            await driver.signal()
        await driver.start()


async def test_a_signal_at_the_limit_is_refused_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as driver:
        first = await driver.start()
        task = await driver.take()
        await driver.complete(task.task_token, *MARKERS[:10])
        monkeypatch.setattr(limits, "MAX_HISTORY_EVENTS", 14)
        with pytest.raises(WorkflowExecutionClosed, match="was terminated: Workflow history count exceeds limit"):
            await driver.signal()
        history = await driver.history(run_id=first)
        assert "WorkflowExecutionSignaled" not in [event.event_type for event in history]
        waited = r.GetHistoryRequest(execution=WorkflowExecution(workflow_id="order-1"), close_event_only=True)
        assert (await driver.engine.get_history(waited)).events[-1] == history[-1]


async def test_a_chain_goes_on_flat() -> None:
    """60,000 events in runs of 6,000: no commit, and no state, is larger than those of the second run."""
    async with running() as driver:
        await driver.start()
        again = ContinueAsNewWorkflowExecution(workflow_type="order", task_queue=QUEUE)
        sizes = []
        for _ in range(10):
            task = await driver.take()
            response = await driver.complete(task.task_token, *MARKERS[:5_990], again)
            assert response.outcome is CompletionOutcome.ACCEPTED
            commit = driver.store.commits[-1]
            assert commit.closed is not None
            sizes.append((len(commit.events), len(commit.closed.events), commit.state.history_size))
        assert set(sizes[1:]) == {sizes[1]}
