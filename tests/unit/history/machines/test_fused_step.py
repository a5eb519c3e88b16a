"""Fused steps: the ends of leased activities and what they led to, in one commit or refused."""

import pytest
from stepwell.api import commands as c
from stepwell.api.enums import CompletionOutcome, RetryState

from stepwell_server.history.machines.completion import MOST_BESIDE
from stepwell_server.history.requests import LeasedOutcome
from stepwell_server.history.tasks import DispatchActivityTask
from tests.support.history_run import (
    EAGER,
    T0,
    Run,
    activity,
    done,
    failed,
    leased,
    once,
    seconds,
    timer,
)

CLOSE = c.CompleteWorkflowExecution()
STEP = [
    "ActivityTaskStarted",
    "ActivityTaskCompleted",
    "WorkflowTaskScheduled",
    "WorkflowTaskStarted",
    "WorkflowTaskCompleted",
    "ActivityTaskScheduled",
]


def test_a_fused_step_is_one_commit():
    run = leased()
    run.wait(0.2)
    reply = run.fused([done(5)], activity("2"))
    assert reply.outcome is CompletionOutcome.ACCEPTED and reply.fusible
    assert [event.event_type for event in run.last.events] == STEP
    assert [lease.scheduled_event_id for lease in reply.leases] == [11]
    assert run.last.events[0].attributes.started_time == T0
    assert reply.started_event_id == 9 and run.last.tasks == ()
    assert run.fused([done(11)], CLOSE).outcome is CompletionOutcome.ACCEPTED


@pytest.mark.parametrize(("beside", "fusible"), [(MOST_BESIDE, True), (MOST_BESIDE + 1, False)])
def test_not_beside_many_activities_of_others(beside, fusible):
    """Their ends would make a step stale, and the worker replay the history. Those that are leased do not count."""
    run = Run()
    reply = run.accept(*(activity(str(number)) for number in range(EAGER.slots + beside)), eager=EAGER)
    assert len(reply.leases) == EAGER.slots and reply.fusible is fusible
    run.wait(0.2)
    assert run.fused([done(5)], activity("more")).fusible is fusible


def test_results_that_finish_together_travel_together():
    run = Run()
    run.accept(activity("1"), activity("2"), activity("3"), eager=EAGER)
    reply = run.fused([done(6), done(5)])
    assert reply.outcome is CompletionOutcome.ACCEPTED
    assert [run.events[i].attributes.scheduled_event_id for i in (7, 9)] == [6, 5]


def test_final_failures_may_travel_and_retried_ones_not():
    run = leased(retry_policy=once())
    assert run.fused([failed(5)], CLOSE).outcome is CompletionOutcome.ACCEPTED
    end = run.events[-5].attributes
    assert end.retry_state is RetryState.MAXIMUM_ATTEMPTS_REACHED
    run = leased()
    reply = run.fused([failed(5)], CLOSE)
    assert reply.outcome is CompletionOutcome.STALE and reply.outcome_replies[0].error_code == ""
    assert run.last.events == () and run.s.activities[5].attempt == 2
    assert run.last.tasks[:-1] == (
        DispatchActivityTask(
            scheduled_event_id=5, task_queue="orders", attempt=2, not_before=run.s.activities[5].next_attempt_time
        ),
    )


def test_a_step_whose_end_is_not_what_was_shown_is_refused():
    """The workflow saw Declined; the history says that the overall deadline is over."""
    run = leased(schedule_to_close_timeout=seconds(1))
    reply = run.fused([failed(5)], CLOSE)
    assert reply.outcome is CompletionOutcome.STALE
    assert run.tail(3) == ["ActivityTaskStarted", "ActivityTaskTimedOut", "WorkflowTaskScheduled"]
    run = leased()
    unasked = LeasedOutcome(scheduled_event_id=5, attempt=1, canceled=True)
    assert run.fused([unasked], CLOSE).outcome is CompletionOutcome.STALE
    assert run.tail(2) == ["ActivityTaskFailed", "WorkflowTaskScheduled"]


def test_a_canceled_activity_may_travel_when_asked():
    run = leased()
    run.signal()
    run.accept(c.RequestCancelActivityTask(scheduled_event_id=5))
    reply = run.fused([LeasedOutcome(scheduled_event_id=5, attempt=1, canceled=True)])
    assert reply.outcome is CompletionOutcome.ACCEPTED
    assert "ActivityTaskCanceled" in run.tail(5)


@pytest.mark.parametrize("spoil", ["signal", "ended", "twice", "none", "behind", "ahead", "missing", "outstanding"])
def test_stale_steps(spoil):
    run = leased()
    outcomes = [done(5)]
    fields = {}
    match spoil:
        case "signal":
            run.signal()
        case "ended":
            run.end_leases(5)
        case "twice":
            outcomes *= 2
        case "none":
            outcomes = []
        case "behind":
            fields["workflow_time"] = run.now - seconds(1)
        case "ahead":
            fields["workflow_time"] = run.now + seconds(1.1)
        case "outstanding":
            token = run.signal() and run.begin()
            run.signal()
            run.accept(token=token)
        case "missing":
            fields["workflow_time"] = None
    reply = run.fused(outcomes, CLOSE, **fields)
    assert reply.outcome is CompletionOutcome.STALE and "WorkflowExecutionCompleted" not in run.kinds
    if spoil not in ("ended", "none"):
        assert reply.outcome_replies[0].error_code == ""
        assert 5 not in run.s.activities or run.s.buffered


def test_a_step_on_an_old_base_is_refused():
    run = Run()
    run.accept(activity("1"), activity("2"), eager=EAGER)
    old = run.continuation()
    run.fused([done(5)])
    reply = run.complete(CLOSE, token=old, nonce="x", outcomes=[done(6)], workflow_time=run.now)
    assert reply.outcome is CompletionOutcome.STALE


def test_workflow_time_a_little_ahead_stands_as_the_workflow_saw_it():
    run = leased()
    time = run.now + seconds(0.9)
    run.fused([done(5)], workflow_time=time)
    started = run.events[run.last.reply.started_event_id - 1]
    assert started.event_time == time == run.s.last_event_time


def test_a_step_may_fail():
    run = leased()
    reply = run.fail_task(run.continuation(), [done(5)])
    assert reply.outcome is CompletionOutcome.FAILED and reply.outcome_replies[0].error_code == ""
    assert run.tail(3) == ["WorkflowTaskScheduled", "WorkflowTaskStarted", "WorkflowTaskFailed"]
    assert run.s.workflow_task.attempt == 2


def test_a_failed_step_whose_activity_is_tried_again_has_no_task():
    run = leased()
    run.fail_task(run.continuation(), [failed(5)])
    assert run.s.workflow_task is None and run.s.activities[5].attempt == 2


def test_bad_commands_of_a_step_fail_it_and_its_outcomes_count():
    run = leased()
    reply = run.fused([done(5)], timer("1"), timer("1"))
    assert reply.outcome is CompletionOutcome.FAILED and reply.outcome_replies[0].error_code == ""
    assert run.tail(5) == [*STEP[:4], "WorkflowTaskFailed"]
