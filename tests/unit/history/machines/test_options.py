"""LC-04: a start that meets an open run is remembered by it, wakes nobody and holds nothing back."""

import pytest
from stepwell.api import commands as c
from stepwell.api import limits
from stepwell.api.enums import CompletionOutcome, WorkflowIDConflictPolicy
from stepwell.api.errors import InvalidArgument, WorkflowExecutionClosed
from stepwell.api.failures import Failure
from stepwell.api.requests import OnConflictOptions

from stepwell_server.history import request_ids
from stepwell_server.history.transition import StartReply, Transition
from tests.support.history_run import Run, payload, seconds, timer

UPDATED = "WorkflowExecutionOptionsUpdated"
MARKER = c.RecordMarker(marker_name="m")
CLOSES = [
    c.CompleteWorkflowExecution(result=payload()),
    c.FailWorkflowExecution(failure=Failure(message="no")),
    c.CancelWorkflowExecution(),
    c.ContinueAsNewWorkflowExecution(workflow_type="fulfil", task_queue="orders"),
]


def meet(run: Run, request_id: str = "met", **more: object) -> Transition:
    values = {
        "request_id": request_id,
        "identity": "caller",
        "workflow_id_conflict_policy": WorkflowIDConflictPolicy.USE_EXISTING,
        "on_conflict_options": OnConflictOptions(attach_request_id=True),
    }
    return run.start("run-unused", **(values | more))


def answer(transition: Transition) -> tuple[str, str, bool]:
    reply = transition.reply
    assert isinstance(reply, StartReply)
    return reply.run_id, reply.first_run_id, reply.started


def test_an_idle_run_has_the_event_at_once_and_no_task():
    run = Run()
    run.accept(timer())
    assert answer(meet(run)) == ("run-1", "run-1", False)
    assert run.tail(2) == ["TimerStarted", UPDATED] and run.s.workflow_task is None
    event = run.events[-1].attributes
    assert (event.attached_request_id, event.identity, event.priority) == ("met", "caller", None)
    run.wait(60).fire()
    run.accept()


def test_a_repeat_changes_nothing_and_is_answered_as_before():
    run = Run()
    first = answer(meet(run))
    assert answer(meet(run)) == first and not run.last.changed
    run.accept()
    assert answer(meet(run)) == first and not run.last.changed
    run.terminate()
    assert answer(meet(run)) == first and not run.last.changed
    run.start("run-2")
    assert answer(meet(run)) == first and not run.last.changed


def test_one_that_met_a_later_run_of_a_chain_names_both_runs():
    run = Run()
    run.accept(CLOSES[-1])
    assert answer(meet(run)) == ("run-2", "run-1", False)
    run.terminate()
    run.start("run-9")
    assert answer(meet(run)) == ("run-2", "run-1", False) and not run.last.changed


@pytest.mark.parametrize("options", [None, OnConflictOptions()])
def test_without_options_nothing_changes(options: OnConflictOptions | None):
    run = Run()
    meet(run, on_conflict_options=options)
    assert not run.last.changed and answer(run.last) == ("run-1", "run-1", False)


def test_options_are_for_a_conflict():
    run = Run(
        request_id="x",
        on_conflict_options=OnConflictOptions(attach_request_id=True),
        workflow_id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
    )
    assert UPDATED not in run.kinds and run.last.reply.started
    meet(run, workflow_id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING)
    assert run.s.run_id == "run-unused" and UPDATED not in run.kinds


def test_nothing_to_attach_is_refused():
    run = Run()
    with pytest.raises(InvalidArgument, match="needs a request_id") as refused:
        meet(run, request_id="")
    assert refused.value.details["field"] == "on_conflict_options"


def test_beside_a_task_it_is_numbered_behind_it_and_makes_no_other():
    run = Run()
    token = run.begin()
    meet(run)
    assert run.last.events == () and len(run.s.buffered) == 1 and run.last.changed
    assert run.complete(MARKER, token=token).outcome is CompletionOutcome.ACCEPTED
    assert run.tail(3) == ["WorkflowTaskCompleted", "MarkerRecorded", UPDATED]
    assert run.s.workflow_task is None and run.s.buffered == ()


def test_a_task_that_begins_later_shows_it():
    run = Run()
    meet(run)
    run.accept()
    assert run.tail(3) == [UPDATED, "WorkflowTaskStarted", "WorkflowTaskCompleted"]
    assert run.s.workflow_task is None


def test_beside_a_signal_both_are_numbered_in_order_and_a_task_follows():
    run = Run()
    token = run.begin()
    meet(run)
    run.signal()
    run.complete(token=token)
    assert run.tail(3) == [UPDATED, "WorkflowExecutionSignaled", "WorkflowTaskScheduled"]


@pytest.mark.parametrize("close", CLOSES, ids=lambda close: type(close).__name__)
def test_no_close_is_refused_for_it(close: c.Command):
    run = Run()
    token = run.begin()
    meet(run)
    assert run.complete(MARKER, close, token=token).outcome is CompletionOutcome.ACCEPTED
    kinds = [event.event_type for event in run.ended["run-1"]] if run.ended else run.kinds
    assert kinds[-4:-1] == ["WorkflowTaskCompleted", "MarkerRecorded", UPDATED]
    assert answer(meet(run)) == ("run-1", "run-1", False) and not run.last.changed


def test_a_close_is_refused_for_what_came_in_beside_it():
    run = Run()
    token = run.begin()
    meet(run)
    run.signal()
    assert run.complete(CLOSES[0], token=token).outcome is CompletionOutcome.UNSEEN_EVENTS
    assert run.accept(CLOSES[0]).outcome is CompletionOutcome.ACCEPTED
    assert run.kinds.count(UPDATED) == 1


def test_a_failed_task_shows_it_with_the_next_attempt():
    run = Run()
    token = run.begin()
    meet(run)
    run.fail_task(token)
    assert len(run.s.buffered) == 1
    run.accept()
    assert run.kinds.count(UPDATED) == 1 and run.s.workflow_task is None


def test_it_does_not_end_a_start_delay():
    run = Run(workflow_start_delay=seconds(60))
    meet(run)
    assert run.kinds == ["WorkflowExecutionStarted", UPDATED] and run.s.first_task_at is not None
    run.wait(60).fire()
    assert run.tail(1) == ["WorkflowTaskScheduled"]


def test_the_buffer_keeps_its_limits():
    run = Run()
    run.begin()
    for number in range(limits.MAX_BUFFERED_EVENTS + 1):
        meet(run, f"r{number}")
    assert run.s.buffered == () and "WorkflowTaskFailed" in run.kinds
    assert run.tail(2) == [UPDATED, "WorkflowTaskScheduled"]


def test_a_server_side_end_has_it_before_the_close():
    run = Run()
    meet(run)
    run.terminate()
    assert run.tail(2) == [UPDATED, "WorkflowExecutionTerminated"]


def test_the_ring_says_that_it_was_attached():
    run = Run(request_id="first")
    meet(run)
    made, met = (request_ids.started(run.s, request_id) for request_id in ("first", "met"))
    assert made is not None and met is not None
    assert (made.started, met.started, met.run_id) == (True, False, "run-1")
    assert len(request_ids.ring(run.s, request_ids.START)) == 2


def test_at_the_limit_of_the_history_the_run_ends_and_the_caller_hears_it(monkeypatch: pytest.MonkeyPatch):
    run = Run()
    run.accept()
    monkeypatch.setattr(limits, "MAX_HISTORY_EVENTS", len(run.events))
    meet(run)
    assert run.tail(1) == ["WorkflowExecutionTerminated"]
    assert isinstance(run.last.refusal, WorkflowExecutionClosed)
