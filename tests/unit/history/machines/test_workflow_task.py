"""Showing a workflow task writes nothing; what is shown is ordered, bounded and stays as it was."""

import pytest
from stepwell.api import limits
from stepwell.api.errors import NotFound

from stepwell_server.history.apply import FIRST_REDISPATCH
from stepwell_server.history.builder import TransitionBuilder
from stepwell_server.history.machines import workflow_task
from stepwell_server.history.task_tokens import PlacedActivity, PlacedBuffered, PlacedTimer
from stepwell_server.history.tasks import DispatchWorkflowTask
from tests.support.history_run import T0, Run, activity, payload, seconds, timer


@pytest.mark.parametrize(
    ("attempt", "wait"), [(1, 0), (2, 0), (3, 0), (4, 5), (5, 10), (6, 20), (10, 320), (11, 600), (9999, 600)]
)
def test_backoff_of_attempts(attempt, wait):
    assert workflow_task.attempt_backoff(attempt) == seconds(wait)


@pytest.mark.parametrize(
    ("attempt", "timeout"), [(1, 10), (3, 10), (4, 15), (5, 20), (6, 30), (10, 330), (11, 610), (40, 610)]
)
def test_timeout_of_attempts(attempt, timeout):
    """ER-07: the backoff of 5 s, doubling, up to 10 min, on top of the task's own 10 s; shown with the attempt."""
    run = Run()
    assert workflow_task.attempt_timeout(run.s, attempt) == seconds(timeout)
    for _ in range(min(attempt, 6) - 1):
        run.wait(700).fail_task()
    run.wait(700).begin()
    if 1 < attempt <= 6:
        scheduled = run.shown[0].attributes
        assert (scheduled.attempt, scheduled.start_to_close_timeout) == (attempt, seconds(timeout))


def test_the_first_task_shows_its_start():
    run = Run()
    token = run.wait(2).begin()
    assert (token.base, token.attempt, token.placed, token.started_time) == (1, 1, (), run.now)
    assert [event.event_type for event in run.shown] == ["WorkflowTaskStarted"]
    assert run.shown[0].event_id == 3 and run.shown[0].attributes.history_size_bytes == run.s.history_size


def test_the_list_is_in_order_of_time():
    run = Run()
    run.accept(timer("late", 8), timer("early", 2), activity("a"))
    run.take(7)
    run.wait(1).signal("first")
    run.wait(4).finish(7)
    run.wait(1).signal("last")
    run.wait(3)
    token = run.begin()
    assert token.placed == (
        PlacedTimer("early"),
        PlacedActivity(7),
        PlacedBuffered(1),
        PlacedTimer("late"),
    )
    times = [event.event_time for event in run.shown]
    assert times == sorted(times) and times[0] == T0 + seconds(2)
    run.accept(token=token)


def test_times_never_run_backwards():
    run = Run()
    run.accept(timer("t", 2))
    run.wait(5).signal()
    token = run.begin()
    assert run.shown[0].event_type == "TimerFired" and run.shown[0].event_time == run.s.last_event_time
    run.now = T0
    earlier, _ = workflow_task.begin(run.s, T0 + seconds(3))
    assert earlier.started_time == T0 + seconds(5) == token.started_time


def test_a_task_shows_at_most_so_much():
    run = Run()
    run.accept(*(timer(str(number), 1) for number in range(600)))
    run.wait(2).fire()
    assert run.kinds.count("TimerFired") == 600  # numbered at once: no task was outstanding
    run.accept(*(timer(str(number), 1) for number in range(600)))
    run.signal()
    run.wait(2)
    token = run.begin()
    assert len(token.placed) == limits.MAX_PLACED_EVENTS
    run.accept(token=token)
    assert run.s.timers == {} and run.kinds[-1] == "WorkflowTaskScheduled"


def test_a_task_shows_at_most_so_many_bytes_but_something():
    run = Run()
    run.signal(input=payload("x" * limits.MAX_PLACED_BYTES))
    run.signal()
    assert len(run.begin().placed) == 1


def test_a_transient_task_is_numbered_when_shown():
    run = Run()
    run.fail_task()
    run.wait(1).signal()
    run.begin()
    assert [event.event_type for event in run.shown] == [
        "WorkflowTaskScheduled",
        "WorkflowExecutionSignaled",
        "WorkflowTaskStarted",
    ]
    assert run.shown[0].attributes.attempt == 2
    assert run.shown[2].attributes.scheduled_event_id == run.shown[0].event_id


def test_no_task_or_not_yet():
    run = Run()
    for _ in range(3):
        run.fail_task()
    with pytest.raises(NotFound, match="no workflow task to start now"):
        run.begin()
    run.wait(5).accept()
    with pytest.raises(NotFound):
        run.begin()


def test_placed_events_is_what_begin_shows():
    run = Run()
    run.signal()
    token = run.begin()
    assert workflow_task.placed_events(run.s, token, ()) == run.shown


def test_a_lost_dispatch_is_sent_again():
    run = Run()
    assert run.last.deadline == T0 + FIRST_REDISPATCH
    run.fire()
    assert run.last.tasks == ()
    run.wait(30).fire()
    assert run.last.tasks == (DispatchWorkflowTask(task_queue="orders"),)
    assert run.last.deadline == run.now + seconds(60)


def test_a_delayed_attempt_is_dispatched_in_time():
    run = Run()
    for _ in range(3):
        run.fail_task()
    assert run.last.deadline == T0 + seconds(5)
    run.wait(5).fire()
    assert run.last.tasks == (DispatchWorkflowTask(task_queue="orders", attempt=4),)
    assert run.s.workflow_task.dispatches == 1
    assert run.last.deadline == run.now + seconds(30)


@pytest.mark.parametrize(
    "ask",
    [
        lambda draft: workflow_task.record_scheduled(draft),
        lambda draft: workflow_task.record_failed(draft, 3, "UNHANDLED_COMMAND"),
        lambda draft: workflow_task.fail_transient(draft, "UNHANDLED_COMMAND", None),
    ],
)
def test_there_must_be_a_task(ask):
    run = Run()
    token = run.begin()
    run.accept()
    with pytest.raises(ValueError, match="no workflow task is outstanding"):
        ask(TransitionBuilder(run.s, run.now))
    with pytest.raises(ValueError, match="no workflow task is outstanding"):
        workflow_task.placed_events(run.s, token, ())
