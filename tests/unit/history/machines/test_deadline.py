"""A firing always commits its re-arm."""

import pytest
from stepwell.api.enums import TimeoutType
from stepwell.api.errors import NotFound

from stepwell_server.history.deadlines import LONGEST
from stepwell_server.history.requests import FireDeadline
from tests.support.history_run import EAGER, T0, Run, activity, seconds, timer


def test_with_nothing_due_it_still_commits():
    run = Run()
    run.accept()
    run.wait(30).fire()
    assert run.last.changed and run.last.events == () and run.last.tasks == ()
    assert run.last.arm == run.now + LONGEST == run.s.armed


def test_early_and_repeated_firings_keep_what_is_armed():
    run = Run()
    run.accept(timer("a", 5))
    run.wait(1).fire()
    assert run.last.changed and run.last.arm is None and run.last.deadline == T0 + seconds(5)
    run.fire()
    assert run.last.changed and run.last.arm is None


def test_everything_due_is_done_at_once():
    run = Run()
    run.accept(timer("t", 30), activity("leased", start_to_close_timeout=seconds(30)), activity("held"), eager=EAGER)
    run.end_leases(7)
    run.take(7, 2)
    run.wait(30)
    run.fire()
    assert run.kinds.count("TimerFired") == 1
    assert run.s.activities[6].attempt == 2 and run.items[7].attempt == 3
    assert run.items[7].last_failure.info.timeout_type is TimeoutType.START_TO_CLOSE


def test_an_item_that_is_still_due_is_looked_at_again_but_not_at_once():
    """Its timeout was lost to somebody else's change that the shell has not read."""
    run = Run()
    run.accept(activity("held", schedule_to_close_timeout=seconds(5)))
    run.take(5)
    run.wait(5)
    run.step(FireDeadline(items=(run.items[5],)))
    assert run.last.deadline == run.now + seconds(1)


def test_no_run():
    with pytest.raises(NotFound):
        Run(begun=False).step(FireDeadline())
