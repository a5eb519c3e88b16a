"""Recorded command events in words, for the report of a mismatch."""

import pytest
from stepwell.api import events as ev
from stepwell.api.common import WorkflowExecution
from stepwell.api.updates import UpdateMeta, UpdateOutcome
from stepwell.replay.machines.command import describe_event

OTHER = WorkflowExecution(workflow_id="other")


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (
            ev.StartChildWorkflowExecutionInitiated(
                workflow_id="child", workflow_type="step", task_queue="q", workflow_task_completed_event_id=4
            ),
            "StartChildWorkflowExecutionInitiated (workflow_type 'step', workflow_id 'child')",
        ),
        (
            ev.SignalExternalWorkflowExecutionInitiated(
                workflow_task_completed_event_id=4, workflow_execution=OTHER, signal_name="go"
            ),
            "SignalExternalWorkflowExecutionInitiated (signal_name 'go', workflow_id 'other')",
        ),
        (
            ev.RequestCancelExternalWorkflowExecutionInitiated(
                workflow_task_completed_event_id=4, workflow_execution=OTHER
            ),
            "RequestCancelExternalWorkflowExecutionInitiated (workflow_id 'other')",
        ),
        (
            ev.WorkflowExecutionUpdateAccepted(protocol_instance_id="u"),
            "WorkflowExecutionUpdateAccepted (update_id 'u')",
        ),
        (
            ev.WorkflowExecutionUpdateCompleted(
                meta=UpdateMeta(update_id="u"), accepted_event_id=5, outcome=UpdateOutcome()
            ),
            "WorkflowExecutionUpdateCompleted (update_id 'u')",
        ),
    ],
)
def test_identity(event: ev.EventAttributes, words: str) -> None:
    assert describe_event(event) == words
