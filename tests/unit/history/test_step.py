"""``step`` is total: which run is meant, and what an unknown or closed one answers."""

import pytest
from stepwell.api.errors import NotFound, WorkflowExecutionClosed

from stepwell_server.history.requests import (
    EndLeases,
    FinishedActivity,
    RecordFinishedActivities,
    RecordLeasedOutcomes,
    RequestCancel,
    Signal,
    Terminate,
)
from tests.support.history_run import EAGER, Run, activity, done


@pytest.mark.parametrize(
    "request_", [Signal(run_id="", signal_name="s"), RequestCancel(run_id=""), Terminate(run_id="")]
)
def test_an_unknown_id(request_):
    with pytest.raises(NotFound, match="no such workflow"):
        Run(begun=False).step(request_)


@pytest.mark.parametrize(
    "request_",
    [
        Signal(run_id="run-0", signal_name="s"),
        RequestCancel(run_id="run-0"),
        Terminate(run_id="run-0"),
        RecordLeasedOutcomes(run_id="run-0", outcomes=(done(5),)),
    ],
)
def test_another_run(request_):
    with pytest.raises(NotFound, match="newest run, which is run-1") as refused:
        Run().step(request_)
    assert refused.value.details == {"run_id": "run-1"}


def test_the_run_by_name():
    run = Run()
    assert run.step(Signal(run_id="run-1", signal_name="s")).changed
    assert run.step(Terminate(run_id="run-1", first_run_id="run-1")).changed


@pytest.mark.parametrize("run_id", ["run-0", "run-1"])
def test_wake_ups_and_leases_of_a_run_that_is_over(run_id):
    run = Run()
    run.accept(activity("1"), activity("2", task_queue="other"), eager=EAGER)
    item = run.take(6)
    run.finish(6)
    if run_id == "run-1":
        run.terminate()
    assert not run.step(EndLeases(run_id=run_id, scheduled_event_ids=(5,), reason="r")).changed
    finished = (FinishedActivity(item),)
    assert not run.step(RecordFinishedActivities(run_id=run_id, finished=finished)).changed


def test_closed_runs_refuse():
    run = Run()
    run.terminate()
    with pytest.raises(WorkflowExecutionClosed) as refused:
        run.signal()
    assert refused.value.details == {"status": "TERMINATED"}
