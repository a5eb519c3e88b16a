"""What a reset takes over from the run that it ends: questions to others, who waits for it, updates (CH-17, LC-16)."""

import pytest
from stepwell.api.commands import (
    AcceptUpdate,
    CompleteWorkflowExecution,
    RequestCancelExternalWorkflowExecution,
    SignalExternalWorkflowExecution,
    StartChildWorkflowExecution,
)
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import ResetReapplyExcludeType
from stepwell.api.events import WorkflowExecutionUpdateAdmitted
from stepwell.api.requests import StartWorkflowRequest
from stepwell.api.updates import UpdateInput, UpdateMeta, UpdateRequest

from stepwell_server.history.answers import ChildAnswer, ExternalDelivered
from stepwell_server.history.machines import workflow_task
from stepwell_server.history.requests import AdmitUpdate, Start
from stepwell_server.history.state import OwedCancel, OwedChild, OwedNotice, OwedSignal, ParentLink
from stepwell_server.history.tasks import CancelExternal, SignalExternal, StartChild
from tests.support.history_run import Run
from tests.support.resets import reset

OTHER = WorkflowExecution(workflow_id="other")
CHILD = StartChildWorkflowExecution(workflow_id="kid", workflow_type="pack", task_queue="orders")
SHIP = SignalExternalWorkflowExecution(execution=OTHER, signal_name="ship")
STOP = RequestCancelExternalWorkflowExecution(workflow_id="other")
PARENT = ParentLink(namespace="default", workflow_id="top", run_id="top-1", initiated_event_id=5)


def asking() -> Run:
    """Events 5 to 7 ask a child, a signal and a request to cancel of others; the task that 10 started has seen that."""
    run = Run()
    run.accept(CHILD, SHIP, STOP)
    run.signal()
    run.accept()
    assert run.kinds[9] == "WorkflowTaskStarted"
    return run


def admit(run: Run, update_id: str) -> None:
    request = UpdateRequest(meta=UpdateMeta(update_id=update_id), input=UpdateInput(name="change"))
    run.step(AdmitUpdate(run_id="", request=request))


def test_what_the_prefix_has_asked_is_asked_by_the_new_run_in_the_name_of_the_first() -> None:
    run = asking()
    transition = reset(run, 10)
    assert run.s.owed == ()
    tasks = [task for task in transition.tasks if isinstance(task, StartChild | SignalExternal | CancelExternal)]
    assert [(task.run_id, task.initiated_event_id) for task in tasks] == [("run-2", 5), ("run-2", 6), ("run-2", 7)]
    assert (run.s.external_signals[6].asked_by, run.s.external_cancels[7].asked_by) == ("run-1", "run-1")
    reset(run, 10, "run-3")
    assert (run.s.external_signals[6].asked_by, run.s.owed) == ("run-1", ())
    run.terminate()
    owed = {type(entry): entry for entry in run.s.owed}
    assert set(owed) == {OwedSignal, OwedCancel, OwedChild}
    assert [entry.run_id for entry in owed.values()] == ["run-3"] * 3
    signal = owed[OwedSignal]
    assert isinstance(signal, OwedSignal) and signal.asked_by == "run-1"


def test_what_was_asked_behind_the_point_stays_owed_by_the_old_run() -> None:
    run = asking()
    reset(run, 3)
    assert [(type(entry), entry.run_id, entry.initiated_event_id) for entry in run.s.owed] == [
        (OwedSignal, "run-1", 6),
        (OwedCancel, "run-1", 7),
        (OwedChild, "run-1", 5),
    ]
    assert not run.s.children and not run.s.external_signals and not run.s.external_cancels


def test_a_debt_of_a_base_that_is_closed_already_is_taken_over_too() -> None:
    run = asking()
    run.terminate()
    assert len(run.s.owed) == 3
    reset(run, 10)
    assert run.s.owed == ()


def test_an_answer_behind_the_point_counts_again_and_nothing_is_asked() -> None:
    run = asking()
    pending = run.s.children[5]
    asked = run.events[4].attributes
    answer = ChildAnswer(run_id="run-1", initiated_event_id=5, asked=asked, child_run_id="kid-1")  # type: ignore[arg-type]
    run.step(ExternalDelivered(deliveries=(answer,)))
    transition = reset(run, 10)
    assert "ChildWorkflowExecutionStarted" in run.kinds
    assert (pending.run_id, run.s.children[5].run_id) == ("", "kid-1")
    # a child that is there is looked at once: it may have ended while its parent was closed
    assert [task.initiated_event_id for task in transition.tasks if isinstance(task, StartChild)] == [5]


@pytest.mark.parametrize("ends", [False, True])
def test_who_waits_for_the_chain_is_told_of_its_end_and_of_no_reset(ends: bool) -> None:
    run = Run(begun=False)
    asked = StartWorkflowRequest(workflow_id="order-1", workflow_type="fulfil", task_queue="orders")
    run.step(Start(run_id="run-1", start=asked, parent=PARENT))
    run.accept()
    run.signal()
    run.accept()
    reset(run, 7)
    assert run.s.owed == () and run.s.parent == PARENT
    if ends:
        run.accept(CompleteWorkflowExecution())
        (notice,) = run.s.owed
        assert isinstance(notice, OwedNotice) and (notice.waiter, notice.first_run_id) == (PARENT, "run-1")


def test_updates_that_were_accepted_are_admitted_again_and_others_wait_on() -> None:
    run = Run()
    run.accept()
    admit(run, "u1")
    run.accept(AcceptUpdate(update_id="u1"))
    admit(run, "u2")
    reset(run, 3)
    admitted = [e.attributes for e in run.events if isinstance(e.attributes, WorkflowExecutionUpdateAdmitted)]
    assert [event.request.meta.update_id for event in admitted] == ["u1"]
    token = run.begin()
    shown = workflow_task.delivered(run.s, token, ())
    assert [update.request.meta.update_id for update in shown] == ["u1", "u2"]
    assert run.events[shown[0].sequencing_event_id - 1].attributes == admitted[0]
    run.accept(AcceptUpdate(update_id="u1"), AcceptUpdate(update_id="u2"), token=token)
    accepted = [e.attributes for e in run.events if e.event_type == "WorkflowExecutionUpdateAccepted"]
    assert [event.accepted_request is None for event in accepted] == [True, False]  # type: ignore[union-attr]


def test_updates_that_are_excluded_are_left_behind() -> None:
    run = Run()
    run.accept()
    admit(run, "u1")
    run.accept(AcceptUpdate(update_id="u1"))
    admit(run, "u2")
    reset(run, 3, excluded=[ResetReapplyExcludeType.UPDATE])
    assert run.s.updates == {} and "WorkflowExecutionUpdateAdmitted" not in run.kinds
