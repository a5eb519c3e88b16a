"""Offline replay of stored histories, with clear reports (VE-20)."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from stepwell import workflow
from stepwell.exceptions import ApplicationError
from stepwell.replay.errors import NondeterminismError
from stepwell.replay.history import WorkflowHistory
from stepwell.replay.replayer import Replayer, ReplayFailedError

from tests.support.histories import Driver

SHORT = timedelta(seconds=10)


@workflow.defn(name="job")
async def good() -> None:
    await workflow.execute_activity("A", start_to_close_timeout=SHORT)


@workflow.defn(name="job")
async def changed() -> None:
    await workflow.execute_activity("B", start_to_close_timeout=SHORT)


@workflow.defn(name="job")
async def buggy() -> None:
    raise KeyError("bug")


@pytest.fixture
def history() -> WorkflowHistory:
    d = Driver(good)
    d.task()
    d.history.activity_completed("A", None)
    d.task()
    stored = WorkflowHistory("wf-1", d.history.events).to_json()
    return WorkflowHistory.from_json("", stored)


async def test_unchanged_code(history: WorkflowHistory) -> None:
    result = await Replayer(workflows=[good]).replay_workflow(history)
    assert result.replay_failure is None
    assert result.report() == "ok: workflow 'wf-1', run 'run-1', 11 events"


async def test_changed_code(history: WorkflowHistory) -> None:
    with pytest.raises(
        NondeterminismError, match=r"'wf-1' \(job\), run 'run-1': event 5 recorded .*'A'.* asked for .*'B'"
    ):
        await Replayer(workflows=[changed]).replay_workflow(history)
    results = await Replayer(workflows=[changed]).replay_workflows([history], raise_on_replay_failure=False)
    assert list(results.replay_failures) == ["run-1"]


@workflow.defn(name="job", failure_exception_types=[NondeterminismError])
async def changed_and_lenient() -> None:
    await changed()


@workflow.defn(name="job")
async def one_more() -> None:
    await good()
    await workflow.sleep(1)


@workflow.defn(name="job")
async def fails_at_the_end() -> None:
    await good()
    raise ApplicationError("another end")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (changed_and_lenient, r"event 5 recorded ActivityTaskScheduled .*'A'.*asked for .*'B'"),
        (one_more, r"event 11 recorded WorkflowExecutionCompleted, but .* asked for StartTimer"),
        (fails_at_the_end, r"event 11 recorded .*Completed, but .* FailWorkflowExecution \(another end\)"),
    ],
)
async def test_a_closed_history_is_compared_to_its_end(history: WorkflowHistory, code: Any, message: str) -> None:
    with pytest.raises(NondeterminismError, match=message):
        await Replayer(workflows=[code]).replay_workflow(history)


async def test_histories_as_they_come(history: WorkflowHistory) -> None:
    async def listed() -> AsyncIterator[WorkflowHistory]:
        for _ in range(3):
            yield history

    replayer = Replayer(workflows=[good])
    assert [result.replay_failure async for result in replayer.workflow_replay_iterator(listed())] == [None] * 3
    assert not (await replayer.replay_workflows(listed())).replay_failures
    with pytest.raises(NondeterminismError):
        await Replayer(workflows=[changed]).replay_workflows(listed())


async def test_other_failures(history: WorkflowHistory) -> None:
    with pytest.raises(ReplayFailedError, match="bug"):
        await Replayer(workflows=[buggy]).replay_workflow(history)

    @workflow.defn
    async def other() -> None: ...

    with pytest.raises(ReplayFailedError, match="of type 'job', which is not among: other"):
        await Replayer(workflows=[other]).replay_workflow(history)


def test_what_is_not_a_history() -> None:
    with pytest.raises(ValueError, match="not a stored history"):
        WorkflowHistory.from_json("", "{}")
    with pytest.raises(ValueError, match="the first event is not WorkflowExecutionStarted"):
        WorkflowHistory.from_json("", "[]")
