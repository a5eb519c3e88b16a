"""When a run needs attention."""

import pytest

from stepwell_server.history import activity_attempts, activity_item
from stepwell_server.history.deadlines import (
    LONGEST,
    LONGEST_REDISPATCH,
    activity_due,
    deadline,
    dispatch_due,
    ended_in_buffer,
    redispatch_after,
)
from tests.support.history_run import EAGER, T0, Run, activity, declined, done, once, seconds, timer


@pytest.mark.parametrize(("dispatches", "wait"), [(0, 30), (1, 30), (2, 60), (5, 480), (12, 61_440), (13, 86_400)])
def test_redispatch(dispatches, wait):
    assert redispatch_after(dispatches) == seconds(wait)
    assert redispatch_after(10**9) == LONGEST_REDISPATCH


def test_closed_runs_have_none():
    run = Run()
    run.terminate()
    assert deadline(run.s, run.now) is None


def test_an_idle_run_is_looked_at_every_week():
    run = Run()
    run.accept()
    assert deadline(run.s, run.now) == run.now + LONGEST


def test_due_timers_wait_for_an_outstanding_task():
    run = Run()
    run.accept(timer("a", 5), timer("b", 8))
    assert deadline(run.s, T0 + seconds(6)) == T0 + seconds(5)
    run.signal()
    assert deadline(run.s, T0 + seconds(6)) == T0 + seconds(8)


@pytest.mark.parametrize("signals", [1, 60])
def test_timers_left_to_a_task_are_armed_by_its_end_when_the_clock_went_back(signals):
    run = Run()
    token = run.begin()
    run.accept(timer(after=0.001), token=token)
    run.cancel()
    run.now = min(run.armed)
    run.fire()
    assert run.armed == [T0 + seconds(30)] * 2 and run.s.timers
    run.wait(-0.001)
    for _ in range(signals):
        run.signal()
    # the timer seems to be ahead again, but no firing could do anything about it while the task is outstanding
    assert deadline(run.s, run.now) == T0 + seconds(0.001) < min(run.armed)
    run.accept()
    assert run.s.workflow_task is None
    assert run.last.arm == T0 + seconds(0.001) and run.last.arm in run.armed
    run.now = min(run.armed)
    run.fire()
    assert run.tail(2) == ["TimerFired", "WorkflowTaskScheduled"]


def test_run_timeout():
    assert deadline(Run(workflow_run_timeout=seconds(7)).s, T0) == T0 + seconds(7)


def test_leases():
    run = Run()
    run.accept(activity("1"), activity("2", schedule_to_close_timeout=seconds(4)), eager=EAGER)
    assert activity_due(run.s.activities[5]) == T0 + seconds(10)
    assert activity_due(run.s.activities[6]) == T0 + seconds(4)
    run.signal()
    run.outcomes(done(6))
    assert ended_in_buffer(run.s) == {6}
    assert deadline(run.s, T0) == T0 + seconds(10)


def test_items():
    run = Run()
    run.accept(activity("1", schedule_to_start_timeout=seconds(3), retry_policy=once()))
    pending = run.s.activities[5]
    assert activity_due(pending) == T0 + seconds(3)
    item = run.take(5)
    assert activity_due(pending, item) == T0 + seconds(10)
    assert dispatch_due(pending, item) is None
    assert activity_due(pending, activity_attempts.complete(item, 1, (), T0)) is None


def test_a_waiting_attempt_is_dispatched_when_it_may_start_and_then_again():
    run = Run()
    run.accept(activity("1"))
    pending = run.s.activities[5]
    item = activity_attempts.fail(run.take(5), 1, declined(), T0)
    assert activity_due(pending, item) == T0 + seconds(1)
    again = activity_attempts.end_attempt(run.items[5], 1, "gone", T0 + seconds(2))
    assert dispatch_due(pending, again) == T0 + seconds(2)
    first = activity_item.new_item(run.s, pending)
    assert dispatch_due(pending, first) == pending.next_dispatch == T0 + seconds(30)


def test_just_fired():
    run = Run()
    run.accept(activity("1", schedule_to_close_timeout=seconds(5)), timer("t", 5.5))
    now = T0 + seconds(5)
    item = run.take(5)
    assert deadline(run.s, now, {5: item}) == now
    assert deadline(run.s, now, {5: item}, just_fired=True) == T0 + seconds(5.5)
