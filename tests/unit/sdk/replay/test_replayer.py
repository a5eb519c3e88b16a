"""Offline replay of stored histories, with clear reports (VE-20)."""

from datetime import timedelta

import pytest
from stepwell import workflow
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
