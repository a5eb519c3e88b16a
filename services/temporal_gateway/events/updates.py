"""Events of updates."""

from stepwell.api import events as ev
from temporalio.api.enums.v1 import EventType, UpdateAdmittedEventOrigin
from temporalio.api.history.v1 import message_pb2 as pb
from temporalio.api.update.v1 import message_pb2 as update_pb2

from ..names import number
from ..update_records import to_outcome, to_request
from .row import Row


def admitted(it: ev.WorkflowExecutionUpdateAdmitted) -> pb.WorkflowExecutionUpdateAdmittedEventAttributes:
    return pb.WorkflowExecutionUpdateAdmittedEventAttributes(
        request=to_request(it.request),
        origin=number(it.origin, "UPDATE_ADMITTED_EVENT_ORIGIN_", UpdateAdmittedEventOrigin),
    )


def accepted(it: ev.WorkflowExecutionUpdateAccepted) -> pb.WorkflowExecutionUpdateAcceptedEventAttributes:
    return pb.WorkflowExecutionUpdateAcceptedEventAttributes(
        protocol_instance_id=it.protocol_instance_id,
        accepted_request_message_id=it.accepted_request_message_id or f"{it.protocol_instance_id}/request",
        accepted_request_sequencing_event_id=it.accepted_request_sequencing_event_id,
        accepted_request=None if it.accepted_request is None else to_request(it.accepted_request),
    )


def completed(it: ev.WorkflowExecutionUpdateCompleted) -> pb.WorkflowExecutionUpdateCompletedEventAttributes:
    return pb.WorkflowExecutionUpdateCompletedEventAttributes(
        meta=update_pb2.Meta(update_id=it.meta.update_id, identity=it.meta.identity),
        accepted_event_id=it.accepted_event_id,
        outcome=to_outcome(it.outcome),
    )


TABLE: dict[type, Row] = {
    ev.WorkflowExecutionUpdateAdmitted: Row(
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED,
        "workflow_execution_update_admitted_event_attributes",
        admitted,
    ),
    ev.WorkflowExecutionUpdateAccepted: Row(
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
        "workflow_execution_update_accepted_event_attributes",
        accepted,
    ),
    ev.WorkflowExecutionUpdateCompleted: Row(
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED,
        "workflow_execution_update_completed_event_attributes",
        completed,
    ),
}
