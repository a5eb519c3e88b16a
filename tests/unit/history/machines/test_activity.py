"""Ends of leased attempts, hand-over to the item, timeouts, dispatch again."""

import msgspec
import pytest
from stepwell.api import commands as c
from stepwell.api import limits
from stepwell.api.enums import RetryState, TimeoutType
from stepwell.api.failures import Failure
from stepwell.api.payloads import Payload

from stepwell_server.history import activity_attempts
from stepwell_server.history.problems import FAILING_ACTIVITY
from stepwell_server.history.requests import LeasedOutcome
from stepwell_server.history.tasks import CancelActivity, DispatchActivityTask, RecordVisibility
from tests.support.history_run import EAGER, T0, Run, activity, declined, done, failed, leased, once, seconds

CANCELED = LeasedOutcome(scheduled_event_id=5, attempt=1, canceled=True)
CANCEL = CancelActivity(scheduled_event_id=5, activity_id="1", task_queue="orders", run_id="run-1")


def buffered(**fields):
    """With a workflow task outstanding."""
    run = leased(**fields)
    run.signal()
    return run


def reply_code(run):
    return run.last.reply.outcome_replies[0].error_code


def test_a_result_is_numbered_with_its_start_and_wakes_the_workflow():
    run = leased()
    run.outcomes(done(5))
    assert run.tail(3) == ["ActivityTaskStarted", "ActivityTaskCompleted", "WorkflowTaskScheduled"]
    assert run.events[-2].attributes.started_event_id == run.events[-3].event_id
    assert run.events[-3].attributes.identity == "worker-1"
    run.outcomes(done(5))
    assert reply_code(run) == "NOT_FOUND" and not run.last.changed


def test_the_start_of_a_lease_says_when_its_attempt_began():
    run = leased()
    run.wait(3).outcomes(done(5))
    started = run.events[-3]
    assert (started.event_time, started.attributes.started_time) == (T0 + seconds(3), T0)


def test_many_results_make_one_task():
    run = Run()
    run.accept(activity("1"), activity("2"), eager=EAGER)
    run.outcomes(done(5), done(6), done(7))
    assert run.tail(5)[-1] == "WorkflowTaskScheduled" and run.kinds.count("WorkflowTaskScheduled") == 2
    assert [reply.error_code for reply in run.last.reply.outcome_replies] == ["", "", "NOT_FOUND"]


@pytest.mark.parametrize(
    ("outcome", "other", "fields"),
    [
        (done(5), done(5, "else"), {}),
        (failed(5), done(5), {"retry_policy": once()}),
        (CANCELED, done(5), {}),
        (failed(5), failed(5, declined("else")), {"schedule_to_close_timeout": seconds(1)}),
    ],
)
def test_a_buffered_end_counts_once(outcome, other, fields):
    run = buffered(**fields)
    run.outcomes(outcome)
    assert reply_code(run) == "" and len(run.s.buffered) == 1
    run.outcomes(outcome)
    assert reply_code(run) == "" and not run.last.changed
    run.outcomes(other)
    assert reply_code(run) == "NOT_FOUND" and not run.last.changed


def test_each_buffered_end_is_found():
    run = Run()
    run.accept(activity("1"), activity("2"), eager=EAGER)
    run.signal()
    run.signal()
    run.outcomes(done(5))
    run.outcomes(done(6))
    run.outcomes(done(6))
    assert reply_code(run) == ""


def test_a_buffered_cancel_counts_once():
    run = buffered()
    run.accept(c.RequestCancelActivityTask(scheduled_event_id=5))
    assert (
        msgspec.structs.replace(CANCEL, leased_to="k1") in run.last.tasks
    )  # for the worker that holds the lease (AC-20)
    run.signal()
    run.outcomes(CANCELED)
    run.outcomes(CANCELED)
    assert reply_code(run) == "" and not run.last.changed
    run.outcomes(done(5))
    assert reply_code(run) == "NOT_FOUND"
    run.accept()
    canceled = next(event.attributes for event in run.events if event.event_type == "ActivityTaskCanceled")
    asked = next(event for event in run.events if event.event_type == "ActivityTaskCancelRequested")
    assert canceled.latest_cancel_requested_event_id == asked.event_id


def test_the_wrong_attempt_does_not_count():
    run = leased()
    run.outcomes(done(5, attempt=2))
    assert reply_code(run) == "NOT_FOUND" and not run.last.changed


def test_closed_runs_take_no_outcomes():
    run = leased()
    run.terminate()
    run.outcomes(done(5))
    assert "the run is closed" in run.last.reply.outcome_replies[0].message


def test_a_failure_is_handed_to_the_item_and_leaves_no_history():
    run = leased()
    before = len(run.events)
    run.outcomes(failed(5))
    pending = run.s.activities[5]
    assert len(run.events) == before and run.s.workflow_task is None
    assert (pending.lease, pending.attempt, pending.last_worker_identity) == (None, 2, "worker-1")
    assert pending.next_attempt_time == pending.next_dispatch == T0 + seconds(1)
    dispatch, record = run.last.tasks
    assert dispatch == DispatchActivityTask(
        scheduled_event_id=5, task_queue="orders", attempt=2, not_before=T0 + seconds(1)
    )
    assert isinstance(record, RecordVisibility) and FAILING_ACTIVITY in record.search_attributes
    assert run.last.owes is None


def test_a_worker_that_shuts_down_costs_no_backoff():
    run = leased()
    run.outcomes(failed(5, worker_shutdown=True))
    assert run.s.activities[5].next_attempt_time == T0
    assert run.last.tasks[0].not_before is None


def test_final_failure_and_overall_deadline():
    run = leased(retry_policy=once())
    run.outcomes(failed(5))
    end = run.events[-2].attributes
    assert (end.failure, end.retry_state) == (declined(), RetryState.MAXIMUM_ATTEMPTS_REACHED)
    run = leased(schedule_to_close_timeout=seconds(1))
    run.outcomes(failed(5))
    end = run.events[-2].attributes
    assert end.retry_state is RetryState.TIMEOUT and end.failure.cause == declined()
    assert end.failure.info.timeout_type is TimeoutType.SCHEDULE_TO_CLOSE


def test_an_oversized_result_fails_the_activity():
    run = leased()
    large = (Payload(data=b"x" * (limits.MAX_PAYLOAD_BYTES + 1)),)
    run.outcomes(LeasedOutcome(scheduled_event_id=5, attempt=1, result=large))
    assert run.events[-2].attributes.retry_state is RetryState.NON_RETRYABLE_FAILURE


def test_start_to_close_of_a_lease():
    run = leased()
    run.wait(10).fire()
    pending = run.s.activities[5]
    assert pending.attempt == 2 and pending.last_failure.info.timeout_type is TimeoutType.START_TO_CLOSE
    run = leased(retry_policy=once())
    run.wait(10).fire()
    assert run.tail(3) == ["ActivityTaskStarted", "ActivityTaskTimedOut", "WorkflowTaskScheduled"]
    assert run.events[-3].attributes.started_time == T0


def test_schedule_to_close_of_a_lease():
    run = leased(schedule_to_close_timeout=seconds(4))
    assert run.last.deadline == T0 + seconds(4)
    run.wait(4).fire()
    assert run.events[-2].attributes.failure.info.timeout_type is TimeoutType.SCHEDULE_TO_CLOSE


def test_a_timeout_that_is_buffered_strikes_once():
    run = buffered(retry_policy=once())
    run.wait(10).fire()
    assert len(run.s.buffered) == 1
    run.fire()
    assert len(run.s.buffered) == 1
    run.outcomes(done(5))
    assert reply_code(run) == "NOT_FOUND"
    timed_out = LeasedOutcome(scheduled_event_id=5, attempt=1, failure=Failure())
    run.outcomes(timed_out)
    assert reply_code(run) == "NOT_FOUND"


def test_leases_of_a_gone_worker():
    run = Run()
    run.accept(activity("1"), activity("2", retry_policy=once()), eager=EAGER)
    run.end_leases(5, 6, 99)
    assert run.s.activities[5].attempt == 2 and run.s.activities[5].last_failure.message == "killed"
    assert run.s.activities[6].lease is not None
    assert run.last.tasks[:-1] == (DispatchActivityTask(scheduled_event_id=5, task_queue="orders", attempt=2),)
    run.end_leases(5, 6)
    assert not run.last.changed


def test_a_finished_item_wakes_the_workflow_once():
    run = Run()
    run.accept(activity("1"))
    run.take(5)
    assert not run.wake_up().changed
    run.finish(5)
    run.wake_up()
    assert run.tail(3) == ["ActivityTaskStarted", "ActivityTaskCompleted", "WorkflowTaskScheduled"]
    assert not run.wake_up().changed


def test_a_finished_item_waits_for_an_outstanding_task():
    run = Run()
    run.accept(activity("1"))
    run.signal()
    run.take(5)
    run.finish(5)
    assert not run.wake_up().changed
    run.accept()
    assert "ActivityTaskCompleted" in run.kinds


def test_dispatch_again_doubles_up_to_a_day():
    run = Run()
    run.accept(activity("1"))
    waits = []
    for _ in range(14):
        before = run.s.activities[5].next_dispatch
        run.now = before
        run.fire()
        assert DispatchActivityTask(scheduled_event_id=5, task_queue="orders") in run.last.tasks
        waits.append((run.s.activities[5].next_dispatch - before).total_seconds())
    assert waits[:3] == [60, 120, 240] and waits[-1] == 86_400


def test_an_attempt_that_may_start_is_dispatched_when_it_may():
    run = Run()
    run.accept(activity("1"))
    item = run.take(5)
    run.fire()
    assert run.last.tasks == ()
    run.put(activity_attempts.fail(item, 1, declined(), run.now))
    run.fire()
    assert run.last.tasks == () and run.last.deadline == T0 + seconds(1)
    run.wait(1).fire()
    assert run.last.tasks == (DispatchActivityTask(scheduled_event_id=5, task_queue="orders", attempt=2),)
    assert run.s.activities[5].attempt == 2
    assert run.last.deadline == T0 + seconds(31)


def test_a_cancel_request_that_may_be_lost_is_sent_again():
    run = Run()
    run.accept(activity("1"))
    run.signal()
    run.accept(c.RequestCancelActivityTask(scheduled_event_id=5))
    assert run.last.tasks == (CANCEL,)
    run.fire()
    assert CANCEL in run.last.tasks
