"""Pause, unpause, reset and options of an item: what changes, what stays, and that a repeat puts nothing."""

import pytest
from stepwell.api.common import RetryPolicy
from stepwell.api.errors import InvalidArgument, NotFound
from stepwell.api.requests import ActivityOptionsChange

from stepwell_server.history import activity_attempts, activity_changes, activity_item
from stepwell_server.history.activity_item import ItemState, Pause
from tests.support.history_run import T0, Run, activity, declined, payload, seconds

ID = 5
PAUSE = Pause(time=T0, identity="ann", reason="why")
SLOW = RetryPolicy(initial_interval=seconds(100))


def held(**fields):
    run = Run()
    run.accept(activity(**fields))
    return run, activity_item.new_item(run.s, run.s.activities[ID])


def started(**fields):
    run, _ = held(**fields)
    return run, run.take(ID)


def unpause(item, **flags):
    return activity_changes.unpause(item, T0, **({"reset_attempts": False, "reset_heartbeat": False} | flags))


def reset(item, **flags):
    return activity_changes.reset(item, T0, **({"keep_paused": False, "reset_heartbeat": False} | flags))


def test_a_repeat_changes_nothing():
    _, item = held()
    paused = activity_changes.pause(item, PAUSE)
    assert activity_changes.pause(paused, Pause(time=T0, identity="bob")) is paused
    assert unpause(item) is item and paused.pause == PAUSE


def test_what_has_ended_stays_as_it_is():
    run, item = started()
    done = activity_attempts.complete(item, 1, (), T0)
    change = ActivityOptionsChange(start_to_close_timeout=seconds(1))
    assert activity_changes.pause(done, PAUSE) is done and unpause(done) is done and reset(done) is done
    assert activity_changes.with_options(run.s, run.s.activities[ID], done, change, T0) is done


def test_a_paused_item_waits_without_schedule_to_start_and_keeps_its_deadline():
    run, item = held(schedule_to_start_timeout=seconds(5), schedule_to_close_timeout=seconds(50))
    paused = activity_changes.pause(item, PAUSE)
    assert activity_item.arm_time(item) == T0 + seconds(5) and activity_item.arm_time(paused) == T0 + seconds(50)
    assert activity_attempts.time_out(paused, T0 + seconds(10)) is paused
    assert activity_attempts.time_out(paused, T0 + seconds(50)).state is ItemState.TIMED_OUT
    with pytest.raises(NotFound, match="paused"):
        activity_attempts.start(run.s, run.s.activities[ID], paused, attempt=1, identity="w", now=T0)
    again = activity_changes.unpause(paused, T0 + seconds(20), reset_attempts=False, reset_heartbeat=False)
    assert activity_item.starts_by(again) == T0 + seconds(25)


def test_attempts_that_end_while_paused_are_told_apart_by_their_stamp():
    _, item = started(retry_policy=RetryPolicy(maximum_attempts=1))
    paused = activity_changes.pause(item, PAUSE)
    waits = activity_attempts.fail(paused, 1, declined(), T0)
    assert (waits.state, waits.attempt, waits.stamp) == (ItemState.SCHEDULED, 1, item.stamp + 1)
    assert unpause(waits).next_attempt_time == T0
    lost = activity_attempts.end_attempt(paused, 1, "gone", T0)
    assert (lost.attempt, lost.stamp) == (1, item.stamp + 1)


def test_a_reset_counts_from_one_and_forgets_progress_only_if_asked():
    _, item = started(retry_policy=SLOW)
    waits = activity_attempts.fail(
        activity_attempts.heartbeat(item, 1, payload("half"), T0), 1, declined(), T0 + seconds(1)
    )
    again = reset(waits)
    assert (again.attempt, again.stamp, again.next_attempt_time) == (1, waits.stamp + 1, T0)
    assert again.heartbeat_details == payload("half") and reset(waits, reset_heartbeat=True).heartbeat_details == ()
    assert reset(activity_changes.pause(waits, PAUSE), keep_paused=True).pause == PAUSE
    asked = reset(item, reset_heartbeat=True)
    assert asked.state is ItemState.STARTED and asked.reset_requested and asked.attempt == 1
    first = activity_attempts.fail(asked, 1, declined(), T0, heartbeat_details=payload("most"))
    assert (first.attempt, first.stamp, first.heartbeat_details) == (1, item.stamp + 1, ())
    assert not first.reset_requested and not first.reset_heartbeat


def test_unpause_may_begin_anew():
    _, item = started()
    paused = activity_changes.pause(activity_attempts.heartbeat(item, 1, payload("half"), T0), PAUSE)
    assert unpause(paused, reset_attempts=True).reset_requested
    assert unpause(paused, reset_heartbeat=True).reset_heartbeat
    assert not unpause(paused).reset_requested


def test_options_change_alone_what_they_name():
    run, item = held(retry_policy=SLOW, start_to_close_timeout=seconds(10), heartbeat_timeout=seconds(5))
    pending = run.s.activities[ID]
    change = ActivityOptionsChange(start_to_close_timeout=seconds(3), retry_maximum_attempts=4, task_queue="other")
    changed = activity_changes.with_options(run.s, pending, item, change, T0)
    assert changed.heartbeat_timeout == seconds(3), "clipped to start-to-close"
    assert (changed.retry_policy.maximum_attempts, changed.retry_policy.initial_interval) == (4, seconds(100))
    assert activity_item.queue_of(pending, changed) == "other"
    back = activity_changes.with_options(run.s, pending, changed, ActivityOptionsChange(restore_original=True), T0)
    assert back.retry_policy == SLOW and back.task_queue == "" and back.heartbeat_timeout == seconds(5)
    too_long = ActivityOptionsChange(start_to_close_timeout=seconds(10**9))
    with pytest.raises(InvalidArgument, match="at most 3650 days"):
        activity_changes.with_options(run.s, pending, item, too_long, T0)


def test_a_backoff_becomes_shorter_at_once_and_longer_later():
    run, item = started(retry_policy=SLOW)
    pending = run.s.activities[ID]
    waits = activity_attempts.fail(item, 1, declined(), T0)
    assert waits.next_attempt_time == T0 + seconds(100)
    for interval, at in ((1, T0 + seconds(1)), (1_000, T0 + seconds(100))):
        change = ActivityOptionsChange(retry_initial_interval=seconds(interval))
        assert activity_changes.with_options(run.s, pending, waits, change, T0).next_attempt_time == at


def test_jitter_spreads_within_its_span():
    times = {activity_changes.spread(T0, seconds(10), f"{number:032x}") for number in range(200)}
    assert len(times) > 50 and all(T0 <= time <= T0 + seconds(10) for time in times)
    assert activity_changes.spread(T0, None, "any") == T0
