"""Runs that wait for the end of a workflow which is not their child."""

import pytest
from stepwell.api import limits
from stepwell.api.commands import CompleteWorkflowExecution
from stepwell.api.enums import WorkflowIDConflictPolicy
from stepwell.api.errors import NotFound, ResourceExhausted
from stepwell.api.requests import StartWorkflowRequest

from stepwell_server.history.requests import Start, Unwatch, Watch
from stepwell_server.history.state import OwedNotice, ParentLink
from stepwell_server.history.step import step
from stepwell_server.history.tasks import NotifyParent
from tests.support.history_run import T0, Run


def waiter(number=1):
    return ParentLink(namespace="default", workflow_id=f"waits-{number}", run_id="run", initiated_event_id=5)


def watched(*numbers):
    run = Run()
    for number in numbers:
        run.step(Watch(waiter=waiter(number)))
    return run


def test_who_waits_is_kept_once_and_answered_with_the_chain():
    run = watched(1)
    assert run.s.waiters == (waiter(),)
    reply = run.step(Watch(waiter=waiter())).reply
    assert (reply.first_run_id, reply.started) == ("run-1", False) and run.s.waiters == (waiter(),)


def test_all_who_wait_hear_of_the_end():
    run = watched(1, 2)
    run.accept(CompleteWorkflowExecution())
    assert [(type(owed), owed.waiter) for owed in run.s.owed] == [(OwedNotice, waiter(1)), (OwedNotice, waiter(2))]
    assert [task.workflow_id for task in run.last.tasks if isinstance(task, NotifyParent)] == ["waits-1", "waits-2"]


def test_one_that_waits_no_more_is_not_told():
    run = watched(1, 2)
    run.step(Unwatch(waiter=waiter(1)))
    assert run.s.waiters == (waiter(2),)
    assert not run.step(Unwatch(waiter=waiter(1))).changed
    run.terminate()
    assert len(run.s.owed) == 1 and not run.step(Unwatch(waiter=waiter(2))).changed


def test_a_closed_workflow_keeps_nobody_waiting():
    run = Run()
    run.terminate()
    transition = run.step(Watch(waiter=waiter()))
    assert not transition.changed and transition.reply.first_run_id == "run-1"


def test_no_more_wait_than_may(monkeypatch):
    monkeypatch.setattr(limits, "MAX_WAITERS", 1)
    run = watched(1)
    with pytest.raises(ResourceExhausted, match="watched by 1 runs, the most"):
        run.step(Watch(waiter=waiter(2)))


def test_there_is_nothing_to_wait_for():
    with pytest.raises(NotFound):
        step(None, Watch(waiter=waiter()), T0)


def test_a_start_that_uses_what_is_there_waits_for_it():
    run = Run()
    use = StartWorkflowRequest(
        workflow_id="order-1",
        workflow_type="fulfil",
        task_queue="orders",
        workflow_id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
    )
    reply = run.step(Start(run_id="run-2", start=use, parent=waiter())).reply
    assert (reply.run_id, reply.started) == ("run-1", False) and run.s.waiters == (waiter(),)
    assert not run.step(Start(run_id="run-2", start=use)).changed, "a client does not wait"
