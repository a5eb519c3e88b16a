"""Events of child workflows, at their parent."""

from typing import Any

from stepwell.api import events as ev
from stepwell.api.limits import DEFAULT_WORKFLOW_TASK_TIMEOUT
from temporalio.api.common.v1 import message_pb2 as common_pb2
from temporalio.api.enums.v1 import (
    EventType,
    ParentClosePolicy,
    StartChildWorkflowExecutionFailedCause,
    WorkflowIdReusePolicy,
)
from temporalio.api.history.v1 import message_pb2 as pb

from ..failures import retry_state, to_failure
from ..names import number
from ..payloads import to_header, to_memo, to_payloads, to_search_attributes
from ..records import to_execution, to_priority, to_retry_policy, to_task_queue
from ..times import duration, optional_duration
from .row import Row


def initiated(
    it: ev.StartChildWorkflowExecutionInitiated,
) -> pb.StartChildWorkflowExecutionInitiatedEventAttributes:
    return pb.StartChildWorkflowExecutionInitiatedEventAttributes(
        namespace=it.namespace,
        workflow_id=it.workflow_id,
        workflow_type=common_pb2.WorkflowType(name=it.workflow_type),
        task_queue=to_task_queue(it.task_queue),
        input=to_payloads(it.input),
        workflow_execution_timeout=optional_duration(it.workflow_execution_timeout),
        workflow_run_timeout=optional_duration(it.workflow_run_timeout),
        workflow_task_timeout=duration(it.workflow_task_timeout or DEFAULT_WORKFLOW_TASK_TIMEOUT),
        parent_close_policy=number(it.parent_close_policy, "PARENT_CLOSE_POLICY_", ParentClosePolicy),
        workflow_task_completed_event_id=it.workflow_task_completed_event_id,
        workflow_id_reuse_policy=number(
            it.workflow_id_reuse_policy, "WORKFLOW_ID_REUSE_POLICY_", WorkflowIdReusePolicy
        ),
        retry_policy=to_retry_policy(it.retry_policy),
        cron_schedule=it.cron_schedule,
        header=to_header(it.headers),
        memo=to_memo(it.memo),
        search_attributes=to_search_attributes(it.search_attributes),
        priority=to_priority(it.priority),
    )


def start_failed(it: ev.StartChildWorkflowExecutionFailed) -> pb.StartChildWorkflowExecutionFailedEventAttributes:
    cause = number(it.cause, "START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_", StartChildWorkflowExecutionFailedCause)
    return pb.StartChildWorkflowExecutionFailedEventAttributes(
        namespace=it.namespace,
        workflow_id=it.workflow_id,
        workflow_type=common_pb2.WorkflowType(name=it.workflow_type),
        cause=cause,
        initiated_event_id=it.initiated_event_id,
        workflow_task_completed_event_id=it.workflow_task_completed_event_id,
    )


def started(it: ev.ChildWorkflowExecutionStarted) -> pb.ChildWorkflowExecutionStartedEventAttributes:
    return pb.ChildWorkflowExecutionStartedEventAttributes(
        namespace=it.namespace,
        initiated_event_id=it.initiated_event_id,
        workflow_execution=to_execution(it.workflow_execution),
        workflow_type=common_pb2.WorkflowType(name=it.workflow_type),
        header=to_header(it.headers),
    )


_Ended = (
    ev.ChildWorkflowExecutionCompleted
    | ev.ChildWorkflowExecutionFailed
    | ev.ChildWorkflowExecutionCanceled
    | ev.ChildWorkflowExecutionTimedOut
    | ev.ChildWorkflowExecutionTerminated
)


def _of_ended(it: _Ended) -> dict[str, Any]:
    """What the five ends of a child say alike."""
    return {
        "namespace": it.namespace,
        "workflow_execution": to_execution(it.workflow_execution),
        "workflow_type": common_pb2.WorkflowType(name=it.workflow_type),
        "initiated_event_id": it.initiated_event_id,
        "started_event_id": it.started_event_id,
    }


def completed(it: ev.ChildWorkflowExecutionCompleted) -> pb.ChildWorkflowExecutionCompletedEventAttributes:
    return pb.ChildWorkflowExecutionCompletedEventAttributes(
        result=to_payloads(it.result),
        **_of_ended(it),
    )


def failed(it: ev.ChildWorkflowExecutionFailed) -> pb.ChildWorkflowExecutionFailedEventAttributes:
    return pb.ChildWorkflowExecutionFailedEventAttributes(
        failure=to_failure(it.failure),
        **_of_ended(it),
        retry_state=retry_state(it.retry_state),
    )


def canceled(it: ev.ChildWorkflowExecutionCanceled) -> pb.ChildWorkflowExecutionCanceledEventAttributes:
    return pb.ChildWorkflowExecutionCanceledEventAttributes(
        details=to_payloads(it.details),
        **_of_ended(it),
    )


def timed_out(it: ev.ChildWorkflowExecutionTimedOut) -> pb.ChildWorkflowExecutionTimedOutEventAttributes:
    return pb.ChildWorkflowExecutionTimedOutEventAttributes(
        **_of_ended(it),
        retry_state=retry_state(it.retry_state),
    )


def terminated(it: ev.ChildWorkflowExecutionTerminated) -> pb.ChildWorkflowExecutionTerminatedEventAttributes:
    return pb.ChildWorkflowExecutionTerminatedEventAttributes(
        **_of_ended(it),
    )


TABLE: dict[type, Row] = {
    ev.StartChildWorkflowExecutionInitiated: Row(
        EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED,
        "start_child_workflow_execution_initiated_event_attributes",
        initiated,
    ),
    ev.StartChildWorkflowExecutionFailed: Row(
        EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED,
        "start_child_workflow_execution_failed_event_attributes",
        start_failed,
    ),
    ev.ChildWorkflowExecutionStarted: Row(
        EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED,
        "child_workflow_execution_started_event_attributes",
        started,
    ),
    ev.ChildWorkflowExecutionCompleted: Row(
        EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED,
        "child_workflow_execution_completed_event_attributes",
        completed,
    ),
    ev.ChildWorkflowExecutionFailed: Row(
        EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED,
        "child_workflow_execution_failed_event_attributes",
        failed,
    ),
    ev.ChildWorkflowExecutionCanceled: Row(
        EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED,
        "child_workflow_execution_canceled_event_attributes",
        canceled,
    ),
    ev.ChildWorkflowExecutionTimedOut: Row(
        EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT,
        "child_workflow_execution_timed_out_event_attributes",
        timed_out,
    ),
    ev.ChildWorkflowExecutionTerminated: Row(
        EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED,
        "child_workflow_execution_terminated_event_attributes",
        terminated,
    ),
}
