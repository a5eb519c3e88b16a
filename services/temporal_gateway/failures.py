"""Failures: their taxonomy is ours (ER-01), kind by kind."""

from typing import Any

from stepwell.api import failures as f
from stepwell.api.enums import RetryState, TimeoutType
from stepwell.api.errors import InvalidArgument
from temporalio.api.common.v1 import message_pb2 as common_pb2
from temporalio.api.enums.v1 import ApplicationErrorCategory
from temporalio.api.enums.v1 import RetryState as PbRetryState
from temporalio.api.enums.v1 import TimeoutType as PbTimeoutType
from temporalio.api.failure.v1 import message_pb2 as pb

from .names import member, number
from .payloads import payload_of, payloads_of, to_payload, to_payloads
from .times import optional_duration, timedelta_of

_CATEGORY = "APPLICATION_ERROR_CATEGORY_"
_RETRY_STATE = "RETRY_STATE_"
_TIMEOUT_TYPE = "TIMEOUT_TYPE_"
_CATEGORIES = {name.removeprefix(_CATEGORY): value for name, value in ApplicationErrorCategory.items()}
_SERVER = "Server"
_OURS = (f.TimeoutFailureInfo, f.TerminatedFailureInfo, f.ServerFailureInfo)
"""Kinds that the server makes, which their server signs."""

_DEEPEST = 100
"""Causes behind causes; the engine keeps fewer, and protobuf has a limit of its own."""


def retry_state(state: RetryState) -> "PbRetryState.ValueType":
    found: PbRetryState.ValueType = number(state, _RETRY_STATE, PbRetryState)
    return found


def failure_of(value: pb.Failure, depth: int = 0) -> f.Failure:
    cause = None
    if value.HasField("cause") and depth < _DEEPEST:
        cause = failure_of(value.cause, depth + 1)
    return f.Failure(
        message=value.message,
        source=value.source,
        stack_trace=value.stack_trace,
        cause=cause,
        info=_info_of(value),
        encoded_attributes=payload_of(value.encoded_attributes) if value.HasField("encoded_attributes") else None,
    )


def optional_failure_of(message: Any, field: str) -> f.Failure | None:
    """The failure in that field, None when it is not set."""
    return failure_of(getattr(message, field)) if message.HasField(field) else None


def _info_of(value: pb.Failure) -> f.FailureInfo | None:
    match value.WhichOneof("failure_info"):
        case None:
            return None
        case "application_failure_info":
            return _application_of(value.application_failure_info)
        case "timeout_failure_info":
            timeout = value.timeout_failure_info
            return f.TimeoutFailureInfo(
                timeout_type=member(
                    timeout.timeout_type,
                    TimeoutType,
                    _TIMEOUT_TYPE,
                    PbTimeoutType,
                    field="timeout_type",
                    unspecified=TimeoutType.START_TO_CLOSE,
                ),
                last_heartbeat_details=payloads_of(timeout.last_heartbeat_details),
            )
        case "canceled_failure_info":
            canceled = value.canceled_failure_info
            return f.CanceledFailureInfo(details=payloads_of(canceled.details))
        case "terminated_failure_info":
            return f.TerminatedFailureInfo()
        case "server_failure_info":
            return f.ServerFailureInfo(non_retryable=value.server_failure_info.non_retryable)
        case "activity_failure_info":
            return _activity_of(value.activity_failure_info)
        case "child_workflow_execution_failure_info":
            return _child_of(value.child_workflow_execution_failure_info)
        case other:
            raise InvalidArgument(
                f"a failure with {other} is not taken; send it as an application failure", field=other
            )


def _application_of(info: pb.ApplicationFailureInfo) -> f.ApplicationFailureInfo:
    category = ApplicationErrorCategory.Name(info.category).removeprefix(_CATEGORY) if info.category else ""
    return f.ApplicationFailureInfo(
        failure_type=info.type,
        non_retryable=info.non_retryable,
        details=payloads_of(info.details),
        next_retry_delay=timedelta_of(info.next_retry_delay),
        category=category,
    )


def _retry_state_of(value: int) -> RetryState:
    return member(
        value, RetryState, _RETRY_STATE, PbRetryState, field="retry_state", unspecified=RetryState.IN_PROGRESS
    )


def _activity_of(info: pb.ActivityFailureInfo) -> f.ActivityFailureInfo:
    return f.ActivityFailureInfo(
        scheduled_event_id=info.scheduled_event_id,
        started_event_id=info.started_event_id,
        identity=info.identity,
        activity_type=info.activity_type.name,
        activity_id=info.activity_id,
        retry_state=_retry_state_of(info.retry_state),
    )


def _child_of(info: pb.ChildWorkflowExecutionFailureInfo) -> f.ChildWorkflowExecutionFailureInfo:
    return f.ChildWorkflowExecutionFailureInfo(
        namespace=info.namespace,
        workflow_id=info.workflow_execution.workflow_id,
        run_id=info.workflow_execution.run_id,
        workflow_type=info.workflow_type.name,
        initiated_event_id=info.initiated_event_id,
        started_event_id=info.started_event_id,
        retry_state=_retry_state_of(info.retry_state),
    )


def to_failure(failure: f.Failure | None) -> pb.Failure | None:
    if failure is None:
        return None
    value = pb.Failure(
        message=_message_of(failure),
        source=failure.source or (_SERVER if isinstance(failure.info, _OURS) else ""),
        stack_trace=failure.stack_trace,
        cause=to_failure(failure.cause),
    )
    if failure.encoded_attributes is not None:
        value.encoded_attributes.CopyFrom(to_payload(failure.encoded_attributes))
    if failure.info is not None:
        _set_info(value, failure.info)
    return value


def _message_of(failure: f.Failure) -> str:
    """Timeouts that the server found are in their server's words, which callers compare with; what an SDK has encoded
    again has a source."""
    if failure.source or not isinstance(failure.info, f.TimeoutFailureInfo):
        return failure.message
    if failure.message.startswith("workflow timeout"):
        return "workflow timeout"
    kind = "".join(word.capitalize() for word in failure.info.timeout_type.split("_"))
    if failure.info.timeout_type is TimeoutType.SCHEDULE_TO_CLOSE:
        return f"Not enough time to schedule next retry before activity {kind} timeout, giving up retrying"
    return f"activity {kind} timeout"


def _set_info(value: pb.Failure, info: f.FailureInfo) -> None:
    match info:
        case f.ApplicationFailureInfo():
            value.application_failure_info.CopyFrom(_to_application(info))
        case f.TimeoutFailureInfo():
            value.timeout_failure_info.CopyFrom(
                pb.TimeoutFailureInfo(
                    timeout_type=number(info.timeout_type, _TIMEOUT_TYPE, PbTimeoutType),
                    last_heartbeat_details=to_payloads(info.last_heartbeat_details),
                )
            )
        case f.CanceledFailureInfo():
            value.canceled_failure_info.CopyFrom(pb.CanceledFailureInfo(details=to_payloads(info.details)))
        case f.TerminatedFailureInfo():
            value.terminated_failure_info.SetInParent()
        case f.ServerFailureInfo():
            value.server_failure_info.CopyFrom(pb.ServerFailureInfo(non_retryable=info.non_retryable))
        case f.ActivityFailureInfo():
            value.activity_failure_info.CopyFrom(_to_activity(info))
        case f.ChildWorkflowExecutionFailureInfo():
            value.child_workflow_execution_failure_info.CopyFrom(_to_child(info))


def _to_application(info: f.ApplicationFailureInfo) -> pb.ApplicationFailureInfo:
    return pb.ApplicationFailureInfo(
        type=info.failure_type,
        non_retryable=info.non_retryable,
        details=to_payloads(info.details),
        next_retry_delay=optional_duration(info.next_retry_delay),
        category=_CATEGORIES.get(info.category, ApplicationErrorCategory.APPLICATION_ERROR_CATEGORY_UNSPECIFIED),
    )


def _to_activity(info: f.ActivityFailureInfo) -> pb.ActivityFailureInfo:
    return pb.ActivityFailureInfo(
        scheduled_event_id=info.scheduled_event_id,
        started_event_id=info.started_event_id,
        identity=info.identity,
        activity_type=common_pb2.ActivityType(name=info.activity_type),
        activity_id=info.activity_id,
        retry_state=retry_state(info.retry_state),
    )


def _to_child(info: f.ChildWorkflowExecutionFailureInfo) -> pb.ChildWorkflowExecutionFailureInfo:
    return pb.ChildWorkflowExecutionFailureInfo(
        namespace=info.namespace,
        workflow_execution=common_pb2.WorkflowExecution(workflow_id=info.workflow_id, run_id=info.run_id),
        workflow_type=common_pb2.WorkflowType(name=info.workflow_type),
        initiated_event_id=info.initiated_event_id,
        started_event_id=info.started_event_id,
        retry_state=retry_state(info.retry_state),
    )
