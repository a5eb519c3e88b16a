"""What a report of changed code says of each event that a command makes: its kind and whom it is about (VE-19)."""

from datetime import timedelta

import pytest
from stepwell.api import events as ev
from stepwell.api.common import RetryPolicy, WorkflowExecution
from stepwell.api.failures import Failure
from stepwell.api.updates import UpdateMeta, UpdateOutcome
from stepwell.replay.activation import COMMAND_EVENTS
from stepwell.replay.errors import NondeterminismError
from stepwell.replay.machines.command import match

from tests.support.histories import START

OTHER = WorkflowExecution(workflow_id="other", run_id="run-2")
HOUR = timedelta(hours=1)

REPORTED: list[tuple[ev.EventAttributes, str]] = [
    (
        ev.ActivityTaskScheduled(
            activity_id="7",
            activity_type="Pay",
            task_queue="q",
            workflow_task_completed_event_id=4,
            retry_policy=RetryPolicy(),
        ),
        "ActivityTaskScheduled (activity_type 'Pay', activity_id '7')",
    ),
    (
        ev.ActivityTaskCancelRequested(scheduled_event_id=5, workflow_task_completed_event_id=4),
        "ActivityTaskCancelRequested (scheduled_event_id 5)",
    ),
    (
        ev.TimerStarted(timer_id="3", start_to_fire_timeout=HOUR, workflow_task_completed_event_id=4),
        "TimerStarted (timer_id '3')",
    ),
    (
        ev.TimerCanceled(timer_id="3", started_event_id=5, workflow_task_completed_event_id=4),
        "TimerCanceled (timer_id '3')",
    ),
    (
        ev.MarkerRecorded(marker_name="mine", workflow_task_completed_event_id=4),
        "MarkerRecorded (marker_name 'mine')",
    ),
    (
        ev.StartChildWorkflowExecutionInitiated(
            workflow_id="child-1", workflow_type="Ship", task_queue="q", workflow_task_completed_event_id=4
        ),
        "StartChildWorkflowExecutionInitiated (workflow_type 'Ship', workflow_id 'child-1')",
    ),
    (
        ev.SignalExternalWorkflowExecutionInitiated(
            workflow_execution=OTHER, signal_name="stop", workflow_task_completed_event_id=4
        ),
        "SignalExternalWorkflowExecutionInitiated (signal_name 'stop', workflow_id 'other')",
    ),
    (
        ev.RequestCancelExternalWorkflowExecutionInitiated(
            workflow_execution=OTHER, workflow_task_completed_event_id=4
        ),
        "RequestCancelExternalWorkflowExecutionInitiated (workflow_id 'other')",
    ),
    (
        ev.WorkflowExecutionUpdateAccepted(protocol_instance_id="u-1"),
        "WorkflowExecutionUpdateAccepted (update_id 'u-1')",
    ),
    (
        ev.WorkflowExecutionUpdateCompleted(
            meta=UpdateMeta(update_id="u-1"), accepted_event_id=5, outcome=UpdateOutcome()
        ),
        "WorkflowExecutionUpdateCompleted (update_id 'u-1')",
    ),
    (
        ev.WorkflowExecutionContinuedAsNew(
            new_execution_run_id="run-2", workflow_type="Ship", task_queue="q", workflow_task_completed_event_id=4
        ),
        "WorkflowExecutionContinuedAsNew (workflow_type 'Ship')",
    ),
    (ev.UpsertWorkflowSearchAttributes(workflow_task_completed_event_id=4), "UpsertWorkflowSearchAttributes"),
    (ev.WorkflowPropertiesModified(workflow_task_completed_event_id=4), "WorkflowPropertiesModified"),
    (ev.WorkflowExecutionCompleted(workflow_task_completed_event_id=4), "WorkflowExecutionCompleted"),
    (
        ev.WorkflowExecutionFailed(failure=Failure(message="m"), workflow_task_completed_event_id=4),
        "WorkflowExecutionFailed",
    ),
    (ev.WorkflowExecutionCanceled(workflow_task_completed_event_id=4), "WorkflowExecutionCanceled"),
]


@pytest.mark.parametrize(("event", "said"), REPORTED, ids=[type(event).__name__ for event, _ in REPORTED])
def test_a_recorded_event_that_code_does_not_ask_for_is_named(event: ev.EventAttributes, said: str) -> None:
    recorded = ev.HistoryEvent(event_id=5, event_time=START, attributes=event)
    with pytest.raises(NondeterminismError) as caught:
        match([], [recorded], 4)
    assert str(caught.value).startswith(
        f"event 5 recorded {said}, but the workflow code asked for nothing more in this workflow task; "
    )


def test_every_kind_is_shown() -> None:
    assert {type(event) for event, _ in REPORTED} == COMMAND_EVENTS
