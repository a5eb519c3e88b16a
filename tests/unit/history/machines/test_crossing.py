"""Signals to other workflows, from the sender's side: pending, answered, sent again, owed behind a close."""

import pytest
from stepwell.api import limits
from stepwell.api.commands import CompleteWorkflowExecution, SignalExternalWorkflowExecution
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import (
    SignalExternalWorkflowExecutionFailedCause,
    WorkflowIDConflictPolicy,
    WorkflowTaskFailedCause,
)

from stepwell_server.history.answers import Delivery, Discharge, ExternalDelivered
from stepwell_server.history.builder import owes
from stepwell_server.history.deadlines import deadline, ended_in_buffer
from stepwell_server.history.requests import FireDeadline
from stepwell_server.history.run_limits import RunLimits
from stepwell_server.history.tasks import RecordVisibility, SignalExternal
from tests.support.history_run import T0, Run, done, leased, payload, seconds

NOT_FOUND = SignalExternalWorkflowExecutionFailedCause.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND
DONE = CompleteWorkflowExecution()


def ship(target="order-2", **fields):
    return SignalExternalWorkflowExecution(
        execution=WorkflowExecution(workflow_id=target), signal_name="ship", input=payload(), **fields
    )


def answer(event_id=5, run_id="run-1", cause=None):
    return Delivery(
        run_id=run_id,
        initiated_event_id=event_id,
        workflow_task_completed_event_id=4,
        execution=WorkflowExecution(workflow_id="order-2"),
        cause=cause,
    )


def delivered(run, *answers, kind=ExternalDelivered):
    return run.step(kind(deliveries=answers or (answer(),)))


def asked():
    """A run whose signal to order-2, event 5, is not answered."""
    run = Run()
    run.accept(ship())
    return run


def closed():
    """The same, closed."""
    run = asked()
    run.terminate()
    return run


def sent(run):
    return [task.initiated_event_id for task in run.last.tasks if isinstance(task, SignalExternal)]


def test_a_signal_is_initiated_and_sent():
    run = asked()
    assert run.tail(2) == ["WorkflowTaskCompleted", "SignalExternalWorkflowExecutionInitiated"]
    assert sent(run) == [5] and owes(run.s) and run.s.external_signals.keys() == {5}
    assert run.last.deadline == T0 + seconds(30) == deadline(run.s, T0)


@pytest.mark.parametrize(
    ("cause", "event"),
    [(None, "ExternalWorkflowExecutionSignaled"), (NOT_FOUND, "SignalExternalWorkflowExecutionFailed")],
)
def test_its_answer_wakes_the_workflow_once(cause, event):
    run = asked()
    delivered(run, answer(cause=cause))
    assert run.tail(2) == [event, "WorkflowTaskScheduled"] and not run.s.external_signals
    assert run.events[-2].attributes.initiated_event_id == 5
    assert not delivered(run, answer(cause=cause)).changed


def test_an_answer_waits_for_an_outstanding_task_and_is_not_sent_again():
    run = asked()
    run.signal()
    delivered(run)
    assert not delivered(run).changed
    assert ended_in_buffer(run.s) == {5} and run.s.external_signals
    run.wait(30).fire()
    assert sent(run) == []
    run.accept()
    assert "ExternalWorkflowExecutionSignaled" in run.kinds and not run.s.external_signals
    assert run.last.owes is False


def test_it_is_sent_again_until_it_is_answered():
    run = asked()
    for wait, dispatches in ((30, 2), (60, 3), (120, 4)):
        run.wait(wait).fire()
        assert sent(run) == [5] and run.s.external_signals[5].dispatches == dispatches
    delivered(run)
    assert run.s.armed is not None
    run.now = run.s.armed
    run.fire()
    assert sent(run) == []


@pytest.mark.parametrize("close", [(), (DONE,)])
def test_what_is_due_before_the_armed_deadline_is_armed(close):
    run = leased(start_to_close_timeout=seconds(100))
    run.wait(31).fire()
    assert run.s.armed == T0 + seconds(100)
    run.wait(4).fused((done(5),), ship(), *close)
    assert run.last.deadline == run.last.arm == run.s.armed == run.now + seconds(30)
    run.wait(30).fire()
    assert len(sent(run)) == 1


def test_a_close_owes_what_it_asked_of_others():
    run = Run()
    run.accept(ship(), ship("order-3"), DONE)
    assert [type(task) for task in run.last.tasks] == [RecordVisibility, SignalExternal, SignalExternal]
    assert [(owed.run_id, owed.initiated_event_id) for owed in run.s.owed] == [("run-1", 5), ("run-1", 6)]
    assert run.s.external_signals == {} and owes(run.s)
    assert run.last.deadline == T0 + seconds(30)


def test_a_terminated_run_owes_only_what_is_not_answered():
    run = Run()
    run.accept(ship(), ship())
    run.signal()
    delivered(run, answer(5))
    run.terminate()
    assert [owed.initiated_event_id for owed in run.s.owed] == [6]


def test_deadlines_of_a_closed_run_go_on_while_it_owes():
    run = closed()
    for wait in (30, 60, 120):
        run.wait(wait).fire()
        assert run.last.changed and sent(run) == [5]
        assert deadline(run.s, run.now) == run.last.deadline == run.s.owed[0].next_dispatch
    delivered(run, kind=Discharge)
    assert run.last.owes is False and run.last.deadline is None and not run.s.owed
    assert not run.step(FireDeadline()).changed


def test_a_discharge_is_one_commit_for_all_that_was_delivered():
    run = Run()
    run.accept(ship(), ship(), ship(), DONE)
    seq = run.s.seq
    delivered(run, answer(5), answer(7), kind=Discharge)
    assert run.s.seq == seq + 1 and run.last.events == ()
    assert [owed.initiated_event_id for owed in run.s.owed] == [6]
    assert run.last.owes is None  # as before
    assert not delivered(run, answer(5), kind=Discharge).changed


def test_the_answer_of_a_run_that_has_closed_meanwhile_discharges_it():
    run = closed()
    delivered(run, answer(cause=NOT_FOUND))
    assert not run.s.owed and run.kinds[-1] == "WorkflowExecutionTerminated"


def test_the_next_run_carries_on_what_is_owed():
    run = closed()
    run.wait(1).start("run-2")
    assert run.s.run_id == "run-2" and [owed.run_id for owed in run.s.owed] == ["run-1"]
    run.wait(29).fire()
    assert sent(run) == [5] and run.last.tasks[-1].run_id == "run-1"
    events = len(run.events)
    delivered(run)
    assert not run.s.owed and len(run.events) == events
    # event 5 of the new run is another matter
    run.accept(ship())
    assert not delivered(run, answer(run.s.next_event_id - 1, run_id="run-1")).changed


def test_a_run_that_times_out_owes_as_well():
    run = Run(workflow_run_timeout=seconds(7))
    run.accept(ship())
    run.wait(7).fire()
    assert run.kinds[-1] == "WorkflowExecutionTimedOut" and run.last.deadline == T0 + seconds(30) == run.s.armed


def test_a_run_that_times_out_while_it_sends_again():
    run = Run(workflow_run_timeout=seconds(40))
    run.accept(ship())
    run.wait(41).fire()
    assert sent(run) == [5] and run.s.owed[0].dispatches == 2


@pytest.mark.parametrize(
    ("command", "cause", "match"),
    [
        (ship(""), "BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES", "execution.workflow_id has 0 bytes"),
        (ship(namespace="a#b"), "BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES", "namespace 'a#b'"),
        (ship(namespace="a\x01"), "BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES", "no control characters"),
        (
            SignalExternalWorkflowExecution(execution=WorkflowExecution(workflow_id="x"), signal_name=""),
            "BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES",
            "signal_name has 0 bytes",
        ),
        (
            SignalExternalWorkflowExecution(
                execution=WorkflowExecution(workflow_id="x"),
                signal_name="s",
                input=payload("x" * (limits.MAX_PAYLOAD_BYTES + 1)),
            ),
            "BAD_SIGNAL_INPUT_SIZE",
            "the signal 's' to workflow 'x' has",
        ),
    ],
)
def test_bad_commands(command, cause, match):
    run = Run()
    reply = run.complete(command)
    assert reply.outcome == "FAILED" and match in reply.message
    assert run.events[-1].attributes.cause is WorkflowTaskFailedCause(cause)


def test_as_many_as_may_be_pending():
    run = Run()
    reply = run.complete(ship(), ship(), ship(), limits=RunLimits(signals=2))
    assert reply.outcome == "FAILED" and "await some of them first" in reply.message
    assert run.events[-1].attributes.cause is WorkflowTaskFailedCause.PENDING_SIGNALS_LIMIT_EXCEEDED


def test_a_signal_to_another_namespace_says_which():
    run = Run()
    run.accept(ship(), ship(namespace="other"))
    assert [event.attributes.namespace for event in run.events[-2:]] == ["", "other"]
    assert [task.namespace for task in run.last.tasks] == ["", "other"]


def test_a_run_that_replaces_another_in_one_commit_carries_on_what_it_owes():
    run = asked()
    run.wait(1).start("run-2", workflow_id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING)
    assert run.last.closed.run_id == "run-1" and run.last.closed.state.owed == ()
    assert [(owed.run_id, owed.next_dispatch) for owed in run.s.owed] == [("run-1", T0 + seconds(30))]
    assert run.last.deadline == run.last.arm == T0 + seconds(30)
    delivered(run)
    assert run.s.owed == () and run.kinds[-1] == "WorkflowTaskScheduled"
