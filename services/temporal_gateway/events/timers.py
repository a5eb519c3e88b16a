"""Events of timers, and markers."""

from stepwell.api import events as ev
from temporalio.api.common.v1 import message_pb2 as common_pb2
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import message_pb2 as pb

from ..failures import to_failure
from ..payloads import to_header, to_payload
from ..times import duration
from .row import Row


def started(it: ev.TimerStarted) -> pb.TimerStartedEventAttributes:
    return pb.TimerStartedEventAttributes(
        timer_id=it.timer_id,
        start_to_fire_timeout=duration(it.start_to_fire_timeout),
        workflow_task_completed_event_id=it.workflow_task_completed_event_id,
    )


def fired(it: ev.TimerFired) -> pb.TimerFiredEventAttributes:
    return pb.TimerFiredEventAttributes(timer_id=it.timer_id, started_event_id=it.started_event_id)


def canceled(it: ev.TimerCanceled) -> pb.TimerCanceledEventAttributes:
    return pb.TimerCanceledEventAttributes(
        timer_id=it.timer_id,
        started_event_id=it.started_event_id,
        workflow_task_completed_event_id=it.workflow_task_completed_event_id,
        identity=it.identity,
    )


def marker(it: ev.MarkerRecorded) -> pb.MarkerRecordedEventAttributes:
    details = {name: common_pb2.Payloads(payloads=[to_payload(value)]) for name, value in it.details.items()}
    for name, values in it.several.items():
        details[name] = common_pb2.Payloads(payloads=[to_payload(value) for value in values])
    return pb.MarkerRecordedEventAttributes(
        marker_name=it.marker_name,
        details=details,
        workflow_task_completed_event_id=it.workflow_task_completed_event_id,
        header=to_header(it.headers),
        failure=to_failure(it.failure),
    )


TABLE: dict[type, Row] = {
    ev.TimerStarted: Row(EventType.EVENT_TYPE_TIMER_STARTED, "timer_started_event_attributes", started),
    ev.TimerFired: Row(EventType.EVENT_TYPE_TIMER_FIRED, "timer_fired_event_attributes", fired),
    ev.TimerCanceled: Row(EventType.EVENT_TYPE_TIMER_CANCELED, "timer_canceled_event_attributes", canceled),
    ev.MarkerRecorded: Row(EventType.EVENT_TYPE_MARKER_RECORDED, "marker_recorded_event_attributes", marker),
}
