"""Timers: started, cancelled, and fired when they are due."""

from datetime import timedelta

import pytest
from stepwell.api import commands as c
from stepwell.api import limits
from stepwell.api.enums import WorkflowTaskFailedCause as Cause

from tests.support.history_run import T0, Run, seconds, timer


def cause_of(run, *commands):
    run.complete(*commands)
    return run.events[-1].attributes.cause


def test_fires_by_its_deadline():
    run = Run()
    run.accept(timer("a", 5), timer("b", 3))
    assert run.s.timers["a"].fire_time == T0 + seconds(5)
    assert run.last.deadline == T0 + seconds(3) == run.last.arm
    run.wait(3).fire()
    assert run.tail(2) == ["TimerFired", "WorkflowTaskScheduled"]
    assert run.events[-2].attributes.started_event_id == 6
    assert run.last.deadline == T0 + seconds(5)
    run.wait(2).fire()
    assert run.last.events == () and run.last.deadline > run.now  # the outstanding task derives it
    run.accept()
    assert run.kinds.count("TimerFired") == 2


def test_no_time_at_all_is_due_at_once():
    run = Run()
    run.accept(timer("a", 0), timer("b", 3))
    assert run.tail(4) == ["TimerStarted", "TimerStarted", "TimerFired", "WorkflowTaskScheduled"]
    assert run.events[-2].attributes.timer_id == "a" and list(run.s.timers) == ["b"]


def test_cancel():
    run = Run()
    run.accept(timer("a"), c.CancelTimer(timer_id="a"), timer("a"))
    assert run.tail(3) == ["TimerStarted", "TimerCanceled", "TimerStarted"]
    canceled = run.events[-2].attributes
    assert (canceled.started_event_id, canceled.identity) == (5, "worker-1")


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        (timer(""), Cause.BAD_START_TIMER_ATTRIBUTES),
        (timer("a", -1), Cause.BAD_START_TIMER_ATTRIBUTES),
        (c.StartTimer(timer_id="a", start_to_fire_timeout=timedelta(days=4000)), Cause.BAD_START_TIMER_ATTRIBUTES),
        (c.CancelTimer(timer_id="a"), Cause.BAD_CANCEL_TIMER_ATTRIBUTES),
    ],
)
def test_bad(command, cause):
    assert cause_of(Run(), command) is cause


def test_limit():
    run = Run()
    timers = [timer(str(number)) for number in range(limits.MAX_PENDING_TIMERS)]
    assert cause_of(run, *timers, timer("more")) is Cause.PENDING_TIMERS_LIMIT_EXCEEDED
