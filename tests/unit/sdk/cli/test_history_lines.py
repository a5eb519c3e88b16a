"""What ``stepwell workflow show`` says of an event."""

from datetime import UTC, datetime, timedelta

from stepwell.api.events import EventAttributes, HistoryEvent, StartChildWorkflowExecutionInitiated
from stepwell.api.events import WorkflowExecutionStarted as Started
from stepwell.cli.inspection import _line

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def line(attributes: EventAttributes, limit: int = 80) -> str:
    return _line(HistoryEvent(event_id=5, event_time=NOW, attributes=attributes), limit).plain


def test_a_child_is_named_and_the_run_itself_only_in_full() -> None:
    child = StartChildWorkflowExecutionInitiated(
        workflow_id="kid", workflow_type="pack", task_queue="orders", workflow_task_completed_event_id=4
    )
    assert "workflow_id=kid" in line(child) and "workflow_task_completed_event_id" not in line(child)
    own = Started(
        workflow_type="order",
        task_queue="orders",
        workflow_task_timeout=timedelta(seconds=10),
        original_execution_run_id="run",
        first_execution_run_id="run",
        workflow_id="order-1",
    )
    assert "workflow_id" not in line(own) and "workflow_id=order-1" in line(own, 0)
