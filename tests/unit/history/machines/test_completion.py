"""Completions: valid or refused, never rebased. Fused steps have their own file."""

import pytest
from stepwell.api import commands as c
from stepwell.api.codec import encode_json
from stepwell.api.enums import CompletionOutcome, WorkflowTaskFailedCause
from stepwell.api.failures import Failure

from stepwell_server.history.requests import Worker
from stepwell_server.history.task_tokens import WorkflowTaskToken
from stepwell_server.history.tasks import DispatchActivityTask, DispatchWorkflowTask, RecordVisibility
from tests.support.history_run import (
    EAGER,
    T0,
    WORKER,
    Run,
    activity,
    declined,
    done,
    leased,
    once,
    seconds,
    timer,
)

CLOSE = c.CompleteWorkflowExecution()


# --- completions ---


def test_events_of_a_completion():
    run = Run()
    run.wait(1)
    token = run.begin()
    run.wait(0.5)
    reply = run.accept(activity(), timer(), token=token)
    assert run.kinds == [
        "WorkflowExecutionStarted",
        "WorkflowTaskScheduled",
        "WorkflowTaskStarted",
        "WorkflowTaskCompleted",
        "ActivityTaskScheduled",
        "TimerStarted",
    ]
    assert run.events[2].event_time == token.started_time == T0 + seconds(1)
    assert run.events[3].event_time == T0 + seconds(1.5)
    assert (reply.started_event_id, reply.next_event_id, reply.fusible, reply.seq) == (3, 7, True, 2)
    assert run.last.tasks == (DispatchActivityTask(scheduled_event_id=5, task_queue="orders"),)
    assert run.s.last_worker_key == "k1" and run.s.previous_started_event_id == 3


def test_only_the_same_nonce_is_answered_again():
    run = Run()
    token = run.begin()
    reply = run.accept(activity(), activity("2"), token=token, nonce="n", eager=EAGER)
    assert len(reply.leases) == 2
    assert run.complete(token=token, nonce="n") == reply
    assert run.complete(token=token, nonce="m").outcome is CompletionOutcome.STALE
    run.outcomes(done(5))
    again = run.complete(token=token, nonce="n")
    assert [lease.scheduled_event_id for lease in again.leases] == [6]
    assert not again.fusible
    assert run.complete(token=token, nonce="n", worker=Worker(identity="x", worker_key="other")).leases == ()


def test_an_accepted_close_is_answered_again():
    run = Run()
    token = run.begin()
    reply = run.accept(CLOSE, token=token, nonce="n")
    assert not reply.fusible
    assert run.complete(token=token, nonce="n") == reply


@pytest.mark.parametrize("spoil", ["run", "attempt", "numbered", "closed", "done"])
def test_stale(spoil):
    run = Run()
    token = run.begin()
    match spoil:
        case "run":
            token = WorkflowTaskToken("default", "order-1", "run-0", token.base, 1, (), T0)
        case "attempt":
            token = WorkflowTaskToken("default", "order-1", "run-1", token.base, 2, (), T0)
        case "numbered":
            run.fail_task()
        case "closed":
            run.terminate()
        case "done":
            run.accept()
    before = run.s.seq
    reply = run.complete(activity(), token=token, nonce="late")
    assert reply.outcome is CompletionOutcome.STALE and "does not count" in reply.message
    assert run.s.seq == before


def test_outcomes_of_a_stale_completion_count_on_their_own():
    run = leased()
    run.signal()
    token = run.begin()
    run.accept(token=token)
    reply = run.complete(CLOSE, token=token, nonce="late", outcomes=[done(5)])
    assert reply.outcome is CompletionOutcome.STALE
    assert reply.outcome_replies[0].error_code == ""
    assert run.tail(3) == ["ActivityTaskStarted", "ActivityTaskCompleted", "WorkflowTaskScheduled"]


def test_outcomes_of_another_run_do_not_count():
    run = leased()
    token = WorkflowTaskToken("default", "order-1", "run-0", 1, 1, (), T0)
    reply = run.complete(token=token, outcomes=[done(5)])
    assert reply.outcome_replies[0].error_code == "NOT_FOUND"
    assert not run.last.changed


def test_what_came_in_unseen_follows_with_a_task():
    run = Run()
    token = run.begin()
    run.signal()
    reply = run.accept(token=token)
    assert run.tail(4) == [
        "WorkflowTaskStarted",
        "WorkflowTaskCompleted",
        "WorkflowExecutionSignaled",
        "WorkflowTaskScheduled",
    ]
    assert not reply.fusible and reply.next_event_id == 7
    assert DispatchWorkflowTask(task_queue="orders") in run.last.tasks


def test_due_timers_and_finished_items_follow_with_a_task():
    run = Run()
    run.accept(timer("t", 5), activity("a"))
    run.signal()
    run.take(6)
    token = run.begin()
    run.wait(6)
    run.finish(6)
    run.accept(token=token)
    assert run.tail(6) == [
        "WorkflowTaskStarted",
        "WorkflowTaskCompleted",
        "TimerFired",
        "ActivityTaskStarted",
        "ActivityTaskCompleted",
        "WorkflowTaskScheduled",
    ]


def test_outcomes_travel_with_a_completion():
    run = leased()
    run.signal()
    reply = run.accept(token=run.begin(), outcomes=[done(5)])
    assert not reply.fusible
    assert run.tail(4) == [
        "WorkflowTaskCompleted",
        "ActivityTaskStarted",
        "ActivityTaskCompleted",
        "WorkflowTaskScheduled",
    ]


# --- closes ---


def test_a_close_with_unseen_events_is_refused_without_a_write():
    run = Run()
    token = run.begin()
    run.signal()
    reply = run.complete(CLOSE, token=token)
    assert reply.outcome is CompletionOutcome.UNSEEN_EVENTS and not run.last.changed
    run.accept(CLOSE)
    assert run.tail(4) == [
        "WorkflowExecutionSignaled",
        "WorkflowTaskStarted",
        "WorkflowTaskCompleted",
        "WorkflowExecutionCompleted",
    ]


def test_a_close_refused_twice_fails_its_task_and_holds_senders_back():
    run = Run()
    token = run.begin(refused_closes=1)
    run.signal()
    reply = run.complete(CLOSE, token=token)
    assert reply.outcome is CompletionOutcome.FAILED
    assert run.tail(4) == [
        "WorkflowTaskStarted",
        "WorkflowTaskFailed",
        "WorkflowExecutionSignaled",
        "WorkflowTaskScheduled",
    ]
    assert run.events[-3].attributes.cause is WorkflowTaskFailedCause.UNHANDLED_COMMAND
    assert run.s.workflow_task.closing and run.s.workflow_task.attempt == 1
    assert run.last.tasks == (DispatchWorkflowTask(task_queue="orders"),)
    run.accept(CLOSE)
    assert run.kinds[-1] == "WorkflowExecutionCompleted"


def test_outcomes_that_came_with_a_close_refuse_it_and_count():
    run = leased()
    run.signal()
    reply = run.complete(CLOSE, token=run.begin(), outcomes=[done(5)])
    assert reply.outcome is CompletionOutcome.UNSEEN_EVENTS and run.last.changed
    assert len(run.s.buffered) == 1 and reply.outcome_replies[0].error_code == ""
    run.accept(CLOSE)


def test_due_timers_and_finished_items_do_not_keep_a_close():
    run = Run()
    run.accept(timer("t", 5), activity("a"))
    run.signal()
    token = run.begin()
    run.take(6)
    run.wait(6)
    run.finish(6)
    run.accept(CLOSE, token=token)
    assert run.kinds[-1] == "WorkflowExecutionCompleted"


def test_a_closing_task_leases_and_dispatches_nothing():
    run = Run()
    reply = run.accept(activity(), activity("2", task_queue="other"), CLOSE, eager=EAGER)
    assert reply.leases == ()
    assert [type(task) for task in run.last.tasks] == [RecordVisibility]
    assert run.last.owes is False and run.last.deadline is None


# --- failures ---


def test_the_first_failure_is_recorded_and_later_ones_are_not():
    run = Run()
    assert run.fail_task().outcome is CompletionOutcome.FAILED
    assert run.tail(2) == ["WorkflowTaskStarted", "WorkflowTaskFailed"]
    task = run.s.workflow_task
    assert (task.scheduled_event_id, task.attempt, task.not_before) == (0, 2, None)
    assert task.last_cause is WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE
    for attempt in (3, 4, 5):
        run.fail_task()
        assert run.last.events == () and run.last.changed and run.s.workflow_task.attempt == attempt
        if run.s.workflow_task.not_before is not None:
            run.now = run.s.workflow_task.not_before
    assert run.last.tasks == (DispatchWorkflowTask(task_queue="orders", attempt=5, not_before=run.now),)
    run.accept(timer())
    assert run.tail(4) == ["WorkflowTaskScheduled", "WorkflowTaskStarted", "WorkflowTaskCompleted", "TimerStarted"]
    assert run.events[-4].attributes.attempt == 5


def test_a_failure_places_what_was_shown_and_keeps_the_rest():
    run = Run()
    run.signal("seen")
    token = run.begin()
    run.signal("unseen")
    run.fail_task(token)
    assert run.tail(3) == ["WorkflowExecutionSignaled", "WorkflowTaskStarted", "WorkflowTaskFailed"]
    assert [event.attributes.signal_name for event in run.s.buffered] == ["unseen"]
    run.accept()
    assert run.tail(4) == [
        "WorkflowTaskScheduled",
        "WorkflowExecutionSignaled",
        "WorkflowTaskStarted",
        "WorkflowTaskCompleted",
    ]


def test_a_stale_failure_changes_nothing():
    run = Run()
    token = run.begin()
    run.fail_task(token)
    assert run.fail_task(token).outcome is CompletionOutcome.STALE and not run.last.changed


def test_bad_commands_fail_the_task_and_none_takes_effect():
    run = Run()
    reply = run.complete(timer("1"), timer("1"))
    assert reply.outcome is CompletionOutcome.FAILED and "timer_id '1'" in reply.message
    assert run.tail(2) == ["WorkflowTaskStarted", "WorkflowTaskFailed"]
    assert run.events[-1].attributes.cause is WorkflowTaskFailedCause.START_TIMER_DUPLICATE_ID
    assert run.s.timers == {} and run.s.completion is None


def test_bad_commands_of_a_later_attempt_leave_no_event():
    run = Run()
    run.fail_task()
    run.complete(timer("1"), timer("1"))
    assert run.last.events == () and run.s.workflow_task.attempt == 3


def test_outcomes_with_a_failed_task_are_taken_in():
    run = leased()
    run.signal()
    run.fail_task(outcomes=[done(5)])
    assert len(run.s.buffered) == 1
    run.fail_task(outcomes=[done(5)])
    assert run.last.reply.outcome_replies[0].error_code == ""
    assert len(run.s.buffered) == 1


def test_what_begin_shows_is_what_completion_records():
    run = Run()
    run.accept(timer("t", 5), activity("a"), activity("b", retry_policy=once()))
    run.signal("one")
    run.take(6)
    run.take(7)
    run.wait(6).finish(6)
    token = run.begin()
    run.wait(1).signal("two")
    run.accept(token=token)
    shown = [encode_json(event) for event in run.shown]
    first = run.shown[0].event_id - 1
    assert [encode_json(event) for event in run.events[first : first + len(shown)]] == shown
    assert len(shown) == 4


def test_worker_and_failure_are_named():
    run = Run()
    run.fail_task()
    attributes = run.events[-1].attributes
    assert attributes.identity == WORKER.identity and attributes.failure == Failure(message="bug")
    assert declined().message == "card 42"
