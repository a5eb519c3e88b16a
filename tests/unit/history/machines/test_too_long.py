"""A run that would become too long is terminated, with a reason, and nobody is told of success (DA-09, LC-22)."""

import pytest
from stepwell.api import limits
from stepwell.api.commands import CompleteWorkflowExecution, RecordMarker
from stepwell.api.enums import CompletionOutcome, SuggestContinueAsNewReason, WorkflowExecutionStatus
from stepwell.api.errors import WorkflowExecutionClosed
from stepwell.api.events import WorkflowExecutionTerminated, WorkflowTaskStarted

from stepwell_server.history import history_limits
from stepwell_server.history.apply import event_size
from stepwell_server.history.requests import Signal, Signals
from stepwell_server.history.transition import OutcomesReply, SignalsReply
from tests.support.history_run import Run, activity, done, leased, payload, seconds, timer
from tests.unit.history.machines.test_chain import again

EVENTS, SIZE, UPDATES = (
    SuggestContinueAsNewReason.TOO_MANY_HISTORY_EVENTS,
    SuggestContinueAsNewReason.HISTORY_SIZE_TOO_LARGE,
    SuggestContinueAsNewReason.TOO_MANY_UPDATES,
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 20 events, and a hint from 10 on."""
    monkeypatch.setattr(limits, "MAX_HISTORY_EVENTS", 20)
    monkeypatch.setattr(limits, "SUGGEST_CONTINUE_EVENTS", 10)


def markers(count: int) -> list[RecordMarker]:
    return [RecordMarker(marker_name="m") for _ in range(count)]


def long_run(events: int) -> Run:
    """With this many events, no workflow task outstanding, and an activity (event 5) leased."""
    run = leased()
    run.signal()
    run.accept(*markers(events - 5 - 4))
    assert len(run.events) == events
    return run


def terminated(run: Run) -> str:
    last = run.events[-1].attributes
    assert isinstance(last, WorkflowExecutionTerminated) and last.identity == "stepwell"
    assert run.s.status is WorkflowExecutionStatus.TERMINATED
    return last.reason


def test_the_limits_are_those_of_the_field() -> None:
    assert (limits.SUGGEST_CONTINUE_EVENTS, limits.SUGGEST_CONTINUE_BYTES) == (4_096, 4 * 1024 * 1024)
    assert (limits.MAX_HISTORY_EVENTS, limits.MAX_HISTORY_BYTES) == (51_200, 50 * 1024 * 1024)
    assert (limits.WARN_HISTORY_EVENTS, limits.SUGGEST_CONTINUE_UPDATES) == (10_240, 1_800)
    assert limits.WARN_HISTORY_BYTES == 10 * 1024 * 1024


def test_the_hint_and_its_reasons() -> None:
    assert history_limits.suggestion(4_095, limits.SUGGEST_CONTINUE_BYTES - 1, 1_799) == ()
    assert history_limits.suggestion(4_096, 0, 0) == (EVENTS,)
    assert history_limits.suggestion(0, limits.SUGGEST_CONTINUE_BYTES, 0) == (SIZE,)
    assert history_limits.suggestion(0, 0, 1_800) == (UPDATES,)
    assert history_limits.suggestion(5_000, 1 << 30, 2_000) == (SIZE, EVENTS, UPDATES)


@pytest.mark.usefixtures("small")
def test_the_hint_is_in_each_kind_of_started_event() -> None:
    run = long_run(10)
    run.signal()
    run.begin()
    shown = run.shown[-1].attributes
    assert isinstance(shown, WorkflowTaskStarted) and shown.suggest_continue_as_new
    reply = run.accept()
    assert reply.suggested == (EVENTS,)
    run.fused([done(5)])
    recorded = next(e.attributes for e in reversed(run.events) if isinstance(e.attributes, WorkflowTaskStarted))
    assert recorded.suggest_continue_as_new_reasons == (EVENTS,)


@pytest.mark.usefixtures("small")
def test_a_fused_step_records_what_its_worker_was_told() -> None:
    """The ends that come with it take the history over the mark; its code has seen none of that."""
    run = leased()
    run.signal()
    reply = run.accept()
    assert len(run.events) == 9 and reply.suggested == ()
    run.fused([done(5)])
    recorded = next(e.attributes for e in reversed(run.events) if isinstance(e.attributes, WorkflowTaskStarted))
    assert len(run.events) == 14 and not recorded.suggest_continue_as_new


@pytest.mark.usefixtures("small")
def test_a_completion_over_the_limit_is_given_up_as_a_whole() -> None:
    run = long_run(16)
    run.signal()
    token = run.begin()
    reply = run.complete(timer(), token=token, outcomes=[done(5)])
    assert reply.outcome is CompletionOutcome.STALE and "history count exceeds limit" in reply.message
    assert [outcome.error_code for outcome in reply.outcome_replies] == ["NOT_FOUND"]
    assert run.tail(2) == ["WorkflowTaskScheduled", "WorkflowExecutionTerminated"]
    assert terminated(run) == (
        "Workflow history count exceeds limit: the history would have 24 events, the most is 20. Let the workflow "
        "continue as new before that (workflow.info().is_continue_as_new_suggested() says when), and start it again "
        "for what is left to do."
    )
    assert run.s.activities == {} and run.s.timers == {}


@pytest.mark.usefixtures("small")
def test_exactly_the_limit_is_taken() -> None:
    run = long_run(16)
    run.signal()
    run.accept()
    assert len(run.events) == 20 and run.s.close_time is None


@pytest.mark.usefixtures("small")
def test_a_run_may_end_or_go_on_as_another_over_the_limit() -> None:
    for command in (CompleteWorkflowExecution(result=payload()), again()):
        run = long_run(16)
        run.signal()
        run.accept(command)
        assert run.s.status in (WorkflowExecutionStatus.COMPLETED, WorkflowExecutionStatus.RUNNING)
        assert run.s.status is WorkflowExecutionStatus.COMPLETED or run.s.run_id == "run-2"


@pytest.mark.usefixtures("small")
def test_a_signal_that_is_not_recorded_is_refused() -> None:
    run = long_run(19)
    transition = run.signal(request_id="lost")
    assert isinstance(transition.refusal, WorkflowExecutionClosed)
    assert "was terminated: Workflow history count exceeds limit" in transition.refusal.message
    assert run.tail(1) == ["WorkflowExecutionTerminated"] and terminated(run)
    run = long_run(19)
    asked = tuple(Signal(run_id="", signal_name="ship", request_id=str(number)) for number in range(3))
    reply = run.step(Signals(signals=asked)).reply
    assert isinstance(reply, SignalsReply)
    assert all(isinstance(refusal, WorkflowExecutionClosed) for refusal in reply.refusals)


@pytest.mark.usefixtures("small")
def test_signals_that_were_acknowledged_are_recorded_before_the_end() -> None:
    run = long_run(18)
    run.signal()
    run.signal("acknowledged")
    run.complete(*markers(9))
    assert run.tail(2) == ["WorkflowExecutionSignaled", "WorkflowExecutionTerminated"]


@pytest.mark.usefixtures("small")
def test_ends_of_activities_and_deadlines_end_it_too() -> None:
    run = long_run(19)
    reply = run.outcomes(done(5)).reply
    assert isinstance(reply, OutcomesReply) and reply.outcome_replies[0].error_code == "NOT_FOUND"
    assert terminated(run)
    run = long_run(19)
    run.cancel()
    assert terminated(run)
    run = Run()
    run.accept(*markers(14), timer("1", 60), activity(start_to_close_timeout=seconds(1000)))
    run.wait(61).fire()
    assert terminated(run)


def test_bytes_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_HISTORY_BYTES", 3_000)
    run = Run()
    run.signal(input=payload("x" * 3_000))
    run.complete()
    assert "history size exceeds limit" in terminated(run)


def test_people_are_warned_once() -> None:
    run = Run()
    run.s.next_event_id = limits.WARN_HISTORY_EVENTS + 3
    event = run.events[0]
    assert history_limits.warning(run.s, [event] * 2, event_size) == ""
    assert history_limits.warning(run.s, [event] * 3, event_size) == "10242 events; at 51200 it is terminated"


def test_people_are_warned_of_the_size_once() -> None:
    run = Run()
    event = run.events[0]
    run.s.history_size = limits.WARN_HISTORY_BYTES - 1
    assert history_limits.warning(run.s, [event], event_size) == ""
    run.s.history_size = limits.WARN_HISTORY_BYTES - 1 + event_size(event)
    assert history_limits.warning(run.s, [event], event_size) == (
        f"a history of {run.s.history_size} bytes; at {50 * 1024 * 1024} it is terminated"
    )
    run.s.history_size += 1
    assert history_limits.warning(run.s, [event], event_size) == ""
