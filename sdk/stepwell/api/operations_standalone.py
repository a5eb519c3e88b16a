"""Operations on activities without a workflow (AC-28)."""

from typing import Any

from . import requests as r
from .operation import Operation

_NAMESPACE = "/api/v1/namespaces/{namespace}"
_ACTIVITY = _NAMESPACE + "/activities/{activity_id}"

START_ACTIVITY = Operation("StartActivity", _ACTIVITY + "/start", r.StartActivityRequest, r.StartActivityResponse)
POLL_ACTIVITY = Operation(
    "PollActivity", _ACTIVITY + "/outcome", r.PollActivityRequest, r.PollActivityResponse, long_poll=True
)
DESCRIBE_ACTIVITY = Operation(
    "DescribeActivity", _ACTIVITY + "/describe", r.DescribeActivityRequest, r.DescribeActivityResponse
)
CANCEL_ACTIVITY = Operation("CancelActivity", _ACTIVITY + "/cancel", r.CancelActivityRequest, r.CancelActivityResponse)
TERMINATE_ACTIVITY = Operation(
    "TerminateActivity", _ACTIVITY + "/terminate", r.TerminateActivityRequest, r.TerminateActivityResponse
)
DELETE_ACTIVITY = Operation("DeleteActivity", _ACTIVITY + "/delete", r.DeleteActivityRequest, r.DeleteActivityResponse)
LIST_ACTIVITIES = Operation(
    "ListActivities", _NAMESPACE + "/list-activities", r.ListActivitiesRequest, r.ListActivitiesResponse
)
COUNT_ACTIVITIES = Operation(
    "CountActivities", _NAMESPACE + "/count-activities", r.CountActivitiesRequest, r.CountActivitiesResponse
)
# Of stand-alone activities: the same requests, with no workflow in them.
COMPLETE_STANDALONE_ACTIVITY = Operation(
    "CompleteStandaloneActivity",
    _ACTIVITY + "/complete",
    r.RespondActivityByIdRequest,
    r.RespondActivityByIdResponse,
    idempotent=False,
)
RECORD_STANDALONE_ACTIVITY_HEARTBEAT = Operation(
    "RecordStandaloneActivityHeartbeat",
    _ACTIVITY + "/heartbeat",
    r.RecordActivityHeartbeatByIdRequest,
    r.RecordActivityHeartbeatResponse,
)
PAUSE_STANDALONE_ACTIVITY = Operation(
    "PauseStandaloneActivity", _ACTIVITY + "/pause", r.PauseActivityRequest, r.ActivitiesChangedResponse
)
UNPAUSE_STANDALONE_ACTIVITY = Operation(
    "UnpauseStandaloneActivity", _ACTIVITY + "/unpause", r.UnpauseActivityRequest, r.ActivitiesChangedResponse
)
RESET_STANDALONE_ACTIVITY = Operation(
    "ResetStandaloneActivity", _ACTIVITY + "/reset", r.ResetActivityRequest, r.ActivitiesChangedResponse
)
UPDATE_STANDALONE_ACTIVITY_OPTIONS = Operation(
    "UpdateStandaloneActivityOptions",
    _ACTIVITY + "/update-options",
    r.UpdateActivityOptionsRequest,
    r.ActivitiesChangedResponse,
)

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    START_ACTIVITY,
    POLL_ACTIVITY,
    DESCRIBE_ACTIVITY,
    CANCEL_ACTIVITY,
    TERMINATE_ACTIVITY,
    DELETE_ACTIVITY,
    LIST_ACTIVITIES,
    COUNT_ACTIVITIES,
    COMPLETE_STANDALONE_ACTIVITY,
    RECORD_STANDALONE_ACTIVITY_HEARTBEAT,
    PAUSE_STANDALONE_ACTIVITY,
    UNPAUSE_STANDALONE_ACTIVITY,
    RESET_STANDALONE_ACTIVITY,
    UPDATE_STANDALONE_ACTIVITY_OPTIONS,
)
