"""What is known of one run: its configuration, what it waits for, its times."""

from stepwell.api import operations as o
from stepwell.api import requests as r
from temporalio.api.common.v1 import message_pb2 as common_pb2
from temporalio.api.enums.v1 import (
    ParentClosePolicy,
    PendingActivityState,
    PendingWorkflowTaskState,
)
from temporalio.api.workflow.v1 import message_pb2 as workflow_pb2
from temporalio.api.workflowservice.v1 import request_response_pb2 as pb

from ..callbacks import to_infos
from ..change_records import to_activity_options
from ..execution_info import to_info
from ..failures import to_failure
from ..gateway import Call, Gateway, Handlers
from ..names import number
from ..payloads import to_payloads
from ..records import execution_of, to_task_queue, to_user_metadata
from ..times import duration, optional_duration, optional_timestamp, timestamp


async def describe_workflow_execution(
    gateway: Gateway, request: pb.DescribeWorkflowExecutionRequest, call: Call
) -> pb.DescribeWorkflowExecutionResponse:
    asked = r.DescribeWorkflowRequest(namespace=request.namespace, execution=execution_of(request.execution))
    answer = await gateway.call(o.DESCRIBE_WORKFLOW, asked)
    info = to_info(answer.info)
    if answer.first_workflow_task_time is not None:
        info.execution_time.CopyFrom(timestamp(answer.first_workflow_task_time))
    return pb.DescribeWorkflowExecutionResponse(
        execution_config=workflow_pb2.WorkflowExecutionConfig(
            task_queue=to_task_queue(answer.info.task_queue),
            workflow_execution_timeout=optional_duration(answer.workflow_execution_timeout),
            workflow_run_timeout=optional_duration(answer.workflow_run_timeout),
            default_workflow_task_timeout=duration(answer.workflow_task_timeout),
            user_metadata=to_user_metadata(answer.user_metadata),
        ),
        workflow_execution_info=info,
        pending_activities=[_activity(pending) for pending in answer.pending_activities],
        pending_children=[_child(pending) for pending in answer.pending_children],
        pending_workflow_task=_workflow_task(answer.pending_workflow_task),
        workflow_extended_info=_extended(answer),
        callbacks=to_infos(answer.callbacks),
    )


def _activity(pending: r.PendingActivityInfo) -> workflow_pb2.PendingActivityInfo:
    paused = None
    if pending.paused_time is not None:
        manual = workflow_pb2.PendingActivityInfo.PauseInfo.Manual(
            identity=pending.paused_by, reason=pending.pause_reason
        )
        paused = workflow_pb2.PendingActivityInfo.PauseInfo(pause_time=timestamp(pending.paused_time), manual=manual)
    return workflow_pb2.PendingActivityInfo(
        activity_id=pending.activity_id,
        activity_type=common_pb2.ActivityType(name=pending.activity_type),
        state=number(pending.state, "PENDING_ACTIVITY_STATE_", PendingActivityState),
        heartbeat_details=to_payloads(pending.heartbeat_details),
        last_heartbeat_time=optional_timestamp(pending.last_heartbeat_time),
        last_started_time=optional_timestamp(pending.last_started_time),
        attempt=pending.attempt,
        maximum_attempts=pending.maximum_attempts,
        scheduled_time=timestamp(pending.scheduled_time),
        expiration_time=optional_timestamp(pending.expiration_time),
        last_failure=to_failure(pending.last_failure),
        last_worker_identity=pending.last_worker_identity,
        next_attempt_schedule_time=optional_timestamp(pending.next_attempt_schedule_time),
        paused=pending.paused_time is not None,
        pause_info=paused,
        activity_options=to_activity_options(pending),
    )


def _child(pending: r.PendingChildInfo) -> workflow_pb2.PendingChildExecutionInfo:
    return workflow_pb2.PendingChildExecutionInfo(
        workflow_id=pending.workflow_id,
        run_id=pending.run_id,
        workflow_type_name=pending.workflow_type,
        initiated_id=pending.initiated_event_id,
        parent_close_policy=number(pending.parent_close_policy, "PARENT_CLOSE_POLICY_", ParentClosePolicy),
    )


def _workflow_task(pending: r.PendingWorkflowTaskInfo | None) -> workflow_pb2.PendingWorkflowTaskInfo | None:
    """Nobody knows whether it was started: that writes nothing."""
    if pending is None:
        return None
    return workflow_pb2.PendingWorkflowTaskInfo(
        state=PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED,
        scheduled_time=timestamp(pending.scheduled_time),
        original_scheduled_time=timestamp(pending.scheduled_time),
        attempt=pending.attempt,
    )


def _extended(answer: r.DescribeWorkflowResponse) -> workflow_pb2.WorkflowExecutionExtendedInfo:
    paused = None
    if answer.paused_time is not None:
        paused = workflow_pb2.WorkflowExecutionPauseInfo(
            identity=answer.paused_by, paused_time=timestamp(answer.paused_time), reason=answer.pause_reason
        )
    return workflow_pb2.WorkflowExecutionExtendedInfo(
        cancel_requested=answer.cancel_requested,
        original_start_time=timestamp(answer.info.start_time),
        pause_info=paused,
    )


HANDLERS: Handlers = {"DescribeWorkflowExecution": describe_workflow_execution}
