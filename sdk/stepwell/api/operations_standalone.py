"""Operations on activities without a workflow (AC-28)."""

from typing import Any

from . import requests as r
from .operation import Operation

_NAMESPACE = "/api/v1/namespaces/{namespace}"
_ACTIVITY = _NAMESPACE + "/activities/{activity_id}"
# Paths end as none of other kinds do: policies of IAM go by decoded paths, and their wildcards match slashes, so that a
# workflow whose id has slashes could stand for an activity.

START_ACTIVITY = Operation(
    "StartActivity", _ACTIVITY + "/start-activity", r.StartActivityRequest, r.StartActivityResponse
)
POLL_ACTIVITY = Operation(
    "PollActivity", _ACTIVITY + "/activity-outcome", r.PollActivityRequest, r.PollActivityResponse, long_poll=True
)
DESCRIBE_ACTIVITY = Operation(
    "DescribeActivity", _ACTIVITY + "/describe-activity", r.DescribeActivityRequest, r.DescribeActivityResponse
)
CANCEL_ACTIVITY = Operation(
    "CancelActivity", _ACTIVITY + "/cancel-activity", r.CancelActivityRequest, r.CancelActivityResponse
)
TERMINATE_ACTIVITY = Operation(
    "TerminateActivity",
    _ACTIVITY + "/terminate-activity",
    r.TerminateActivityRequest,
    r.TerminateActivityResponse,
    idempotent=False,
)
DELETE_ACTIVITY = Operation(
    "DeleteActivity", _ACTIVITY + "/delete-activity", r.DeleteActivityRequest, r.DeleteActivityResponse
)
LIST_ACTIVITIES = Operation(
    "ListActivities", _NAMESPACE + "/list-activities", r.ListActivitiesRequest, r.ListActivitiesResponse
)
COUNT_ACTIVITIES = Operation(
    "CountActivities", _NAMESPACE + "/count-activities", r.CountActivitiesRequest, r.CountActivitiesResponse
)
# Of stand-alone activities: the same requests, with no workflow in them.
COMPLETE_STANDALONE_ACTIVITY = Operation(
    "CompleteStandaloneActivity",
    _ACTIVITY + "/complete-activity",
    r.RespondActivityByIdRequest,
    r.RespondActivityByIdResponse,
    idempotent=False,
)
RECORD_STANDALONE_ACTIVITY_HEARTBEAT = Operation(
    "RecordStandaloneActivityHeartbeat",
    _ACTIVITY + "/record-activity-heartbeat",
    r.RecordActivityHeartbeatByIdRequest,
    r.RecordActivityHeartbeatResponse,
)
PAUSE_STANDALONE_ACTIVITY = Operation(
    "PauseStandaloneActivity", _ACTIVITY + "/pause-activity", r.PauseActivityRequest, r.ActivitiesChangedResponse
)
UNPAUSE_STANDALONE_ACTIVITY = Operation(
    "UnpauseStandaloneActivity", _ACTIVITY + "/unpause-activity", r.UnpauseActivityRequest, r.ActivitiesChangedResponse
)
RESET_STANDALONE_ACTIVITY = Operation(
    "ResetStandaloneActivity", _ACTIVITY + "/reset-activity", r.ResetActivityRequest, r.ActivitiesChangedResponse
)
UPDATE_STANDALONE_ACTIVITY_OPTIONS = Operation(
    "UpdateStandaloneActivityOptions",
    _ACTIVITY + "/update-activity-options",
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
