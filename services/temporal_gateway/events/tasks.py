"""Events of workflow tasks."""

from stepwell.api import events as ev
from stepwell.api.common import SdkMetadata
from temporalio.api.common.v1 import message_pb2 as common_pb2
from temporalio.api.enums.v1 import EventType, SuggestContinueAsNewReason, TimeoutType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import message_pb2 as pb
from temporalio.api.sdk.v1 import task_complete_metadata_pb2

from ..failures import to_failure
from ..names import number
from ..records import to_task_queue
from ..times import duration
from .row import Row


def scheduled(it: ev.WorkflowTaskScheduled) -> pb.WorkflowTaskScheduledEventAttributes:
    return pb.WorkflowTaskScheduledEventAttributes(
        task_queue=to_task_queue(it.task_queue),
        start_to_close_timeout=duration(it.start_to_close_timeout),
        attempt=it.attempt,
    )


def started(it: ev.WorkflowTaskStarted) -> pb.WorkflowTaskStartedEventAttributes:
    return pb.WorkflowTaskStartedEventAttributes(
        scheduled_event_id=it.scheduled_event_id,
        identity=it.identity,
        request_id=it.request_id,
        suggest_continue_as_new=it.suggest_continue_as_new,
        suggest_continue_as_new_reasons=[
            number(reason, "SUGGEST_CONTINUE_AS_NEW_REASON_", SuggestContinueAsNewReason)
            for reason in it.suggest_continue_as_new_reasons
        ],
        history_size_bytes=it.history_size_bytes,
    )


def completed(it: ev.WorkflowTaskCompleted) -> pb.WorkflowTaskCompletedEventAttributes:
    build = it.binary_checksum
    return pb.WorkflowTaskCompletedEventAttributes(
        scheduled_event_id=it.scheduled_event_id,
        started_event_id=it.started_event_id,
        identity=it.identity,
        worker_version=common_pb2.WorkerVersionStamp(build_id=build) if build else None,
        sdk_metadata=None if it.sdk_metadata is None else _sdk_metadata(it.sdk_metadata),
    )


def _sdk_metadata(metadata: SdkMetadata) -> task_complete_metadata_pb2.WorkflowTaskCompletedMetadata:
    return task_complete_metadata_pb2.WorkflowTaskCompletedMetadata(
        core_used_flags=metadata.core_flags,
        lang_used_flags=metadata.flags,
        sdk_name=metadata.sdk_name,
        sdk_version=metadata.sdk_version,
    )


def timed_out(it: ev.WorkflowTaskTimedOut) -> pb.WorkflowTaskTimedOutEventAttributes:
    return pb.WorkflowTaskTimedOutEventAttributes(
        scheduled_event_id=it.scheduled_event_id,
        started_event_id=it.started_event_id,
        timeout_type=number(it.timeout_type, "TIMEOUT_TYPE_", TimeoutType),
    )


def failed(it: ev.WorkflowTaskFailed) -> pb.WorkflowTaskFailedEventAttributes:
    return pb.WorkflowTaskFailedEventAttributes(
        scheduled_event_id=it.scheduled_event_id,
        started_event_id=it.started_event_id,
        cause=number(it.cause, "WORKFLOW_TASK_FAILED_CAUSE_", WorkflowTaskFailedCause),
        failure=to_failure(it.failure),
        identity=it.identity,
        base_run_id=it.base_run_id,
        new_run_id=it.new_run_id,
    )


TABLE: dict[type, Row] = {
    ev.WorkflowTaskScheduled: Row(
        EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, "workflow_task_scheduled_event_attributes", scheduled
    ),
    ev.WorkflowTaskStarted: Row(
        EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED, "workflow_task_started_event_attributes", started
    ),
    ev.WorkflowTaskCompleted: Row(
        EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, "workflow_task_completed_event_attributes", completed
    ),
    ev.WorkflowTaskTimedOut: Row(
        EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT, "workflow_task_timed_out_event_attributes", timed_out
    ),
    ev.WorkflowTaskFailed: Row(
        EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED, "workflow_task_failed_event_attributes", failed
    ),
}
