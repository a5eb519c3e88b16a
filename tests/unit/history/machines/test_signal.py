"""Signals: once per request id, refused only for cause."""

import pytest
from stepwell.api import commands as c
from stepwell.api import limits
from stepwell.api.errors import InvalidArgument, WorkflowExecutionClosed, WorkflowExecutionClosing

from tests.support.history_run import Run, payload


def closing():
    run = Run()
    token = run.begin(refused_closes=1)
    run.signal()
    run.complete(c.CompleteWorkflowExecution(), token=token)
    return run


def test_what_is_recorded():
    run = Run()
    run.accept()
    run.signal("ship", input=payload(), identity="me", request_id="r", headers={"h": payload()[0]})
    signaled = run.events[-2].attributes
    assert (signaled.signal_name, signaled.input, signaled.identity) == ("ship", payload(), "me")
    assert signaled.request_id == "r" and signaled.headers == {"h": payload()[0]}
    assert run.s.signal_count == 1


def test_a_repeat_adds_nothing():
    run = Run()
    run.signal(request_id="r")
    assert not run.signal(request_id="r").changed
    assert run.signal(request_id="other").changed and run.signal().changed and run.signal().changed


def test_the_limit_counts_what_is_buffered():
    run = Run()
    run.s.signal_count = limits.MAX_SIGNALS_PER_RUN - 1
    run._folded.signal_count = run.s.signal_count
    run.signal()
    with pytest.raises(InvalidArgument, match="10000") as refused:
        run.signal()
    assert refused.value.details == {"field": "signal_name"}


def test_senders_wait_while_a_refused_close_is_tried_again():
    run = closing()
    with pytest.raises(WorkflowExecutionClosing, match="about to close"):
        run.signal()
    run.fail_task()
    assert run.signal().changed


def test_a_closed_run_takes_no_signal_but_knows_its_repeats():
    run = Run()
    run.signal(request_id="r")
    run.terminate()
    assert not run.signal(request_id="r").changed
    with pytest.raises(WorkflowExecutionClosed, match="TERMINATED"):
        run.signal(request_id="new")
