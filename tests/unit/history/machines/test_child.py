"""Children, from both sides: asked for, confirmed, ended, and what the end of their parent's run leaves to do."""

import pytest
from stepwell.api import limits
from stepwell.api.commands import (
    CancelWorkflowExecution,
    CompleteWorkflowExecution,
    FailWorkflowExecution,
    StartChildWorkflowExecution,
)
from stepwell.api.common import RetryPolicy, WorkflowExecution
from stepwell.api.enums import (
    ParentClosePolicy,
    StartChildWorkflowExecutionFailedCause,
    WorkflowIDConflictPolicy,
    WorkflowTaskFailedCause,
)
from stepwell.api.events import (
    WorkflowExecutionCanceled,
    WorkflowExecutionCompleted,
    WorkflowExecutionContinuedAsNew,
    WorkflowExecutionFailed,
    WorkflowExecutionTerminated,
    WorkflowExecutionTimedOut,
)
from stepwell.api.payloads import Payload
from stepwell.api.requests import StartWorkflowRequest

from stepwell_server.history.answers import ChildAnswer, ChildClosed, Discharged, ExternalDelivered
from stepwell_server.history.builder import owes
from stepwell_server.history.machines import child
from stepwell_server.history.requests import Start
from stepwell_server.history.run_limits import RunLimits
from stepwell_server.history.state import OwedChild, OwedNotice, ParentLink
from stepwell_server.history.tasks import ApplyParentClose, NotifyParent, StartChild
from tests.support.history_run import Run, declined, payload, seconds

DONE = CompleteWorkflowExecution()
TAKEN = StartChildWorkflowExecutionFailedCause.WORKFLOW_ALREADY_EXISTS
PARENT = ParentLink(namespace="default", workflow_id="order-1", run_id="run-1", initiated_event_id=5)

ROOT = WorkflowExecution(workflow_id="top", run_id="top-run")


def kid(workflow_id="kid", **fields):
    return StartChildWorkflowExecution(workflow_id=workflow_id, workflow_type="pack", task_queue="orders", **fields)


def asked(*commands):
    """A run whose child, event 5, is not confirmed."""
    run = Run()
    run.accept(*(commands or (kid(),)))
    return run


def answer(run, event_id=5, cause=None, child_run_id="kid-run"):
    initiated = next(event.attributes for event in run.events if event.event_id == event_id)
    return ChildAnswer(
        run_id="run-1",
        initiated_event_id=event_id,
        asked=initiated,
        cause=cause,
        child_run_id="" if cause else child_run_id,
    )


def ended(close=None, first_run_id="kid-run", waiter=PARENT):
    close = close or WorkflowExecutionCompleted(result=payload("7"), workflow_task_completed_event_id=4)
    return ChildClosed(waiter=waiter, workflow_id="kid", first_run_id=first_run_id, workflow_type="pack", close=close)


def tell(run, *answers):
    return run.step(ExternalDelivered(deliveries=answers))


def started():
    run = asked()
    tell(run, answer(run))
    run.accept()
    return run


def tasks(run, kind):
    return [task.workflow_id for task in run.last.tasks if isinstance(task, kind)]


# --- the start ----------------------------------------------------------------------------------------------------


def test_a_child_is_initiated_and_asked_for():
    run = asked()
    assert run.tail(1) == ["StartChildWorkflowExecutionInitiated"]
    assert tasks(run, StartChild) == ["kid"] and owes(run.s)
    assert run.last.deadline == run.now + seconds(30)


def test_its_start_is_confirmed_once():
    run = asked()
    tell(run, answer(run))
    assert run.tail(2) == ["ChildWorkflowExecutionStarted", "WorkflowTaskScheduled"]
    assert (run.s.children[5].run_id, run.s.children[5].started_event_id) == ("kid-run", 6)
    assert not tell(run, answer(run)).changed


def test_its_start_is_refused_once():
    run = asked()
    tell(run, answer(run, cause=TAKEN))
    assert run.tail(2) == ["StartChildWorkflowExecutionFailed", "WorkflowTaskScheduled"]
    assert run.events[-2].attributes.cause is TAKEN and not run.s.children
    assert not tell(run, answer(run, cause=TAKEN)).changed


def test_it_is_asked_for_again_until_it_is_confirmed_and_then_looked_after():
    run = asked()
    run.wait(30).fire()
    assert tasks(run, StartChild) == ["kid"] and run.s.children[5].dispatches == 2
    tell(run, answer(run))
    run.accept()
    assert run.s.children[5].next_dispatch == run.now + seconds(86_400)
    run.wait(60).fire()
    assert tasks(run, StartChild) == []
    run.wait(86_400).fire()
    assert tasks(run, StartChild) == ["kid"]


def test_without_a_task_queue_it_is_its_parents():
    """As the Java SDK of Temporal asks for children."""
    command = StartChildWorkflowExecution(workflow_id="kid", workflow_type="pack", task_queue="")
    run = asked(command)
    assert run.events[-1].attributes.task_queue == run.s.task_queue != ""
    watching = Run()
    watching.accept(StartChildWorkflowExecution(workflow_id="kid", workflow_type="", task_queue="", watch_only=True))
    assert watching.events[-1].attributes.task_queue == ""


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (kid(""), "workflow_id of the child has 0 bytes"),
        (kid("x" * 1_001), "workflow_id of the child has 1001 bytes"),
        (kid(namespace="a#b"), "namespace"),
        (kid(workflow_id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING), "FAIL or USE_EXISTING"),
        (kid(workflow_run_timeout=seconds(0)), "workflow_run_timeout of child 'kid' is 0 s"),
        (kid(workflow_execution_timeout=seconds(-1)), "must be above zero"),
        (kid(retry_policy=RetryPolicy(maximum_attempts=-1)), "maximum_attempts is -1"),
        (kid(cron_schedule="every day"), "cron_schedule 'every day' of child 'kid'"),
        (kid(retry_policy=RetryPolicy(non_retryable_error_types=("E",) * 101)), "retry_policy of child 'kid': non_"),
        (kid(search_attributes={"": Payload()}), "search_attributes of child 'kid': the name of search attribute ''"),
    ],
)
def test_bad_attributes_fail_the_task_by_name(command, says):
    run = Run()
    reply = run.complete(command)
    assert reply.outcome == "FAILED" and says in reply.message
    assert run.events[-1].attributes.cause is WorkflowTaskFailedCause.BAD_START_CHILD_EXECUTION_ATTRIBUTES


def test_what_a_child_is_started_with_has_a_limit():
    half = (Payload(metadata={}, data=b"x" * (limits.MAX_PAYLOAD_BYTES // 2 + 1)),)
    run = Run()
    reply = run.complete(kid(input=half, memo={"note": half[0]}))
    assert reply.outcome == "FAILED" and "what child 'kid' is started with" in reply.message
    assert run.events[-1].attributes.cause is WorkflowTaskFailedCause.PAYLOADS_TOO_LARGE


def test_pending_children_have_a_limit():
    run = Run()
    reply = run.complete(kid("1"), kid("2"), kid("3"), limits=RunLimits(children=2))
    assert reply.outcome == "FAILED" and "2 pending children, the most" in reply.message
    assert run.events[-1].attributes.cause is WorkflowTaskFailedCause.PENDING_CHILD_WORKFLOWS_LIMIT_EXCEEDED


# --- the end ------------------------------------------------------------------------------------------------------

ENDS = [
    (WorkflowExecutionCompleted(workflow_task_completed_event_id=4), "ChildWorkflowExecutionCompleted"),
    (
        WorkflowExecutionFailed(failure=declined(), workflow_task_completed_event_id=4),
        "ChildWorkflowExecutionFailed",
    ),
    (WorkflowExecutionCanceled(workflow_task_completed_event_id=4), "ChildWorkflowExecutionCanceled"),
    (WorkflowExecutionTimedOut(), "ChildWorkflowExecutionTimedOut"),
    (WorkflowExecutionTerminated(), "ChildWorkflowExecutionTerminated"),
]


@pytest.mark.parametrize(("close", "event"), ENDS)
def test_its_end_wakes_the_parent_once(close, event):
    run = started()
    tell(run, ended(close))
    assert run.tail(2) == [event, "WorkflowTaskScheduled"] and not run.s.children
    about = run.events[-2].attributes
    assert (about.initiated_event_id, about.started_event_id) == (5, 6)
    assert about.workflow_execution == WorkflowExecution(workflow_id="kid", run_id="kid-run")
    assert not tell(run, ended(close)).changed


@pytest.mark.parametrize("outstanding", [False, True])
@pytest.mark.parametrize("confirmed", [False, True])
def test_an_end_before_its_start_is_seen_stands_behind_it(outstanding, confirmed):
    """Also where both wait for an outstanding task: the end gets the number of the Started event."""
    run = asked()
    if outstanding:
        run.signal()
    if confirmed and outstanding:
        tell(run, answer(run))
    tell(run, ended())
    assert not tell(run, answer(run)).changed and not tell(run, ended()).changed
    run.accept()
    kinds = run.kinds
    at = kinds.index("ChildWorkflowExecutionStarted")
    end = kinds.index("ChildWorkflowExecutionCompleted")
    assert end > at and run.events[end].attributes.started_event_id == at + 1
    assert kinds.count("ChildWorkflowExecutionStarted") == kinds.count("ChildWorkflowExecutionCompleted") == 1


def test_a_failed_task_numbers_what_is_known_of_the_child():
    run = asked()
    run.signal()
    tell(run, answer(run))
    tell(run, ended())
    run.fail_task()
    run.accept()
    end = run.kinds.index("ChildWorkflowExecutionCompleted")
    assert run.kinds[run.events[end].attributes.started_event_id - 1] == "ChildWorkflowExecutionStarted"


@pytest.mark.parametrize(
    "strange",
    [
        ended(first_run_id="another chain"),
        ended(waiter=ParentLink(namespace="default", workflow_id="order-1", run_id="run-0", initiated_event_id=5)),
        ended(waiter=ParentLink(namespace="default", workflow_id="order-1", run_id="run-1", initiated_event_id=4)),
    ],
)
def test_the_end_of_another_is_not_taken(strange):
    assert not tell(started(), strange).changed


def test_an_end_reaches_the_run_that_its_parent_was_reset_to():
    """CH-17: initiated event and lineage are the same."""
    run = started()
    run.s.original_run_id = "run-0"
    waiter = ParentLink(namespace="default", workflow_id="order-1", run_id="run-0", initiated_event_id=5)
    assert child.is_of(run.s, waiter.run_id) and not child.is_of(run.s, "run-2")


# --- the parent's end ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", list(ParentClosePolicy))
@pytest.mark.parametrize("confirmed", [False, True])
def test_a_close_owes_its_policy_to_its_children(policy, confirmed):
    run = asked(kid(parent_close_policy=policy))
    if confirmed:
        tell(run, answer(run))
    run.terminate()
    due = policy is not ParentClosePolicy.ABANDON or not confirmed
    assert [type(owed) for owed in run.s.owed] == [OwedChild] * due
    assert tasks(run, ApplyParentClose) == ["kid"] * due and owes(run.s) is due
    if due:
        run.wait(30).fire()
        assert tasks(run, ApplyParentClose) == ["kid"]


@pytest.mark.parametrize("policy", list(ParentClosePolicy))
def test_a_start_behind_the_close_leaves_the_policy_to_be_carried_out(policy):
    run = asked(kid(parent_close_policy=policy), DONE)
    tell(run, answer(run))
    assert bool(run.s.owed) is (policy is not ParentClosePolicy.ABANDON)
    tell(run, answer(run, cause=TAKEN))
    assert not run.s.owed, "there is no child"


def test_a_policy_is_done_once():
    run = asked(kid(), kid("other"), DONE)
    tell(run, Discharged(run_id="run-1", initiated_event_id=5))
    assert [owed.initiated_event_id for owed in run.s.owed] == [6]
    assert not tell(run, Discharged(run_id="run-1", initiated_event_id=5)).changed
    assert run.s.close_time is not None and not tell(run, ended()).changed


@pytest.mark.parametrize("policy", list(ParentClosePolicy))
@pytest.mark.parametrize("confirmed", [False, True])
def test_one_that_is_only_watched_learns_that_nobody_waits_any_more(policy, confirmed):
    attach = kid(workflow_id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING, parent_close_policy=policy)
    run = asked(attach)
    if confirmed:
        tell(run, answer(run))
    run.terminate()
    (owed,) = run.s.owed
    assert owed.watched
    tell(run, answer(run))
    assert run.s.owed, "a start behind the close leaves that to be done"
    tell(run, Discharged(run_id="run-1", initiated_event_id=5))
    assert not run.s.owed


# --- the child's own end ------------------------------------------------------------------------------------------


def child_run():
    run = Run(begun=False)
    start = StartWorkflowRequest(workflow_id="kid", workflow_type="pack", task_queue="orders")
    run.step(Start(run_id="kid-run", start=start, parent=PARENT, root=ROOT))
    assert run.s.parent == PARENT and run.s.root == ROOT
    return run


@pytest.mark.parametrize("close", [DONE, FailWorkflowExecution(failure=declined()), CancelWorkflowExecution()])
def test_the_end_of_a_child_is_owed_to_its_parent(close):
    run = child_run()
    run.accept(close)
    (owed,) = run.s.owed
    assert isinstance(owed, OwedNotice) and owed.waiter == PARENT and owed.first_run_id == "kid-run"
    assert run.events[-1].event_id == owed.initiated_event_id and owed.initiated_seq == run.s.seq
    assert len(tasks(run, NotifyParent)) == 1
    run.wait(30).fire()
    assert len(tasks(run, NotifyParent)) == 1
    tell(run, Discharged(run_id="kid-run", initiated_event_id=owed.initiated_event_id, waiter=PARENT))
    assert not run.s.owed and run.last.owes is False


def test_continue_as_new_ends_no_child():
    with pytest.raises(ValueError, match="does not end a chain"):
        child._end(
            started().s.children[5],
            ended(
                WorkflowExecutionContinuedAsNew(
                    new_execution_run_id="run-2",
                    workflow_type="pack",
                    task_queue="orders",
                    workflow_task_completed_event_id=4,
                )
            ),
        )
