"""Closes by the server place everything that was buffered first."""

import pytest
from stepwell.api.errors import WorkflowExecutionClosed

from stepwell_server.history.tasks import RecordVisibility
from tests.support.history_run import EAGER, T0, Run, activity, done, payload, seconds, timer


def busy():
    run = Run(workflow_run_timeout=seconds(60))
    run.accept(activity(), timer(), eager=EAGER)
    run.signal("first")
    run.signal("second")
    run.outcomes(done(5))
    return run


def test_terminate():
    run = busy()
    run.terminate(reason="r", details=payload(), identity="me")
    assert run.tail(4) == [
        "WorkflowExecutionSignaled",
        "ActivityTaskStarted",
        "ActivityTaskCompleted",
        "WorkflowExecutionTerminated",
    ]
    closed = run.events[-1].attributes
    assert (closed.reason, closed.details, closed.identity) == ("r", payload(), "me")
    assert run.s.timers == {} and run.s.activities == {} and run.s.workflow_task is None
    assert (run.last.deadline, run.last.arm, run.last.owes) == (None, None, False)
    (record,) = run.last.tasks
    assert isinstance(record, RecordVisibility)
    assert (record.status, record.close_time, record.history_length) == ("TERMINATED", run.now, len(run.events))
    with pytest.raises(WorkflowExecutionClosed):
        run.terminate()


def test_time_out():
    run = busy()
    run.wait(60).fire()
    assert run.tail(2) == ["ActivityTaskCompleted", "WorkflowExecutionTimedOut"]
    assert run.s.close_time == T0 + seconds(60)
    assert not run.fire().changed
