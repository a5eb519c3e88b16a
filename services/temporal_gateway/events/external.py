"""Events of signals and cancellation requests to other workflows, at the workflow that sends them."""

from stepwell.api import events as ev
from temporalio.api.enums.v1 import (
    CancelExternalWorkflowExecutionFailedCause,
    EventType,
    SignalExternalWorkflowExecutionFailedCause,
)
from temporalio.api.history.v1 import message_pb2 as pb

from ..names import number
from ..payloads import to_header, to_payloads
from ..records import to_execution
from .row import Row


def signal_initiated(
    it: ev.SignalExternalWorkflowExecutionInitiated,
) -> pb.SignalExternalWorkflowExecutionInitiatedEventAttributes:
    return pb.SignalExternalWorkflowExecutionInitiatedEventAttributes(
        workflow_task_completed_event_id=it.workflow_task_completed_event_id,
        namespace=it.namespace,
        workflow_execution=to_execution(it.workflow_execution),
        signal_name=it.signal_name,
        input=to_payloads(it.input),
        child_workflow_only=it.child_workflow_only,
        header=to_header(it.headers),
    )


def signal_failed(
    it: ev.SignalExternalWorkflowExecutionFailed,
) -> pb.SignalExternalWorkflowExecutionFailedEventAttributes:
    prefix = "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_"
    return pb.SignalExternalWorkflowExecutionFailedEventAttributes(
        cause=number(it.cause, prefix, SignalExternalWorkflowExecutionFailedCause),
        workflow_task_completed_event_id=it.workflow_task_completed_event_id,
        namespace=it.namespace,
        workflow_execution=to_execution(it.workflow_execution),
        initiated_event_id=it.initiated_event_id,
    )


def signaled(it: ev.ExternalWorkflowExecutionSignaled) -> pb.ExternalWorkflowExecutionSignaledEventAttributes:
    return pb.ExternalWorkflowExecutionSignaledEventAttributes(
        initiated_event_id=it.initiated_event_id,
        namespace=it.namespace,
        workflow_execution=to_execution(it.workflow_execution),
    )


def cancel_initiated(
    it: ev.RequestCancelExternalWorkflowExecutionInitiated,
) -> pb.RequestCancelExternalWorkflowExecutionInitiatedEventAttributes:
    return pb.RequestCancelExternalWorkflowExecutionInitiatedEventAttributes(
        workflow_task_completed_event_id=it.workflow_task_completed_event_id,
        namespace=it.namespace,
        workflow_execution=to_execution(it.workflow_execution),
        child_workflow_only=it.child_workflow_only,
        reason=it.reason,
    )


def cancel_failed(
    it: ev.RequestCancelExternalWorkflowExecutionFailed,
) -> pb.RequestCancelExternalWorkflowExecutionFailedEventAttributes:
    prefix = "CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_"
    return pb.RequestCancelExternalWorkflowExecutionFailedEventAttributes(
        cause=number(it.cause, prefix, CancelExternalWorkflowExecutionFailedCause),
        workflow_task_completed_event_id=it.workflow_task_completed_event_id,
        namespace=it.namespace,
        workflow_execution=to_execution(it.workflow_execution),
        initiated_event_id=it.initiated_event_id,
    )


def cancel_requested(
    it: ev.ExternalWorkflowExecutionCancelRequested,
) -> pb.ExternalWorkflowExecutionCancelRequestedEventAttributes:
    return pb.ExternalWorkflowExecutionCancelRequestedEventAttributes(
        initiated_event_id=it.initiated_event_id,
        namespace=it.namespace,
        workflow_execution=to_execution(it.workflow_execution),
    )


TABLE: dict[type, Row] = {
    ev.SignalExternalWorkflowExecutionInitiated: Row(
        EventType.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
        "signal_external_workflow_execution_initiated_event_attributes",
        signal_initiated,
    ),
    ev.SignalExternalWorkflowExecutionFailed: Row(
        EventType.EVENT_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED,
        "signal_external_workflow_execution_failed_event_attributes",
        signal_failed,
    ),
    ev.ExternalWorkflowExecutionSignaled: Row(
        EventType.EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_SIGNALED,
        "external_workflow_execution_signaled_event_attributes",
        signaled,
    ),
    ev.RequestCancelExternalWorkflowExecutionInitiated: Row(
        EventType.EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED,
        "request_cancel_external_workflow_execution_initiated_event_attributes",
        cancel_initiated,
    ),
    ev.RequestCancelExternalWorkflowExecutionFailed: Row(
        EventType.EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED,
        "request_cancel_external_workflow_execution_failed_event_attributes",
        cancel_failed,
    ),
    ev.ExternalWorkflowExecutionCancelRequested: Row(
        EventType.EVENT_TYPE_EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED,
        "external_workflow_execution_cancel_requested_event_attributes",
        cancel_requested,
    ),
}
