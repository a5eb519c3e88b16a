"""What ``stepwell workflow describe`` says of a run's relatives, and of what is on its way to others."""

import io
from datetime import UTC, datetime, timedelta

from rich.console import Console
from stepwell.api.callbacks import CallbackInfo
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import CallbackState, ParentClosePolicy, WorkflowExecutionStatus
from stepwell.api.requests import (
    DescribeWorkflowResponse,
    PendingChildInfo,
    PendingExternalInfo,
    WorkflowExecutionInfo,
)
from stepwell.cli.description import print_description

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def said(described: DescribeWorkflowResponse) -> str:
    text = io.StringIO()
    print_description(described, NOW, Console(file=text, width=160))
    return " ".join(text.getvalue().split())


def info(**more: object) -> WorkflowExecutionInfo:
    return WorkflowExecutionInfo(
        execution=WorkflowExecution(workflow_id="order-1", run_id="run-1"),
        workflow_type="order",
        task_queue="orders",
        status=WorkflowExecutionStatus.RUNNING,
        start_time=NOW,
        **more,  # type: ignore[arg-type]
    )


def test_parent_root_and_what_is_pending() -> None:
    policy = ParentClosePolicy.REQUEST_CANCEL
    kid = PendingChildInfo(
        workflow_id="kid", run_id="kid-run", workflow_type="pack", initiated_event_id=5, parent_close_policy=policy
    )
    starting = PendingChildInfo(
        workflow_id="new", workflow_type="pack", initiated_event_id=6, parent_close_policy=policy, watched=True
    )
    sent = PendingExternalInfo(
        workflow_id="shop", initiated_event_id=7, attempt=3, next_attempt_time=NOW + timedelta(seconds=90)
    )
    text = said(
        DescribeWorkflowResponse(
            info=info(
                parent_execution=WorkflowExecution(workflow_id="boss", run_id="boss-run"),
                root_execution=WorkflowExecution(workflow_id="top", run_id="top-run"),
            ),
            workflow_task_timeout=timedelta(seconds=10),
            pending_children=(kid, starting),
            pending_external_signals=(sent,),
            pending_external_cancels=(sent,),
        )
    )
    assert "boss (run boss-run)" in text and "top (run top-run)" in text
    assert "kid pack kid-run REQUEST_CANCEL" in text
    assert "new pack starting nothing, only watched" in text
    assert "Signals not delivered yet" in text and "Requests to cancel not delivered yet" in text
    assert "shop 3 in 1m 30s" in text


def test_a_parent_that_is_the_root_is_named_once() -> None:
    boss = WorkflowExecution(workflow_id="boss", run_id="boss-run")
    text = said(
        DescribeWorkflowResponse(
            info=info(parent_execution=boss, root_execution=boss), workflow_task_timeout=timedelta(seconds=10)
        )
    )
    assert text.count("boss (run boss-run)") == 1 and "Pending children" not in text


def test_how_far_callbacks_are() -> None:
    told = CallbackInfo(
        url="https://hooks.example.com/done",
        state=CallbackState.BACKING_OFF,
        attempt=3,
        last_attempt_failure="it was answered with HTTP 503",
        next_attempt_schedule_time=NOW + timedelta(minutes=2),
    )
    text = said(DescribeWorkflowResponse(info=info(), workflow_task_timeout=timedelta(seconds=10), callbacks=(told,)))
    assert "Callbacks" in text
    assert "https://hooks.example.com/done BACKING_OFF 3 in 2m it was answered with HTTP 503" in text
