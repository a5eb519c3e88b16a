"""Events of a workflow execution itself."""

from stepwell.api import events as ev
from stepwell.api.enums import ContinueAsNewInitiator
from temporalio.api.common.v1 import message_pb2 as common_pb2
from temporalio.api.enums.v1 import ContinueAsNewInitiator as PbInitiator
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import message_pb2 as pb

from ..callbacks import to_callbacks
from ..failures import retry_state, to_failure
from ..names import number
from ..payloads import to_header, to_memo, to_payloads, to_search_attributes
from ..records import optional_execution, to_priority, to_retry_policy, to_task_queue
from ..times import duration, optional_duration, timestamp
from .row import Row

_SERVER = "history-service"
"""Who their servers say it was where it was themselves: for another workflow, by a policy, or over a limit."""


def _initiator(initiator: ContinueAsNewInitiator | None) -> "PbInitiator.ValueType":
    if initiator is None:
        return PbInitiator.CONTINUE_AS_NEW_INITIATOR_UNSPECIFIED
    found: PbInitiator.ValueType = number(initiator, "CONTINUE_AS_NEW_INITIATOR_", PbInitiator)
    return found


def started(it: ev.WorkflowExecutionStarted) -> pb.WorkflowExecutionStartedEventAttributes:
    return pb.WorkflowExecutionStartedEventAttributes(
        workflow_type=common_pb2.WorkflowType(name=it.workflow_type),
        parent_workflow_namespace=it.parent_workflow_namespace,
        parent_workflow_execution=optional_execution(it.parent_workflow_execution),
        parent_initiated_event_id=it.parent_initiated_event_id,
        task_queue=to_task_queue(it.task_queue),
        input=to_payloads(it.input),
        workflow_execution_timeout=optional_duration(it.workflow_execution_timeout),
        workflow_run_timeout=optional_duration(it.workflow_run_timeout),
        workflow_task_timeout=duration(it.workflow_task_timeout),
        continued_execution_run_id=it.continued_execution_run_id,
        initiator=_initiator(it.initiator),
        continued_failure=to_failure(it.continued_failure),
        last_completion_result=to_payloads(it.last_completion_result),
        original_execution_run_id=it.original_execution_run_id,
        identity=it.identity,
        first_execution_run_id=it.first_execution_run_id,
        retry_policy=to_retry_policy(it.retry_policy),
        attempt=it.attempt,
        workflow_execution_expiration_time=(
            None if it.workflow_execution_expiration_time is None else timestamp(it.workflow_execution_expiration_time)
        ),
        cron_schedule=it.cron_schedule,
        first_workflow_task_backoff=optional_duration(it.first_workflow_task_backoff),
        memo=to_memo(it.memo),
        search_attributes=to_search_attributes(it.search_attributes),
        header=to_header(it.headers),
        workflow_id=it.workflow_id,
        root_workflow_execution=optional_execution(it.root_workflow_execution),
        priority=to_priority(it.priority),
        eager_execution_accepted=it.eager_execution_accepted,
        completion_callbacks=to_callbacks(it.completion_callbacks),
    )


def completed(it: ev.WorkflowExecutionCompleted) -> pb.WorkflowExecutionCompletedEventAttributes:
    return pb.WorkflowExecutionCompletedEventAttributes(
        result=to_payloads(it.result),
        workflow_task_completed_event_id=it.workflow_task_completed_event_id,
        new_execution_run_id=it.new_execution_run_id,
    )


def failed(it: ev.WorkflowExecutionFailed) -> pb.WorkflowExecutionFailedEventAttributes:
    return pb.WorkflowExecutionFailedEventAttributes(
        failure=to_failure(it.failure),
        retry_state=retry_state(it.retry_state),
        workflow_task_completed_event_id=it.workflow_task_completed_event_id,
        new_execution_run_id=it.new_execution_run_id,
    )


def timed_out(it: ev.WorkflowExecutionTimedOut) -> pb.WorkflowExecutionTimedOutEventAttributes:
    return pb.WorkflowExecutionTimedOutEventAttributes(
        retry_state=retry_state(it.retry_state), new_execution_run_id=it.new_execution_run_id
    )


def canceled(it: ev.WorkflowExecutionCanceled) -> pb.WorkflowExecutionCanceledEventAttributes:
    return pb.WorkflowExecutionCanceledEventAttributes(
        workflow_task_completed_event_id=it.workflow_task_completed_event_id, details=to_payloads(it.details)
    )


def terminated(it: ev.WorkflowExecutionTerminated) -> pb.WorkflowExecutionTerminatedEventAttributes:
    return pb.WorkflowExecutionTerminatedEventAttributes(
        reason=it.reason, details=to_payloads(it.details), identity=it.identity or _SERVER
    )


def continued_as_new(it: ev.WorkflowExecutionContinuedAsNew) -> pb.WorkflowExecutionContinuedAsNewEventAttributes:
    return pb.WorkflowExecutionContinuedAsNewEventAttributes(
        new_execution_run_id=it.new_execution_run_id,
        workflow_type=common_pb2.WorkflowType(name=it.workflow_type),
        task_queue=to_task_queue(it.task_queue),
        input=to_payloads(it.input),
        workflow_run_timeout=optional_duration(it.workflow_run_timeout),
        workflow_task_timeout=optional_duration(it.workflow_task_timeout),
        workflow_task_completed_event_id=it.workflow_task_completed_event_id,
        backoff_start_interval=optional_duration(it.backoff_start_interval),
        # Theirs says so only where something else than the code decided.
        initiator=_initiator(None if it.initiator is ContinueAsNewInitiator.WORKFLOW else it.initiator),
        failure=to_failure(it.failure),
        last_completion_result=to_payloads(it.last_completion_result),
        header=to_header(it.headers),
        memo=to_memo(it.memo),
        search_attributes=to_search_attributes(it.search_attributes),
    )


def cancel_requested(it: ev.WorkflowExecutionCancelRequested) -> pb.WorkflowExecutionCancelRequestedEventAttributes:
    return pb.WorkflowExecutionCancelRequestedEventAttributes(
        cause=it.cause,
        external_initiated_event_id=it.external_initiated_event_id,
        external_workflow_execution=optional_execution(it.external_workflow_execution),
        identity=it.identity or (_SERVER if it.external_workflow_execution else ""),
    )


def signaled(it: ev.WorkflowExecutionSignaled) -> pb.WorkflowExecutionSignaledEventAttributes:
    return pb.WorkflowExecutionSignaledEventAttributes(
        signal_name=it.signal_name,
        input=to_payloads(it.input),
        identity=it.identity or (_SERVER if it.external_workflow_execution else ""),
        header=to_header(it.headers),
        external_workflow_execution=optional_execution(it.external_workflow_execution),
        request_id=it.request_id,
    )


def options_updated(it: ev.WorkflowExecutionOptionsUpdated) -> pb.WorkflowExecutionOptionsUpdatedEventAttributes:
    return pb.WorkflowExecutionOptionsUpdatedEventAttributes(
        attached_request_id=it.attached_request_id,
        identity=it.identity,
        priority=to_priority(it.priority),
        attached_completion_callbacks=to_callbacks(it.attached_completion_callbacks),
    )


def paused(it: ev.WorkflowExecutionPaused) -> pb.WorkflowExecutionPausedEventAttributes:
    return pb.WorkflowExecutionPausedEventAttributes(identity=it.identity, reason=it.reason, request_id=it.request_id)


def unpaused(it: ev.WorkflowExecutionUnpaused) -> pb.WorkflowExecutionUnpausedEventAttributes:
    return pb.WorkflowExecutionUnpausedEventAttributes(identity=it.identity, reason=it.reason, request_id=it.request_id)


def search_attributes_upserted(
    it: ev.UpsertWorkflowSearchAttributes,
) -> pb.UpsertWorkflowSearchAttributesEventAttributes:
    return pb.UpsertWorkflowSearchAttributesEventAttributes(
        workflow_task_completed_event_id=it.workflow_task_completed_event_id,
        search_attributes=to_search_attributes(it.search_attributes),
    )


def properties_modified(it: ev.WorkflowPropertiesModified) -> pb.WorkflowPropertiesModifiedEventAttributes:
    return pb.WorkflowPropertiesModifiedEventAttributes(
        workflow_task_completed_event_id=it.workflow_task_completed_event_id, upserted_memo=to_memo(it.upserted_memo)
    )


TABLE: dict[type, Row] = {
    ev.WorkflowExecutionStarted: Row(
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, "workflow_execution_started_event_attributes", started
    ),
    ev.WorkflowExecutionCompleted: Row(
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, "workflow_execution_completed_event_attributes", completed
    ),
    ev.WorkflowExecutionFailed: Row(
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED, "workflow_execution_failed_event_attributes", failed
    ),
    ev.WorkflowExecutionTimedOut: Row(
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT, "workflow_execution_timed_out_event_attributes", timed_out
    ),
    ev.WorkflowExecutionCanceled: Row(
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED, "workflow_execution_canceled_event_attributes", canceled
    ),
    ev.WorkflowExecutionTerminated: Row(
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED, "workflow_execution_terminated_event_attributes", terminated
    ),
    ev.WorkflowExecutionContinuedAsNew: Row(
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
        "workflow_execution_continued_as_new_event_attributes",
        continued_as_new,
    ),
    ev.WorkflowExecutionCancelRequested: Row(
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED,
        "workflow_execution_cancel_requested_event_attributes",
        cancel_requested,
    ),
    ev.WorkflowExecutionSignaled: Row(
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, "workflow_execution_signaled_event_attributes", signaled
    ),
    ev.WorkflowExecutionOptionsUpdated: Row(
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED,
        "workflow_execution_options_updated_event_attributes",
        options_updated,
        may_ignore=True,
    ),
    ev.WorkflowExecutionPaused: Row(
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_PAUSED,
        "workflow_execution_paused_event_attributes",
        paused,
        may_ignore=True,
    ),
    ev.WorkflowExecutionUnpaused: Row(
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UNPAUSED,
        "workflow_execution_unpaused_event_attributes",
        unpaused,
        may_ignore=True,
    ),
    ev.UpsertWorkflowSearchAttributes: Row(
        EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
        "upsert_workflow_search_attributes_event_attributes",
        search_attributes_upserted,
    ),
    ev.WorkflowPropertiesModified: Row(
        EventType.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED,
        "workflow_properties_modified_event_attributes",
        properties_modified,
    ),
}
