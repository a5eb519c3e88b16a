"""What requests on activities by their workflow must be like: of those who end them elsewhere, and of operators."""

from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import InvalidArgument

from . import fields
from .validation import execution as _execution


def respond_activity_by_id(request: r.RespondActivityByIdRequest) -> None:
    """The outcome's size is made to fit, like a worker's."""
    _activity(request.namespace, request.execution, request.activity_id, request.identity)
    outcome(request.outcome)


def outcome(given: r.ActivityOutcome) -> None:
    if isinstance(given, r.ActivityPending):
        raise InvalidArgument(
            "outcome is ActivityPending, which only the worker of an attempt can say; "
            "send ActivityCompleted, ActivityFailed or ActivityCanceled",
            field="outcome",
        )


def record_activity_heartbeat_by_id(request: r.RecordActivityHeartbeatByIdRequest) -> None:
    _activity(request.namespace, request.execution, request.activity_id, request.identity)
    fields.payloads("details", request.details)


def pause_activity(request: r.PauseActivityRequest) -> None:
    _activities(request)
    fields.text("reason", request.reason)


def unpause_activity(request: r.UnpauseActivityRequest) -> None:
    _activities(request)
    fields.duration("jitter", request.jitter)


def reset_activity(request: r.ResetActivityRequest) -> None:
    _activities(request)
    fields.duration("jitter", request.jitter)


def update_activity_options(request: r.UpdateActivityOptionsRequest) -> None:
    _activities(request)
    options(request.options)


def options(given: r.ActivityOptionsChange) -> None:
    if given == r.ActivityOptionsChange():
        raise InvalidArgument("options names nothing to change; set at least one", field="options")
    if given.task_queue:
        fields.path_identifier("options.task_queue", given.task_queue)
    for name in (
        "schedule_to_close_timeout",
        "schedule_to_start_timeout",
        "start_to_close_timeout",
        "heartbeat_timeout",
        "retry_initial_interval",
        "retry_maximum_interval",
    ):
        fields.duration(f"options.{name}", getattr(given, name))


def _activity(namespace: str, execution: WorkflowExecution, activity_id: str, identity: str) -> None:
    _execution(namespace, execution)
    fields.identifier("activity_id", activity_id)
    fields.text("identity", identity)


def _activities(
    request: r.PauseActivityRequest
    | r.UnpauseActivityRequest
    | r.ResetActivityRequest
    | r.UpdateActivityOptionsRequest,
) -> None:
    _execution(request.namespace, request.execution)
    fields.optional_identifier("activity_id", request.activity_id)
    fields.optional_identifier("activity_type", request.activity_type)
    fields.text("identity", request.identity)
    if bool(request.activity_id) == bool(request.activity_type):
        raise InvalidArgument(
            "give either activity_id, or activity_type for all pending activities of a type, and not both",
            field="activity_id",
        )
