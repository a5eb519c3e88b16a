"""What requests on stand-alone activities must be like (AC-28)."""

from stepwell.api import requests as r
from stepwell.api.enums import WorkflowIDConflictPolicy
from stepwell.api.errors import InvalidArgument
from stepwell.api.limits import MAX_LIST_PAGE, MAX_MEMO_BYTES

from . import fields
from . import validation_activities as of_any
from .validation import transition, user_metadata

_NAMED = (
    r.PollActivityRequest
    | r.DescribeActivityRequest
    | r.CancelActivityRequest
    | r.TerminateActivityRequest
    | r.DeleteActivityRequest
)


def start_activity(request: r.StartActivityRequest) -> None:
    """Timeouts, retries and priority are checked where those of all activities are."""
    fields.namespace(request.namespace)
    fields.path_identifier("activity_id", request.activity_id)
    fields.name("activity_type", request.activity_type)
    fields.name("task_queue", request.task_queue)
    fields.optional_identifier("request_id", request.request_id)
    fields.duration("start_delay", request.start_delay)
    fields.label("identity", request.identity)
    size = fields.payloads("input", request.input)
    size += fields.payload_map("memo", request.memo, MAX_MEMO_BYTES)
    size += fields.payload_map("search_attributes", request.search_attributes, MAX_MEMO_BYTES)
    size += fields.payload_map("headers", request.headers)
    transition("input, memo, search_attributes and headers", size + user_metadata(request.user_metadata))
    if request.id_conflict_policy is WorkflowIDConflictPolicy.TERMINATE_EXISTING:
        raise InvalidArgument(
            "id_conflict_policy is TERMINATE_EXISTING, which activities do not have; use FAIL or USE_EXISTING, or "
            "terminate the one that runs first",
            field="id_conflict_policy",
        )


def poll_activity(request: r.PollActivityRequest) -> None:
    named(request)
    fields.wait("timeout", request.timeout)


def cancel_activity(request: r.CancelActivityRequest) -> None:
    named(request)
    fields.text("reason", request.reason)
    fields.label("identity", request.identity)
    fields.optional_identifier("request_id", request.request_id)


def terminate_activity(request: r.TerminateActivityRequest) -> None:
    named(request)
    fields.text("reason", request.reason)
    fields.label("identity", request.identity)


def delete_activity(request: r.DeleteActivityRequest) -> None:
    named(request)
    fields.label("identity", request.identity)


def named(request: _NAMED) -> None:
    fields.namespace(request.namespace)
    fields.path_identifier("activity_id", request.activity_id)
    fields.optional_identifier("run_id", request.run_id)


def list_activities(request: r.ListActivitiesRequest) -> None:
    fields.namespace(request.namespace)
    fields.count("page_size", request.page_size, MAX_LIST_PAGE, way_out="read the next page")


def count_activities(request: r.CountActivitiesRequest) -> None:
    fields.namespace(request.namespace)


def respond_activity_by_id(request: r.RespondActivityByIdRequest) -> None:
    _alone(request)
    of_any.outcome(request.outcome)


def record_activity_heartbeat_by_id(request: r.RecordActivityHeartbeatByIdRequest) -> None:
    _alone(request)
    fields.payloads("details", request.details)


def pause_activity(request: r.PauseActivityRequest) -> None:
    _operated(request)
    fields.text("reason", request.reason)


def unpause_activity(request: r.UnpauseActivityRequest) -> None:
    _operated(request)
    fields.duration("jitter", request.jitter)


def reset_activity(request: r.ResetActivityRequest) -> None:
    _operated(request)
    fields.duration("jitter", request.jitter)


def update_activity_options(request: r.UpdateActivityOptionsRequest) -> None:
    _operated(request)
    of_any.options(request.options)


def _operated(
    request: r.PauseActivityRequest
    | r.UnpauseActivityRequest
    | r.ResetActivityRequest
    | r.UpdateActivityOptionsRequest,
) -> None:
    _alone(request)
    if request.activity_type:
        raise InvalidArgument(
            "activity_type means activities of a workflow; a stand-alone one is named by activity_id alone",
            field="activity_type",
        )


def _alone(
    request: r.RespondActivityByIdRequest
    | r.RecordActivityHeartbeatByIdRequest
    | r.PauseActivityRequest
    | r.UnpauseActivityRequest
    | r.ResetActivityRequest
    | r.UpdateActivityOptionsRequest,
) -> None:
    """Access was granted by the path, which names the activity and no workflow."""
    fields.namespace(request.namespace)
    fields.path_identifier("activity_id", request.activity_id)
    fields.optional_identifier("execution.run_id", request.execution.run_id)
    fields.text("identity", request.identity)
    if request.execution.workflow_id:
        raise InvalidArgument(
            "execution.workflow_id is given, but a stand-alone activity has no workflow; leave it empty, or use the "
            "operation of a workflow's activities",
            field="execution.workflow_id",
        )
