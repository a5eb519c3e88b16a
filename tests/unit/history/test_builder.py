"""The draft: it changes its own copy, and knows what became due."""

import pytest

from stepwell_server.history.builder import TransitionBuilder, owes, unchanged
from stepwell_server.history.requests import FireDeadline
from stepwell_server.history.task_tokens import WorkflowTaskToken
from tests.support.history_run import EAGER, T0, Run, activity, failed, seconds, timer


def test_the_given_state_is_left_alone():
    run = Run()
    run.accept(activity(), timer())
    draft = TransitionBuilder(run.s, run.now)
    draft.state.activities.clear()
    draft.state.timers.clear()
    draft.state.activity_ids.clear()
    assert run.s.activities and run.s.timers and run.s.activity_ids
    assert draft.state.seq == run.s.seq + 1 and not draft.dirty


def test_what_was_shown_is_recorded_in_its_place():
    run = Run()
    run.begin()
    run.signal()
    draft = TransitionBuilder(run.s, run.now)
    draft.record_as_shown(run.shown[0])
    with pytest.raises(ValueError, match="event 3 was shown, but the next one is 4"):
        draft.record_as_shown(run.shown[0])


def test_owes_is_said_when_it_changes():
    run = Run()
    assert run.last.owes is True and owes(run.s)
    run.accept()
    assert run.last.owes is False and not owes(run.s)
    run.signal()
    assert run.last.owes is True
    run.accept(activity())
    assert run.last.owes is None


def test_an_earlier_deadline_is_armed_and_a_later_one_is_not():
    run = Run()
    run.accept(timer("a", 100), timer("b", 20))
    assert run.last.arm == T0 + seconds(20)
    run.signal()
    assert run.last.arm is None and run.last.deadline == T0 + seconds(20)
    run.accept(timer("c", 50))
    assert run.last.arm is None
    run.wait(20)
    run.signal()  # before the firing arrives: what is armed is past
    assert run.last.arm == run.s.armed == T0 + seconds(50)


def test_a_retry_is_armed():
    run = Run()
    run.accept(activity(), eager=EAGER)
    assert run.last.arm == T0 + seconds(10)
    run.outcomes(failed(5))
    assert run.last.arm == T0 + seconds(1)


def test_run_timeouts_are_armed():
    run = Run(workflow_run_timeout=seconds(5))
    assert run.last.arm == T0 + seconds(5)
    run.now = run.s.run_expires
    run.signal()
    assert run.last.arm == run.now


def test_nothing_to_commit():
    run = Run()
    transition = unchanged(run.s)
    assert (transition.changed, transition.state, transition.reply) == (False, run.s, None)


def test_a_row_that_fires_ahead_of_the_clock_is_not_the_one_armed_again():
    run = Run()
    run.accept(timer("a", 10))
    run.step(FireDeadline(fire_at=T0 + seconds(10)))
    assert run.last.arm == run.s.armed == T0 + seconds(10.001)


def test_timers_left_to_a_task_are_armed_again_when_the_clock_went_back():
    run = Run()
    run.accept(timer("a", 40))
    run.wait(39.9).signal()
    run.wait(0.1).fire()
    token = run.begin()
    run.state.last_event_time = run._folded.last_event_time = T0
    run.now = T0 + seconds(20)
    token = WorkflowTaskToken(**{name: getattr(token, name) for name in token.__struct_fields__} | {"placed": ()})
    run.accept(token=token)
    assert run.s.armed <= run.s.timers["a"].fire_time


def test_the_next_run_arms_its_own_timeout_before_what_the_last_one_armed():
    run = Run()
    run.terminate()
    run.start("run-2", workflow_run_timeout=seconds(2))
    assert run.last.arm == T0 + seconds(2)
