"""The rules about children, other workflows and updates find each kind of unlawful history."""

import pytest
from msgspec.structs import replace
from stepwell.api import events as e
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import ContinueAsNewInitiator, StartChildWorkflowExecutionFailedCause
from stepwell.api.events import EventAttributes, HistoryEvent
from stepwell.api.updates import UpdateMeta, UpdateOutcome

from tests.simulation.environment import EPOCH
from tests.simulation.history_rules import HistoryRules, Violation
from tests.simulation.test_history_rules import OPENING, SECOND, SIGNAL, STARTED, check, task_scheduled
from tests.support.lawful_events import update_request

CHILD = WorkflowExecution(workflow_id="child", run_id="c-1")
OTHER = WorkflowExecution(workflow_id="other")
ASKED = e.StartChildWorkflowExecutionInitiated(
    workflow_id="child", workflow_type="t", task_queue="q", workflow_task_completed_event_id=4
)
BEGUN = e.ChildWorkflowExecutionStarted(initiated_event_id=5, workflow_execution=CHILD, workflow_type="t")
ENDED = e.ChildWorkflowExecutionCompleted(
    workflow_execution=CHILD, workflow_type="t", initiated_event_id=5, started_event_id=6
)
REFUSED = e.StartChildWorkflowExecutionFailed(
    workflow_id="child",
    workflow_type="t",
    cause=StartChildWorkflowExecutionFailedCause.WORKFLOW_ALREADY_EXISTS,
    initiated_event_id=5,
    workflow_task_completed_event_id=4,
)
SENT = e.SignalExternalWorkflowExecutionInitiated(
    workflow_task_completed_event_id=4, workflow_execution=OTHER, signal_name="s"
)
SIGNALED = e.ExternalWorkflowExecutionSignaled(initiated_event_id=5, workflow_execution=OTHER)
CANCELED = e.ExternalWorkflowExecutionCancelRequested(initiated_event_id=5, workflow_execution=OTHER)
ADMITTED = e.WorkflowExecutionUpdateAdmitted(request=update_request("u"))
ACCEPTED = e.WorkflowExecutionUpdateAccepted(protocol_instance_id="u", accepted_request=update_request("u"))
COMPLETED = e.WorkflowExecutionUpdateCompleted(
    meta=UpdateMeta(update_id="u"), accepted_event_id=5, outcome=UpdateOutcome()
)
LATER = replace(STARTED, first_workflow_task_backoff=30 * SECOND)
RETRY = replace(LATER, initiator=ContinueAsNewInitiator.RETRY)


def test_a_lawful_history_passes() -> None:
    check([*OPENING, ASKED, BEGUN, ENDED, task_scheduled()], outstanding=True)
    check([*OPENING, ASKED, REFUSED, task_scheduled()], outstanding=True)
    check([*OPENING, SENT, SIGNALED, task_scheduled()], outstanding=True)
    check([*OPENING, ACCEPTED, COMPLETED])
    check([LATER])
    check([RETRY, SIGNAL])


@pytest.mark.parametrize(
    ("bodies", "outstanding", "message"),
    [
        ([*OPENING, BEGUN], True, "not pending"),
        ([*OPENING, ASKED, ENDED], True, "does not name the start"),
        ([*OPENING, ASKED, BEGUN, BEGUN], True, "has started"),
        ([*OPENING, ASKED, BEGUN, REFUSED], True, "has started"),
        ([*OPENING, ASKED, BEGUN, ENDED, ENDED], True, "not pending"),
        ([*OPENING, ASKED, BEGUN, replace(ENDED, workflow_execution=OTHER)], True, "another run"),
        ([*OPENING, ASKED, replace(BEGUN, workflow_execution=OTHER)], True, "another workflow"),
        ([*OPENING, ASKED, BEGUN], False, "rule 3"),
        ([*OPENING, SENT, SIGNALED, SIGNALED], True, "answers nothing"),
        ([*OPENING, SENT, CANCELED], True, "answers nothing"),
        ([*OPENING, SIGNAL, SENT], True, "rule 2"),
        ([*OPENING, ADMITTED, ADMITTED], True, "second time"),
        ([*OPENING, ACCEPTED, ACCEPTED], True, "second time"),
        ([*OPENING, replace(ACCEPTED, accepted_request=None)], True, "no request"),
        ([*OPENING, ACCEPTED, replace(COMPLETED, accepted_event_id=4)], True, "acceptance"),
        ([*OPENING, ACCEPTED, COMPLETED, COMPLETED], True, "second time"),
        ([*OPENING, SIGNAL, ACCEPTED], True, "rule 2"),
    ],
)
def test_an_unlawful_history_is_refused(bodies: list[EventAttributes], outstanding: bool, message: str) -> None:
    with pytest.raises(Violation, match=message):
        check(bodies, outstanding)


def test_a_signal_ends_a_start_delay_unless_it_came_with_the_start() -> None:
    check([LATER, SIGNAL])
    rules = HistoryRules()
    rules.add(HistoryEvent(event_id=1, event_time=EPOCH, attributes=LATER))
    rules.end_of_commit(False)
    rules.add(HistoryEvent(event_id=2, event_time=EPOCH, attributes=SIGNAL))
    with pytest.raises(Violation, match="rule 3"):
        rules.end_of_commit(False)
