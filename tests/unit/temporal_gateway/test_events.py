"""Every event that we can record is one of theirs, by the same name; and who did it, where something else tells."""

import re
from datetime import UTC, datetime
from typing import get_args

from stepwell.api import events as ev
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.api.events import EventAttributes, HistoryEvent
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import message_pb2 as pb

from stepwell_server.temporal_gateway.events import TABLE, to_history


def test_the_table_has_every_event() -> None:
    assert set(TABLE) == set(get_args(EventAttributes))


def test_events_keep_their_names() -> None:
    for kind, row in TABLE.items():
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
        assert EventType.Name(row.event_type) == f"EVENT_TYPE_{name.upper()}"
        field = pb.HistoryEvent.DESCRIPTOR.fields_by_name[row.field]
        assert field.name == f"{name}_event_attributes"


def test_whose_task_it_was_is_known_from_its_end() -> None:
    started = [
        ev.WorkflowTaskStarted(scheduled_event_id=2),
        ev.WorkflowTaskCompleted(scheduled_event_id=2, started_event_id=3, identity="one"),
        ev.WorkflowTaskStarted(scheduled_event_id=5),
        ev.WorkflowTaskFailed(
            scheduled_event_id=5, started_event_id=5, identity="two", cause=WorkflowTaskFailedCause.UNHANDLED_COMMAND
        ),
        ev.WorkflowTaskStarted(scheduled_event_id=7),
        ev.WorkflowTaskFailed(
            scheduled_event_id=7, started_event_id=7, identity="ops", cause=WorkflowTaskFailedCause.RESET_WORKFLOW
        ),
        ev.WorkflowTaskStarted(scheduled_event_id=9),
    ]
    events = [
        HistoryEvent(event_id=number, event_time=datetime(2026, 12, 1, tzinfo=UTC), attributes=attributes)
        for number, attributes in enumerate(started, 3)
    ]

    def identities(shown: list[HistoryEvent], worker: str = "") -> list[str]:
        made = to_history(shown, "default", worker).events
        starts = [event for event in made if event.HasField("workflow_task_started_event_attributes")]
        return [event.workflow_task_started_event_attributes.identity for event in starts]

    assert identities(events, "now") == ["one", "two", "", "now"]
    assert identities(events[::-1]) == ["", "", "two", "one"]


def test_what_the_server_did_for_another_workflow_is_the_servers() -> None:
    other = WorkflowExecution(workflow_id="parent", run_id="r")
    done: list[EventAttributes] = [
        ev.WorkflowExecutionSignaled(signal_name="s", external_workflow_execution=other),
        ev.WorkflowExecutionSignaled(signal_name="s"),
        ev.WorkflowExecutionCancelRequested(external_workflow_execution=other),
        ev.WorkflowExecutionCancelRequested(identity="me"),
        ev.WorkflowExecutionTerminated(reason="by parent close policy"),
        ev.WorkflowExecutionTerminated(identity="me"),
    ]
    identities = [TABLE[type(attributes)].attributes(attributes).identity for attributes in done]
    assert identities == ["history-service", "", "history-service", "me", "history-service", "me"]
