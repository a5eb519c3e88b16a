"""The fold, beside what every other test checks through ``Run``: its edges."""

from typing import get_args

import msgspec
import pytest
from stepwell.api import events as e
from stepwell.api.enums import TimeoutType
from stepwell.api.events import EventAttributes, HistoryEvent

from stepwell_server.history.apply import apply, durable_part, event_size, opened, rebuild
from tests.support.history_run import EAGER, T0, Run, activity, done, seconds, timer


def test_a_history_begins_with_its_start():
    run = Run()
    with pytest.raises(ValueError, match="begins with WorkflowExecutionStarted"):
        rebuild(run.events[1:], "default")
    with pytest.raises(ValueError, match="begins with WorkflowExecutionStarted"):
        rebuild([], "default")
    with pytest.raises(ValueError, match="only ever a run's first event"):
        apply(run.s, run.events[0])


def test_rebuild_is_the_state_less_what_is_transient():
    run = Run()
    run.accept(activity(), timer(), eager=EAGER)
    run.signal()
    run.outcomes(done(5))
    rebuilt = rebuild(run.events, "default")
    assert rebuilt != run.s
    assert durable_part(rebuilt) == durable_part(run.s)
    assert rebuilt.history_size == sum(map(event_size, run.events))


def test_of_a_transient_task_only_its_being_there_is_durable():
    run = Run()
    run.fail_task()
    run.wait(1).fail_task()
    assert durable_part(rebuild(run.events, "default")) == durable_part(run.s)


def test_a_workflow_task_timeout_makes_the_next_attempt():
    """Not written by this release, but readable."""
    run = Run()
    timed_out = e.WorkflowTaskTimedOut(scheduled_event_id=2, timeout_type=TimeoutType.START_TO_CLOSE)
    apply(run.s, HistoryEvent(event_id=3, event_time=T0, attributes=timed_out))
    assert run.s.workflow_task.attempt == 2 and run.s.workflow_task.scheduled_event_id == 0
    run.s.workflow_task = None
    apply(run.s, HistoryEvent(event_id=4, event_time=T0, attributes=timed_out))
    assert run.s.workflow_task.attempt == 2


def test_opened_needs_no_clock():
    run = Run()
    started = run.events[0].attributes
    assert opened(run.events[0], started, "default").start_time == T0


def test_every_event_is_known_here():
    """``apply`` ends in ``assert_never``; this says that the union has not been forgotten there."""
    assert len(get_args(EventAttributes)) == 24


def test_the_shorter_of_two_timeouts_ends_a_run():
    run = Run(workflow_execution_timeout=seconds(5))
    longer = msgspec.structs.replace(run.events[0].attributes, workflow_run_timeout=seconds(9))
    assert opened(run.events[0], longer, "default").run_expires == T0 + seconds(5)
