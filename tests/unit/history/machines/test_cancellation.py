"""CH-09: cancellation is a state, delivered once."""

import pytest
from stepwell.api.errors import NotFound, WorkflowExecutionClosing

from stepwell_server.history.machines import cancellation
from tests.support.history_run import Run
from tests.unit.history.machines.test_signal import closing


def test_recorded_once_at_once():
    run = Run()
    run.accept()
    run.cancel(reason="why", identity="me", request_id="r")
    asked = run.events[-2].attributes
    assert (asked.cause, asked.identity, asked.request_id) == ("why", "me", "r")
    assert run.s.cancel_requested and not run.cancel().changed


def test_buffered_once():
    run = Run()
    run.signal()
    assert not cancellation.is_requested(run.s)
    run.cancel()
    assert cancellation.is_requested(run.s) and not run.s.cancel_requested
    assert not run.cancel().changed and len(run.s.buffered) == 2
    run.accept()
    assert run.s.cancel_requested


def test_a_closed_run_is_a_success():
    run = Run()
    run.terminate()
    assert not run.cancel().changed


def test_refused_while_closing_and_for_another_chain():
    with pytest.raises(WorkflowExecutionClosing):
        closing().cancel()
    with pytest.raises(NotFound, match=r"not found: .*chain that began with run run-1"):
        Run().cancel(first_run_id="run-0")


def test_a_repeat_does_not_reach_the_next_run():
    run = Run()
    run.cancel(request_id="r")
    run.terminate()
    run.start("run-2")
    assert not run.cancel(request_id="r").changed and run.s.run_id == "run-2"
    assert run.cancel(request_id="another").changed
