"""Events of activities."""

from stepwell.api import events as ev
from temporalio.api.common.v1 import message_pb2 as common_pb2
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import message_pb2 as pb

from ..failures import retry_state, to_failure
from ..payloads import to_header, to_payloads
from ..records import to_priority, to_retry_policy, to_task_queue
from ..times import optional_duration
from .row import Row


def scheduled(it: ev.ActivityTaskScheduled) -> pb.ActivityTaskScheduledEventAttributes:
    return pb.ActivityTaskScheduledEventAttributes(
        activity_id=it.activity_id,
        activity_type=common_pb2.ActivityType(name=it.activity_type),
        task_queue=to_task_queue(it.task_queue),
        header=to_header(it.headers),
        input=to_payloads(it.input),
        schedule_to_close_timeout=optional_duration(it.schedule_to_close_timeout),
        schedule_to_start_timeout=optional_duration(it.schedule_to_start_timeout),
        start_to_close_timeout=optional_duration(it.start_to_close_timeout),
        heartbeat_timeout=optional_duration(it.heartbeat_timeout),
        workflow_task_completed_event_id=it.workflow_task_completed_event_id,
        retry_policy=to_retry_policy(it.retry_policy),
        priority=to_priority(it.priority),
    )


def started(it: ev.ActivityTaskStarted) -> pb.ActivityTaskStartedEventAttributes:
    return pb.ActivityTaskStartedEventAttributes(
        scheduled_event_id=it.scheduled_event_id,
        identity=it.identity,
        request_id=it.request_id,
        attempt=it.attempt,
        last_failure=to_failure(it.last_failure),
    )


def completed(it: ev.ActivityTaskCompleted) -> pb.ActivityTaskCompletedEventAttributes:
    return pb.ActivityTaskCompletedEventAttributes(
        result=to_payloads(it.result),
        scheduled_event_id=it.scheduled_event_id,
        started_event_id=it.started_event_id,
        identity=it.identity,
    )


def failed(it: ev.ActivityTaskFailed) -> pb.ActivityTaskFailedEventAttributes:
    return pb.ActivityTaskFailedEventAttributes(
        failure=to_failure(it.failure),
        scheduled_event_id=it.scheduled_event_id,
        started_event_id=it.started_event_id,
        identity=it.identity,
        retry_state=retry_state(it.retry_state),
    )


def timed_out(it: ev.ActivityTaskTimedOut) -> pb.ActivityTaskTimedOutEventAttributes:
    return pb.ActivityTaskTimedOutEventAttributes(
        failure=to_failure(it.failure),
        scheduled_event_id=it.scheduled_event_id,
        started_event_id=it.started_event_id,
        retry_state=retry_state(it.retry_state),
    )


def cancel_requested(it: ev.ActivityTaskCancelRequested) -> pb.ActivityTaskCancelRequestedEventAttributes:
    return pb.ActivityTaskCancelRequestedEventAttributes(
        scheduled_event_id=it.scheduled_event_id,
        workflow_task_completed_event_id=it.workflow_task_completed_event_id,
    )


def canceled(it: ev.ActivityTaskCanceled) -> pb.ActivityTaskCanceledEventAttributes:
    return pb.ActivityTaskCanceledEventAttributes(
        details=to_payloads(it.details),
        latest_cancel_requested_event_id=it.latest_cancel_requested_event_id,
        scheduled_event_id=it.scheduled_event_id,
        started_event_id=it.started_event_id,
        identity=it.identity,
    )


TABLE: dict[type, Row] = {
    ev.ActivityTaskScheduled: Row(
        EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, "activity_task_scheduled_event_attributes", scheduled
    ),
    ev.ActivityTaskStarted: Row(
        EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED, "activity_task_started_event_attributes", started
    ),
    ev.ActivityTaskCompleted: Row(
        EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, "activity_task_completed_event_attributes", completed
    ),
    ev.ActivityTaskFailed: Row(
        EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED, "activity_task_failed_event_attributes", failed
    ),
    ev.ActivityTaskTimedOut: Row(
        EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT, "activity_task_timed_out_event_attributes", timed_out
    ),
    ev.ActivityTaskCancelRequested: Row(
        EventType.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED,
        "activity_task_cancel_requested_event_attributes",
        cancel_requested,
    ),
    ev.ActivityTaskCanceled: Row(
        EventType.EVENT_TYPE_ACTIVITY_TASK_CANCELED, "activity_task_canceled_event_attributes", canceled
    ),
}
