"""Deleting a run: what one request, or its repeat, does to the state."""

import pytest
from stepwell.api.commands import CompleteWorkflowExecution
from stepwell.api.enums import WorkflowExecutionStatus, WorkflowIDReusePolicy
from stepwell.api.errors import NotFound
from stepwell.api.payloads import Payload
from stepwell.api.requests import StartWorkflowRequest

from stepwell_server.history.answers import Discharge, Discharged
from stepwell_server.history.deadlines import FIRST_REDISPATCH
from stepwell_server.history.requests import Delete, FireDeadline, RecordDeleted, Signal, Start, Watch
from stepwell_server.history.state import OwedDeletion, OwedNotice, ParentLink
from stepwell_server.history.step import step
from stepwell_server.history.tasks import DeleteRun
from tests.support.history_run import Run

UNIQUE = StartWorkflowRequest(
    workflow_id="order-1",
    workflow_type="order",
    task_queue="orders",
    workflow_id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
)


def closed() -> Run:
    run = Run(memo={"customer": Payload(data=b"a secret")})
    run.accept(CompleteWorkflowExecution())
    return run


def deletions(run: Run) -> list[str]:
    return [task.run_id for task in run.last.tasks if isinstance(task, DeleteRun)]


def test_an_open_run_is_terminated_in_the_same_commit():
    run = Run()
    run.step(Delete(run_id="", identity="ops"))
    assert run.s.status is WorkflowExecutionStatus.TERMINATED
    close = run.last.events[-1].attributes
    assert (close.reason, close.identity) == ("the run is deleted", "ops")
    assert deletions(run) == [run.s.run_id] and run.last.deadline is not None


def test_of_a_closed_run_it_leaves_no_event_and_a_repeat_nothing():
    run = closed()
    run.step(Delete(run_id=""))
    assert run.last.changed and not run.last.events and deletions(run) == ["run-1"]
    assert not run.step(Delete(run_id="run-1")).changed


def test_an_earlier_run_has_to_be_there():
    run = Run()
    with pytest.raises(NotFound, match="no run 'run-0'"):
        run.step(Delete(run_id="run-0"))
    run.step(Delete(run_id="run-0", found=True))
    assert run.s.status is WorkflowExecutionStatus.RUNNING and deletions(run) == ["run-0"]


def test_it_counts_as_deleted_at_once_and_its_id_as_free():
    run = closed()
    run.step(Delete(run_id=""))
    with pytest.raises(NotFound):
        run.step(Signal(run_id="", signal_name="ship"))
    opened = step(run.s, Start(run_id="run-2", start=UNIQUE), run.now)
    assert opened.state.run_id == "run-2" and not opened.state.deleted
    assert opened.state.owed == run.s.owed  # carried on


def test_the_last_state_holds_nothing_that_a_user_has_put_in():
    run = closed()
    run.step(Delete(run_id=""))
    last = step(run.s, RecordDeleted(run_id="run-1"), run.now)
    state = last.state
    assert state.deleted and not state.owed and last.deadline is None and last.owes is False
    assert (state.memo, state.search_attributes, state.completion, state.parent) == ({}, {}, None, None)
    assert not step(state, RecordDeleted(run_id="run-1"), run.now).changed
    with pytest.raises(NotFound):
        step(state, Delete(run_id=""), run.now)
    assert step(state, Start(run_id="run-2", start=UNIQUE), run.now).state.run_id == "run-2"


def test_the_deadline_asks_again():
    run = closed()
    run.step(Delete(run_id=""))
    (entry,) = run.s.owed
    assert isinstance(entry, OwedDeletion)
    run.now = entry.next_dispatch
    run.step(FireDeadline(fire_at=run.last.deadline))
    assert deletions(run) == ["run-1"] and run.s.owed[0].dispatches == 1


def test_it_is_asked_for_again_when_what_the_run_owes_is_delivered():
    parent = ParentLink(namespace="default", workflow_id="parent", run_id="p", initiated_event_id=5)
    run = Run()
    run.step(Watch(waiter=parent))
    run.step(Delete(run_id=""))
    notice, _ = run.s.owed
    assert isinstance(notice, OwedNotice)
    done = Discharged(run_id="run-1", initiated_event_id=notice.initiated_event_id, waiter=parent)
    run.step(Discharge(deliveries=(done,)))
    assert [type(entry) for entry in run.s.owed] == [OwedDeletion] and deletions(run) == ["run-1"]


def test_what_the_close_struck_off_is_not_counted_on():
    """Armed a moment before the deletion is to be asked for again, but not any more."""
    run = closed()
    run.now = run.s.armed - FIRST_REDISPATCH / 2
    run.step(Delete(run_id=""))
    assert run.last.arm == run.last.deadline == run.now + FIRST_REDISPATCH
