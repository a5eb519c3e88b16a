"""What a retry policy and a cron schedule make of a run's end (ER-12, LC-24, PM-29), and start delays (LC-07)."""

from datetime import UTC, datetime, timedelta

import pytest
from stepwell.api.commands import CancelWorkflowExecution, CompleteWorkflowExecution, FailWorkflowExecution
from stepwell.api.common import RetryPolicy
from stepwell.api.enums import (
    CompletionOutcome,
    ContinueAsNewInitiator,
    RetryState,
    TimeoutType,
    WorkflowExecutionStatus,
)
from stepwell.api.errors import InvalidArgument
from stepwell.api.events import (
    WorkflowExecutionCompleted,
    WorkflowExecutionFailed,
    WorkflowExecutionStarted,
    WorkflowExecutionTimedOut,
)
from stepwell.api.failures import TimeoutFailureInfo

from tests.support.history_run import T0, Run, activity, declined, payload, seconds, timer
from tests.unit.history.machines.test_chain import again, first

TWICE = RetryPolicy(initial_interval=seconds(10), maximum_attempts=2)
RETRY, CRON = ContinueAsNewInitiator.RETRY, ContinueAsNewInitiator.CRON_SCHEDULE


def complete(text: str = "1") -> CompleteWorkflowExecution:
    return CompleteWorkflowExecution(result=payload(text))


def fail(message: str = "card 42", **info: object) -> FailWorkflowExecution:
    return FailWorkflowExecution(failure=declined(message, **info))


def ended(run: Run, run_id: str) -> WorkflowExecutionFailed | WorkflowExecutionCompleted | WorkflowExecutionTimedOut:
    attributes = run.ended[run_id][-1].attributes
    assert isinstance(attributes, WorkflowExecutionFailed | WorkflowExecutionCompleted | WorkflowExecutionTimedOut)
    return attributes


def begin_next(run: Run) -> None:
    """Lets the wait of the run that is open pass."""
    assert run.s.first_task_at is not None and run.s.workflow_task is None
    run.now = run.s.first_task_at
    run.fire()
    assert run.s.workflow_task is not None


# --- retries of the whole workflow --------------------------------------------------------------------------------


def test_without_a_policy_a_failure_is_final() -> None:
    run = Run()
    run.accept(fail())
    closed = run.events[-1].attributes
    assert isinstance(closed, WorkflowExecutionFailed)
    assert (closed.retry_state, closed.new_execution_run_id) == (RetryState.RETRY_POLICY_NOT_SET, "")


def test_each_attempt_is_a_run_of_the_chain_and_the_last_failure_is_final() -> None:
    run = Run(retry_policy=TWICE, input=payload("start"), memo={"a": payload()[0]}, headers={"h": payload()[0]})
    run.accept(fail())
    closed = ended(run, "run-1")
    assert isinstance(closed, WorkflowExecutionFailed)
    assert (closed.retry_state, closed.new_execution_run_id) == (RetryState.IN_PROGRESS, "run-2")
    started = first(run)
    assert (started.attempt, started.initiator, started.continued_execution_run_id) == (2, RETRY, "run-1")
    assert (started.first_execution_run_id, started.original_execution_run_id) == ("run-1", "run-2")
    assert started.continued_failure == declined() and started.first_workflow_task_backoff == seconds(10)
    assert (started.input, started.memo, started.headers) == (
        payload("start"),
        {"a": payload()[0]},
        {"h": payload()[0]},
    )
    assert run.kinds == ["WorkflowExecutionStarted"]
    begin_next(run)
    run.accept(fail("again"))
    last = run.events[-1].attributes
    assert isinstance(last, WorkflowExecutionFailed) and last.new_execution_run_id == ""
    assert last.retry_state is RetryState.MAXIMUM_ATTEMPTS_REACHED and run.s.run_id == "run-2"


def test_success_and_a_final_failure_end_it_at_once() -> None:
    run = Run(retry_policy=TWICE)
    run.accept(complete())
    assert run.s.status is WorkflowExecutionStatus.COMPLETED and run.s.new_execution_run_id == ""
    run = Run(retry_policy=TWICE)
    run.accept(fail(non_retryable=True))
    last = run.events[-1].attributes
    assert isinstance(last, WorkflowExecutionFailed) and last.retry_state is RetryState.NON_RETRYABLE_FAILURE


def test_a_failure_may_say_when() -> None:
    run = Run(retry_policy=TWICE)
    run.accept(fail(next_retry_delay=timedelta(0)))
    assert first(run).first_workflow_task_backoff is None
    assert run.kinds == ["WorkflowExecutionStarted", "WorkflowTaskScheduled"]
    run = Run(retry_policy=TWICE)
    run.accept(fail(next_retry_delay=seconds(77)))
    assert run.s.first_task_at == T0 + seconds(77)


def test_never_past_the_executions_expiry() -> None:
    run = Run(retry_policy=TWICE, workflow_execution_timeout=seconds(30)).wait(21)
    run.accept(fail())
    last = run.events[-1].attributes
    assert isinstance(last, WorkflowExecutionFailed)
    assert (last.retry_state, last.new_execution_run_id) == (RetryState.TIMEOUT, "")


def test_a_run_that_times_out_is_tried_again_and_the_execution_is_not() -> None:
    run = Run(retry_policy=TWICE, workflow_run_timeout=seconds(30), workflow_execution_timeout=seconds(100))
    run.accept(timer(after=60))
    run.wait(30).fire()
    closed = ended(run, "run-1")
    assert isinstance(closed, WorkflowExecutionTimedOut)
    assert (closed.retry_state, closed.new_execution_run_id) == (RetryState.IN_PROGRESS, "run-2")
    failure = first(run).continued_failure
    assert failure is not None and isinstance(failure.info, TimeoutFailureInfo)
    assert failure.info.timeout_type is TimeoutType.START_TO_CLOSE
    assert run.s.timers == {} and run.s.armed == T0 + seconds(40)
    assert run.s.run_expires == T0 + seconds(70), "the wait does not count"
    run.wait(10).fire()
    assert run.tail(1) == ["WorkflowTaskScheduled"]
    run.wait(70).fire()
    last = run.events[-1].attributes
    assert isinstance(last, WorkflowExecutionTimedOut) and last.new_execution_run_id == ""
    assert last.retry_state is RetryState.MAXIMUM_ATTEMPTS_REACHED


def test_signals_that_a_timed_out_run_has_not_seen_come_to_its_next_attempt() -> None:
    run = Run(retry_policy=TWICE, workflow_run_timeout=seconds(30))
    run.accept(activity())
    run.signal("seen")
    run.begin()
    run.signal("unseen")
    run.wait(30).fire()
    names = [getattr(event.attributes, "signal_name", "") for event in run.events]
    assert names == ["", "unseen"] and run.s.workflow_task is None
    begin_next(run)
    assert run.kinds == ["WorkflowExecutionStarted", "WorkflowExecutionSignaled", "WorkflowTaskScheduled"]


def test_a_chain_that_was_asked_to_cancel_is_not_tried_again() -> None:
    run = Run(retry_policy=TWICE)
    run.cancel()
    run.accept(fail())
    last = run.events[-1].attributes
    assert isinstance(last, WorkflowExecutionFailed)
    assert (last.retry_state, last.new_execution_run_id) == (RetryState.CANCEL_REQUESTED, "")
    run = Run(retry_policy=TWICE, workflow_run_timeout=seconds(30))
    run.begin()
    run.cancel()
    run.wait(30).fire()
    assert run.tail(2) == ["WorkflowExecutionCancelRequested", "WorkflowExecutionTimedOut"]
    assert run.s.new_execution_run_id == "" and run.s.run_id == "run-1"


@pytest.mark.parametrize("policy", [TWICE, None])
def test_cancelled_and_terminated_end_the_chain(policy: RetryPolicy | None) -> None:
    run = Run(retry_policy=policy, cron_schedule="* * * * *")
    begin_next(run)
    run.cancel()
    run.accept(CancelWorkflowExecution())
    assert run.s.status is WorkflowExecutionStatus.CANCELED and run.s.run_id == "run-1"
    run = Run(retry_policy=policy, cron_schedule="* * * * *")
    run.terminate()
    assert run.s.status is WorkflowExecutionStatus.TERMINATED and run.s.run_id == "run-1"


def test_its_policy_goes_along_with_continue_as_new_and_attempts_begin_anew() -> None:
    run = Run(retry_policy=TWICE)
    run.accept(fail())
    begin_next(run)
    run.accept(again())
    assert (run.s.attempt, run.s.retry_policy) == (1, TWICE)
    run.accept(fail())
    assert run.s.attempt == 2


# --- cron ---------------------------------------------------------------------------------------------------------


def test_the_first_run_waits_for_its_time_and_each_end_begins_the_next() -> None:
    run = Run(cron_schedule="*/10 * * * *", input=payload("in"))
    assert run.s.first_task_at == T0 + seconds(600) == run.s.armed and first(run).initiator is CRON
    begin_next(run)
    run.wait(30).accept(complete("5"))
    closed = ended(run, "run-1")
    assert isinstance(closed, WorkflowExecutionCompleted) and closed.new_execution_run_id == "run-2"
    started = first(run)
    assert (started.initiator, started.attempt, started.input) == (CRON, 1, payload("in"))
    assert (started.last_completion_result, started.continued_failure) == (payload("5"), None)
    assert run.s.first_task_at == T0 + seconds(1200)


def test_a_failed_run_is_followed_too_and_the_last_result_stays() -> None:
    run = Run(cron_schedule="*/10 * * * *")
    begin_next(run)
    run.accept(complete("5"))
    begin_next(run)
    run.accept(fail())
    closed = ended(run, "run-2")
    assert isinstance(closed, WorkflowExecutionFailed) and closed.new_execution_run_id == "run-3"
    assert closed.retry_state is RetryState.RETRY_POLICY_NOT_SET
    started = first(run)
    assert (started.last_completion_result, started.continued_failure) == (payload("5"), declined())
    begin_next(run)
    run.accept(again())
    assert first(run).last_completion_result == payload("5"), "it goes along with continue-as-new"


def test_times_that_were_missed_are_left_out_and_runs_never_overlap() -> None:
    run = Run(cron_schedule="*/10 * * * *")
    begin_next(run)
    run.wait(25 * 60).accept(complete())
    assert run.s.first_task_at == T0 + timedelta(minutes=40)


def test_retries_come_before_the_next_turn() -> None:
    run = Run(cron_schedule="*/10 * * * *", retry_policy=TWICE)
    begin_next(run)
    run.accept(fail())
    assert (first(run).initiator, run.s.attempt) == (RETRY, 2)
    begin_next(run)
    run.accept(fail())
    started = first(run)
    assert (started.initiator, started.attempt) == (CRON, 1)
    closed = ended(run, "run-2")
    assert isinstance(closed, WorkflowExecutionFailed)
    assert closed.retry_state is RetryState.MAXIMUM_ATTEMPTS_REACHED


def test_cron_ends_with_the_executions_expiry() -> None:
    run = Run(cron_schedule="*/10 * * * *", workflow_execution_timeout=timedelta(minutes=15))
    assert run.s.execution_expires == T0 + timedelta(minutes=25), "from the first turn on"
    begin_next(run)
    run.accept(complete())
    begin_next(run)
    run.accept(complete())
    assert run.s.status is WorkflowExecutionStatus.COMPLETED and run.s.run_id == "run-2"


def test_a_timed_out_turn_is_followed_by_the_next() -> None:
    run = Run(cron_schedule="*/10 * * * *", workflow_run_timeout=seconds(60))
    assert run.s.run_expires == T0 + seconds(660)
    begin_next(run)
    run.wait(60).fire()
    assert run.s.run_id == "run-2" and run.s.first_task_at == T0 + seconds(1200)


def test_signals_do_not_end_a_crons_wait() -> None:
    run = Run(cron_schedule="*/10 * * * *")
    run.signal()
    assert run.s.workflow_task is None and run.kinds[1:] == ["WorkflowExecutionSignaled"]
    begin_next(run)


# --- start delay --------------------------------------------------------------------------------------------------


def test_the_first_task_comes_behind_the_delay() -> None:
    run = Run(workflow_start_delay=seconds(60), workflow_run_timeout=seconds(30))
    assert run.kinds == ["WorkflowExecutionStarted"] and run.s.armed == run.s.first_task_at == T0 + seconds(60)
    assert run.last is not None and run.last.owes is False
    assert run.s.run_expires == T0 + seconds(90) and first(run).initiator is None
    begin_next(run)
    run.accept()


@pytest.mark.parametrize("message", ["signal", "cancel"])
def test_a_message_ends_the_delay(message: str) -> None:
    run = Run(workflow_start_delay=timedelta(days=1))
    getattr(run, message)()
    assert run.tail(1) == ["WorkflowTaskScheduled"] and run.s.first_task_at is None
    run.wait(86_400).fire()
    assert run.kinds.count("WorkflowTaskScheduled") == 1
    run.accept()


def test_the_delay_is_over_in_the_next_run() -> None:
    run = Run(workflow_start_delay=seconds(60), retry_policy=TWICE)
    run.signal()
    run.accept(fail())
    assert first(run).first_workflow_task_backoff == seconds(10)


def test_a_run_may_be_terminated_or_time_out_while_it_waits() -> None:
    run = Run(workflow_start_delay=timedelta(days=1))
    run.terminate()
    assert run.s.close_time is not None and run.s.first_task_at is None
    run = Run(workflow_start_delay=seconds(60), workflow_execution_timeout=seconds(30))
    assert run.s.execution_expires == T0 + seconds(90)


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"cron_schedule": "nonsense"}, "cron_schedule", "'nonsense' has not five fields"),
        ({"cron_schedule": "61 * * * *"}, "cron_schedule", "cannot be read: Bad minute"),
        (
            {"cron_schedule": "@daily", "workflow_start_delay": seconds(1)},
            "workflow_start_delay",
            "cannot go with cron_schedule",
        ),
        ({"retry_policy": RetryPolicy(maximum_attempts=-1)}, "retry_policy", "maximum_attempts is -1"),
    ],
)
def test_bad_input_is_refused(fields: dict[str, object], field: str, says: str) -> None:
    run = Run(begun=False)
    with pytest.raises(InvalidArgument, match=says) as refused:
        run.start(**fields)
    assert refused.value.details["field"] == field
    assert run.state is None


def test_a_close_that_has_not_seen_a_signal_is_refused_as_ever() -> None:
    run = Run(retry_policy=TWICE)
    token = run.begin()
    run.signal()
    assert run.complete(fail(), token=token).outcome is CompletionOutcome.UNSEEN_EVENTS


def test_cron_reckons_in_utc() -> None:
    run = Run(cron_schedule="0 12 * * *")
    assert run.s.first_task_at == datetime(2026, 1, 5, 12, tzinfo=UTC)


def test_the_first_event_carries_it_all() -> None:
    run = Run(cron_schedule="0 12 * * *", retry_policy=TWICE)
    started = first(run)
    assert isinstance(started, WorkflowExecutionStarted)
    assert (started.cron_schedule, started.retry_policy) == ("0 12 * * *", TWICE)
    assert started.first_workflow_task_backoff == timedelta(hours=3)
