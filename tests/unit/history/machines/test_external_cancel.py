"""Requests to cancel other workflows: pending, answered, sent again, owed behind a close, and received."""

import pytest
from stepwell.api.commands import (
    CompleteWorkflowExecution,
    RequestCancelExternalWorkflowExecution,
    StartChildWorkflowExecution,
)
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import (
    CancelExternalWorkflowExecutionFailedCause,
    ParentClosePolicy,
    WorkflowTaskFailedCause,
)

from stepwell_server.history.answers import Delivery, ExternalDelivered
from stepwell_server.history.requests import RequestCancel
from stepwell_server.history.run_limits import RunLimits
from stepwell_server.history.state import OwedCancel, OwedChild
from stepwell_server.history.tasks import CancelExternal
from tests.support.history_run import Run

DONE = CompleteWorkflowExecution()


def kid(workflow_id="kid", **fields):
    return StartChildWorkflowExecution(workflow_id=workflow_id, workflow_type="pack", task_queue="orders", **fields)


def asked(*commands):
    run = Run()
    run.accept(*commands)
    return run


def tell(run, *answers):
    return run.step(ExternalDelivered(deliveries=answers))


def tasks(run, kind):
    return [task.workflow_id for task in run.last.tasks if isinstance(task, kind)]


def cancel(target="other", **fields):
    return RequestCancelExternalWorkflowExecution(workflow_id=target, **fields)


def delivered(event_id=5, cause=None):
    return Delivery(
        run_id="run-1",
        initiated_event_id=event_id,
        workflow_task_completed_event_id=4,
        execution=WorkflowExecution(workflow_id="other"),
        cause=cause,
    )


def test_a_request_to_cancel_is_asked_until_it_is_answered():
    run = asked(cancel(reason="too late"))
    assert run.tail(1) == ["RequestCancelExternalWorkflowExecutionInitiated"]
    assert run.events[-1].attributes.reason == "too late" and tasks(run, CancelExternal) == ["other"]
    run.wait(30).fire()
    assert tasks(run, CancelExternal) == ["other"]
    tell(run, delivered())
    assert run.tail(2) == ["ExternalWorkflowExecutionCancelRequested", "WorkflowTaskScheduled"]
    assert not tell(run, delivered()).changed and not run.s.external_cancels


def test_a_request_to_cancel_that_reaches_nobody():
    run = asked(cancel())
    cause = CancelExternalWorkflowExecutionFailedCause.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND
    tell(run, delivered(cause=cause))
    assert run.tail(2) == ["RequestCancelExternalWorkflowExecutionFailed", "WorkflowTaskScheduled"]
    assert run.events[-2].attributes.cause == cause


def test_a_close_owes_its_requests_to_cancel_in_order():
    run = asked(kid(), cancel(), kid("b", parent_close_policy=ParentClosePolicy.ABANDON), cancel("third"), DONE)
    assert [(type(owed), owed.workflow_id) for owed in run.s.owed] == [
        (OwedCancel, "other"),
        (OwedChild, "b"),
        (OwedCancel, "third"),
        (OwedChild, "kid"),
    ]
    tell(run, delivered(6))
    assert [owed.initiated_event_id for owed in run.s.owed] == [7, 8, 5]


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (cancel(""), "workflow_id has 0 bytes"),
        (cancel(run_id="x" * 1_001), "run_id has 1001 bytes"),
        (cancel(reason="x" * 1_001), "reason has 1001 bytes"),
        (cancel(namespace="a#b"), "namespace"),
    ],
)
def test_a_bad_request_to_cancel_fails_the_task_by_name(command, says):
    run = Run()
    reply = run.complete(command)
    assert reply.outcome == "FAILED" and says in reply.message
    assert (
        run.events[-1].attributes.cause
        is WorkflowTaskFailedCause.BAD_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_ATTRIBUTES
    )


def test_pending_requests_to_cancel_have_a_limit():
    run = Run()
    reply = run.complete(cancel("1"), cancel("2"), limits=RunLimits(cancels=1))
    assert reply.outcome == "FAILED" and "1 requests to cancel" in reply.message
    assert run.events[-1].attributes.cause is WorkflowTaskFailedCause.PENDING_REQUEST_CANCEL_LIMIT_EXCEEDED


def test_a_workflow_that_asks_to_cancel_is_named():
    run = Run()
    sender = WorkflowExecution(workflow_id="boss", run_id="boss-run")
    run.step(RequestCancel(run_id="", reason="late", sender=sender, sender_event_id=7, request_id="one"))
    run.accept()
    event = next(e.attributes for e in run.events if e.event_type == "WorkflowExecutionCancelRequested")
    assert (event.external_workflow_execution, event.external_initiated_event_id) == (sender, 7)
    assert not run.step(RequestCancel(run_id="gone", repeat=True)).changed
