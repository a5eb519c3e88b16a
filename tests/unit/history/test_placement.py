"""What is unplaced, and how an item's end reads in the history."""

import pytest
from stepwell.api.errors import Internal

from stepwell_server.history import activity_attempts, activity_item, placement
from stepwell_server.history.machines import workflow_task
from stepwell_server.history.task_tokens import PlacedActivity, WorkflowTaskToken
from tests.support.history_run import EAGER, T0, Run, activity, declined, failed, once, payload, seconds


def ended(end, **fields):
    """History events of an activity that a worker took and ``end`` finished."""
    run = Run()
    run.accept(activity("1", **fields))
    item = run.take(5)
    return run, placement.item_end(run.s.activities[5], end(run, item))


def test_completed():
    _, (started, end) = ended(lambda run, item: activity_attempts.complete(item, 1, payload(), run.now))
    assert (started.attempt, started.identity, started.started_time) == (1, "worker-2", T0)
    assert end.result == payload() and end.identity == "worker-2"


def test_failed():
    _, (_, end) = ended(lambda run, item: activity_attempts.fail(item, 1, declined(), run.now), retry_policy=once())
    assert end.failure == declined() and end.retry_state == "MAXIMUM_ATTEMPTS_REACHED"


def test_timed_out_with_and_without_a_start():
    _, (started, end) = ended(lambda run, item: activity_attempts.time_out(item, T0 + seconds(10)), retry_policy=once())
    assert started.started_time == T0 and end.started_event_id == 0
    run = Run()
    run.accept(activity("1", schedule_to_start_timeout=seconds(1)))
    run.wait(1).fire()
    assert run.tail(2) == ["ActivityTaskTimedOut", "WorkflowTaskScheduled"]


def test_canceled():
    def asked(run, item):
        asked = activity_attempts.request_cancel(run.s, run.s.activities[5], item, run.now)
        return activity_attempts.cancel(asked, 1, payload(), run.now)

    _, (_, end) = ended(asked)
    assert end.details == payload()


def test_an_activity_whose_first_attempt_was_leased_has_a_start():
    run = Run()
    run.accept(activity("1", schedule_to_close_timeout=seconds(5)), eager=EAGER)
    run.outcomes(failed(5))
    run.wait(5).fire()
    assert run.tail(3) == ["ActivityTaskStarted", "ActivityTaskTimedOut", "WorkflowTaskScheduled"]
    started, end = run.events[-3].attributes, run.events[-2].attributes
    assert (started.attempt, started.identity, started.last_failure) == (1, "worker-1", declined())
    assert started.started_time == T0
    assert end.failure.cause == declined()


def test_the_start_says_when_the_last_attempt_began():
    run = Run()
    run.accept(activity("1"))
    run.put(activity_attempts.fail(run.wait(2).take(5), 1, declined(), run.now))
    run.wait(3).take(5, 2)
    run.wait(4).finish(5)
    run.wait(5).wake_up()
    started = run.events[-3]
    assert (started.attributes.attempt, started.attributes.started_time) == (2, T0 + seconds(5))
    assert started.event_time == T0 + seconds(9)


def test_an_unfinished_item_has_no_end():
    with pytest.raises(ValueError, match="is STARTED, it has no end yet"):
        ended(lambda run, item: item)


def test_foreign_and_leased_items_are_not_placed():
    run = Run()
    run.accept(activity("1"), activity("2"), eager=EAGER)
    leased = activity_item.new_item(run.s, run.s.activities[5])
    leased = activity_attempts.request_cancel(run.s, run.s.activities[5], leased, run.now)
    assert placement.unplaced(run.s, run.now, [leased]) == []


def test_a_listed_item_must_be_at_hand():
    run = Run()
    run.accept(activity("1"))
    run.signal()
    token = WorkflowTaskToken("default", "order-1", "run-1", run.s.seq, 1, (PlacedActivity(5),), T0)
    with pytest.raises(Internal, match="not at hand"):
        workflow_task.placed_events(run.s, token, ())
