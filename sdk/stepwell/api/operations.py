"""The operations of the API in one table: what the HTTP client calls, the server serves and the OpenAPI document lists.

All are POST with the request record as JSON body. The path repeats namespace, workflow type and workflow id of the
body, so that access can be granted by path; the server refuses a body that differs from its path.
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from . import requests as r

Req = TypeVar("Req")
Resp = TypeVar("Resp")

_NAMESPACE = "/api/v1/namespaces/{namespace}"
_WORKFLOW = _NAMESPACE + "/workflows/{workflow_id}"
_ACTIVITY = _NAMESPACE + "/activities/{activity_id}"
_QUEUE = _NAMESPACE + "/task-queues/{task_queue}"
_SCHEDULE = _NAMESPACE + "/schedules/{schedule_id}"


@dataclass(frozen=True, slots=True)
class Operation(Generic[Req, Resp]):
    """One operation. ``long_poll``: the server may hold the call up to the request's ``timeout``.
    ``idempotent``: a client may repeat it after a broken connection without asking."""

    name: str
    path: str
    request_type: type[Req]
    response_type: type[Resp]
    long_poll: bool = False
    idempotent: bool = True

    def url_path(self, request: Any) -> str:
        """The path for this request, its parts percent-encoded."""
        if "{" not in self.path:
            return self.path
        execution = getattr(request, "execution", None)
        workflow_id = execution.workflow_id if execution is not None else getattr(request, "workflow_id", "")
        return self.path.format(
            namespace=_segment(getattr(request, "namespace", "")),
            workflow_id=_segment(workflow_id),
            workflow_type=_segment(getattr(request, "workflow_type", "")),
            task_queue=_segment(getattr(request, "task_queue", "")),
            schedule_id=_segment(getattr(request, "schedule_id", "")),
            activity_id=_segment(getattr(request, "activity_id", "")),
        )


def _segment(text: str) -> str:
    """``.`` and ``..`` mean other paths when they are not encoded; the server then refuses them by name.
    A lone surrogate is no text and goes into the path as ``?``, so that the body is refused and not the call."""
    if text in (".", ".."):
        return text.replace(".", "%2E")
    return quote(text, safe="", errors="replace")


START_WORKFLOW = Operation(
    "StartWorkflow",
    _NAMESPACE + "/workflow-types/{workflow_type}/workflows/{workflow_id}/start",
    r.StartWorkflowRequest,
    r.StartWorkflowResponse,
)
_START = _NAMESPACE + "/workflow-types/{workflow_type}/workflows/{workflow_id}"
SIGNAL_WITH_START_WORKFLOW = Operation(
    "SignalWithStartWorkflow",
    _START + "/signal-with-start",
    r.SignalWithStartWorkflowRequest,
    r.SignalWithStartWorkflowResponse,
)
UPDATE_WITH_START_WORKFLOW = Operation(
    "UpdateWithStartWorkflow",
    _START + "/update-with-start",
    r.UpdateWithStartWorkflowRequest,
    r.UpdateWithStartWorkflowResponse,
    long_poll=True,
)
SIGNAL_WORKFLOW = Operation("SignalWorkflow", _WORKFLOW + "/signal", r.SignalWorkflowRequest, r.SignalWorkflowResponse)
QUERY_WORKFLOW = Operation(
    "QueryWorkflow", _WORKFLOW + "/query", r.QueryWorkflowRequest, r.QueryWorkflowResponse, long_poll=True
)
UPDATE_WORKFLOW = Operation(
    "UpdateWorkflow", _WORKFLOW + "/update", r.UpdateWorkflowRequest, r.UpdateWorkflowResponse, long_poll=True
)
POLL_WORKFLOW_UPDATE = Operation(
    "PollWorkflowUpdate",
    _WORKFLOW + "/poll-update",
    r.PollWorkflowUpdateRequest,
    r.PollWorkflowUpdateResponse,
    long_poll=True,
)
CANCEL_WORKFLOW = Operation("CancelWorkflow", _WORKFLOW + "/cancel", r.CancelWorkflowRequest, r.CancelWorkflowResponse)
TERMINATE_WORKFLOW = Operation(
    "TerminateWorkflow",
    _WORKFLOW + "/terminate",
    r.TerminateWorkflowRequest,
    r.TerminateWorkflowResponse,
    idempotent=False,
)
DELETE_WORKFLOW = Operation("DeleteWorkflow", _WORKFLOW + "/delete", r.DeleteWorkflowRequest, r.DeleteWorkflowResponse)
PAUSE_WORKFLOW = Operation("PauseWorkflow", _WORKFLOW + "/pause", r.PauseWorkflowRequest, r.PauseWorkflowResponse)
UNPAUSE_WORKFLOW = Operation(
    "UnpauseWorkflow", _WORKFLOW + "/unpause", r.UnpauseWorkflowRequest, r.UnpauseWorkflowResponse
)
RESET_WORKER_AFFINITY = Operation(
    "ResetWorkerAffinity",
    _WORKFLOW + "/reset-worker-affinity",
    r.ResetWorkerAffinityRequest,
    r.ResetWorkerAffinityResponse,
)
UPDATE_WORKFLOW_OPTIONS = Operation(
    "UpdateWorkflowOptions",
    _WORKFLOW + "/update-options",
    r.UpdateWorkflowOptionsRequest,
    r.UpdateWorkflowOptionsResponse,
)
RESET_WORKFLOW = Operation("ResetWorkflow", _WORKFLOW + "/reset", r.ResetWorkflowRequest, r.ResetWorkflowResponse)
IMPORT_WORKFLOW = Operation("ImportWorkflow", _WORKFLOW + "/import", r.ImportWorkflowRequest, r.ImportWorkflowResponse)
DESCRIBE_WORKFLOW = Operation(
    "DescribeWorkflow", _WORKFLOW + "/describe", r.DescribeWorkflowRequest, r.DescribeWorkflowResponse
)
GET_HISTORY = Operation("GetHistory", _WORKFLOW + "/history", r.GetHistoryRequest, r.GetHistoryResponse, long_poll=True)
LIST_WORKFLOWS = Operation(
    "ListWorkflows", _NAMESPACE + "/list-workflows", r.ListWorkflowsRequest, r.ListWorkflowsResponse
)
SCAN_WORKFLOWS = Operation(
    "ScanWorkflows", _NAMESPACE + "/scan-workflows", r.ScanWorkflowsRequest, r.ScanWorkflowsResponse
)
LIST_ARCHIVED_WORKFLOWS = Operation(
    "ListArchivedWorkflows",
    _NAMESPACE + "/list-archived-workflows",
    r.ListArchivedWorkflowsRequest,
    r.ListArchivedWorkflowsResponse,
)
COUNT_WORKFLOWS = Operation(
    "CountWorkflows", _NAMESPACE + "/count-workflows", r.CountWorkflowsRequest, r.CountWorkflowsResponse
)
POLL_WORKFLOW_TASK = Operation(
    "PollWorkflowTask",
    _QUEUE + "/poll-workflow-task",
    r.PollWorkflowTaskRequest,
    r.PollWorkflowTaskResponse,
    long_poll=True,
)
START_WORKFLOW_TASK = Operation(
    "StartWorkflowTask", _QUEUE + "/start-workflow-task", r.StartWorkflowTaskRequest, r.StartWorkflowTaskResponse
)
RESPOND_WORKFLOW_TASK_COMPLETED = Operation(
    "RespondWorkflowTaskCompleted",
    _NAMESPACE + "/workflow-tasks/complete",
    r.RespondWorkflowTaskCompletedRequest,
    r.RespondWorkflowTaskCompletedResponse,
)
RESPOND_WORKFLOW_TASKS_COMPLETED = Operation(
    "RespondWorkflowTasksCompleted",
    _NAMESPACE + "/workflow-tasks/complete-several",
    r.RespondWorkflowTasksCompletedRequest,
    r.RespondWorkflowTasksCompletedResponse,
)
RESPOND_WORKFLOW_TASK_FAILED = Operation(
    "RespondWorkflowTaskFailed",
    _NAMESPACE + "/workflow-tasks/fail",
    r.RespondWorkflowTaskFailedRequest,
    r.RespondWorkflowTaskFailedResponse,
)
RESPOND_QUERY_TASK_COMPLETED = Operation(
    "RespondQueryTaskCompleted",
    _NAMESPACE + "/query-tasks/complete",
    r.RespondQueryTaskCompletedRequest,
    r.RespondQueryTaskCompletedResponse,
)
POLL_ACTIVITY_TASK = Operation(
    "PollActivityTask",
    _QUEUE + "/poll-activity-task",
    r.PollActivityTaskRequest,
    r.PollActivityTaskResponse,
    long_poll=True,
)
START_ACTIVITY_TASK = Operation(
    "StartActivityTask", _QUEUE + "/start-activity-task", r.StartActivityTaskRequest, r.StartActivityTaskResponse
)
RESPOND_ACTIVITY_TASKS = Operation(
    "RespondActivityTasks",
    _NAMESPACE + "/activity-tasks/complete",
    r.RespondActivityTasksRequest,
    r.RespondActivityTasksResponse,
)
RECORD_ACTIVITY_HEARTBEAT = Operation(
    "RecordActivityHeartbeat",
    _NAMESPACE + "/activity-tasks/heartbeat",
    r.RecordActivityHeartbeatRequest,
    r.RecordActivityHeartbeatResponse,
)
RESPOND_ACTIVITY_BY_ID = Operation(
    "RespondActivityById",
    _WORKFLOW + "/activities/complete",
    r.RespondActivityByIdRequest,
    r.RespondActivityByIdResponse,
    idempotent=False,
)
RECORD_ACTIVITY_HEARTBEAT_BY_ID = Operation(
    "RecordActivityHeartbeatById",
    _WORKFLOW + "/activities/heartbeat",
    r.RecordActivityHeartbeatByIdRequest,
    r.RecordActivityHeartbeatResponse,
)
PAUSE_ACTIVITY = Operation(
    "PauseActivity", _WORKFLOW + "/activities/pause", r.PauseActivityRequest, r.ActivitiesChangedResponse
)
UNPAUSE_ACTIVITY = Operation(
    "UnpauseActivity", _WORKFLOW + "/activities/unpause", r.UnpauseActivityRequest, r.ActivitiesChangedResponse
)
RESET_ACTIVITY = Operation(
    "ResetActivity", _WORKFLOW + "/activities/reset", r.ResetActivityRequest, r.ActivitiesChangedResponse
)
UPDATE_ACTIVITY_OPTIONS = Operation(
    "UpdateActivityOptions",
    _WORKFLOW + "/activities/update-options",
    r.UpdateActivityOptionsRequest,
    r.ActivitiesChangedResponse,
)
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
SHUTDOWN_WORKER = Operation(
    "ShutdownWorker", _QUEUE + "/shutdown-worker", r.ShutdownWorkerRequest, r.ShutdownWorkerResponse
)
DESCRIBE_TASK_QUEUE = Operation(
    "DescribeTaskQueue", _QUEUE + "/describe", r.DescribeTaskQueueRequest, r.DescribeTaskQueueResponse
)
LIST_WORKERS = Operation("ListWorkers", _NAMESPACE + "/list-workers", r.ListWorkersRequest, r.ListWorkersResponse)
GET_TASK_SOURCES = Operation("GetTaskSources", _QUEUE + "/sources", r.GetTaskSourcesRequest, r.GetTaskSourcesResponse)
# Their verbs are no other operation's: a grant over all namespaces ends in `*/{verb}`, and `*` matches slashes.
REGISTER_NAMESPACE = Operation(
    "RegisterNamespace", _NAMESPACE + "/register-namespace", r.RegisterNamespaceRequest, r.RegisterNamespaceResponse
)
DESCRIBE_NAMESPACE = Operation(
    "DescribeNamespace", _NAMESPACE + "/describe-namespace", r.DescribeNamespaceRequest, r.DescribeNamespaceResponse
)
UPDATE_NAMESPACE = Operation(
    "UpdateNamespace", _NAMESPACE + "/update-namespace", r.UpdateNamespaceRequest, r.UpdateNamespaceResponse
)
DEPRECATE_NAMESPACE = Operation(
    "DeprecateNamespace", _NAMESPACE + "/deprecate-namespace", r.DeprecateNamespaceRequest, r.DeprecateNamespaceResponse
)
DELETE_NAMESPACE = Operation(
    "DeleteNamespace", _NAMESPACE + "/delete-namespace", r.DeleteNamespaceRequest, r.DeleteNamespaceResponse
)
LIST_NAMESPACES = Operation(
    "ListNamespaces", "/api/v1/list-namespaces", r.ListNamespacesRequest, r.ListNamespacesResponse
)
CREATE_SCHEDULE = Operation("CreateSchedule", _SCHEDULE + "/create", r.CreateScheduleRequest, r.CreateScheduleResponse)
DESCRIBE_SCHEDULE = Operation(
    "DescribeSchedule", _SCHEDULE + "/describe", r.DescribeScheduleRequest, r.DescribeScheduleResponse
)
UPDATE_SCHEDULE = Operation("UpdateSchedule", _SCHEDULE + "/update", r.UpdateScheduleRequest, r.UpdateScheduleResponse)
PATCH_SCHEDULE = Operation("PatchSchedule", _SCHEDULE + "/patch", r.PatchScheduleRequest, r.PatchScheduleResponse)
DELETE_SCHEDULE = Operation(
    "DeleteSchedule", _SCHEDULE + "/delete", r.DeleteScheduleRequest, r.DeleteScheduleResponse, idempotent=False
)
LIST_SCHEDULE_MATCHING_TIMES = Operation(
    "ListScheduleMatchingTimes",
    _SCHEDULE + "/matching-times",
    r.ListScheduleMatchingTimesRequest,
    r.ListScheduleMatchingTimesResponse,
)
LIST_SCHEDULES = Operation(
    "ListSchedules", _NAMESPACE + "/list-schedules", r.ListSchedulesRequest, r.ListSchedulesResponse
)
COUNT_SCHEDULES = Operation(
    "CountSchedules", _NAMESPACE + "/count-schedules", r.CountSchedulesRequest, r.CountSchedulesResponse
)
GET_SYSTEM_INFO = Operation("GetSystemInfo", "/api/v1/system-info", r.GetSystemInfoRequest, r.GetSystemInfoResponse)

START_BATCH_OPERATION = Operation(
    "StartBatchOperation",
    _NAMESPACE + "/start-batch-operation",
    r.StartBatchOperationRequest,
    r.StartBatchOperationResponse,
)
DESCRIBE_BATCH_OPERATION = Operation(
    "DescribeBatchOperation",
    _NAMESPACE + "/describe-batch-operation",
    r.DescribeBatchOperationRequest,
    r.DescribeBatchOperationResponse,
)
STOP_BATCH_OPERATION = Operation(
    "StopBatchOperation",
    _NAMESPACE + "/stop-batch-operation",
    r.StopBatchOperationRequest,
    r.StopBatchOperationResponse,
)
LIST_BATCH_OPERATIONS = Operation(
    "ListBatchOperations",
    _NAMESPACE + "/list-batch-operations",
    r.ListBatchOperationsRequest,
    r.ListBatchOperationsResponse,
)

START_EXPORT = Operation("StartExport", _NAMESPACE + "/start-export", r.StartExportRequest, r.StartExportResponse)
DESCRIBE_EXPORT = Operation(
    "DescribeExport", _NAMESPACE + "/describe-export", r.DescribeExportRequest, r.DescribeExportResponse
)
STOP_EXPORT = Operation("StopExport", _NAMESPACE + "/stop-export", r.StopExportRequest, r.StopExportResponse)
LIST_EXPORTS = Operation("ListExports", _NAMESPACE + "/list-exports", r.ListExportsRequest, r.ListExportsResponse)

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    START_WORKFLOW,
    SIGNAL_WITH_START_WORKFLOW,
    UPDATE_WITH_START_WORKFLOW,
    SIGNAL_WORKFLOW,
    QUERY_WORKFLOW,
    UPDATE_WORKFLOW,
    POLL_WORKFLOW_UPDATE,
    CANCEL_WORKFLOW,
    TERMINATE_WORKFLOW,
    DELETE_WORKFLOW,
    PAUSE_WORKFLOW,
    UNPAUSE_WORKFLOW,
    RESET_WORKER_AFFINITY,
    UPDATE_WORKFLOW_OPTIONS,
    RESET_WORKFLOW,
    IMPORT_WORKFLOW,
    DESCRIBE_WORKFLOW,
    GET_HISTORY,
    LIST_WORKFLOWS,
    SCAN_WORKFLOWS,
    LIST_ARCHIVED_WORKFLOWS,
    COUNT_WORKFLOWS,
    START_BATCH_OPERATION,
    DESCRIBE_BATCH_OPERATION,
    STOP_BATCH_OPERATION,
    LIST_BATCH_OPERATIONS,
    START_EXPORT,
    DESCRIBE_EXPORT,
    STOP_EXPORT,
    LIST_EXPORTS,
    POLL_WORKFLOW_TASK,
    START_WORKFLOW_TASK,
    RESPOND_WORKFLOW_TASK_COMPLETED,
    RESPOND_WORKFLOW_TASKS_COMPLETED,
    RESPOND_WORKFLOW_TASK_FAILED,
    RESPOND_QUERY_TASK_COMPLETED,
    POLL_ACTIVITY_TASK,
    START_ACTIVITY_TASK,
    RESPOND_ACTIVITY_TASKS,
    RECORD_ACTIVITY_HEARTBEAT,
    RESPOND_ACTIVITY_BY_ID,
    RECORD_ACTIVITY_HEARTBEAT_BY_ID,
    PAUSE_ACTIVITY,
    UNPAUSE_ACTIVITY,
    RESET_ACTIVITY,
    UPDATE_ACTIVITY_OPTIONS,
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
    SHUTDOWN_WORKER,
    DESCRIBE_TASK_QUEUE,
    LIST_WORKERS,
    GET_TASK_SOURCES,
    REGISTER_NAMESPACE,
    DESCRIBE_NAMESPACE,
    UPDATE_NAMESPACE,
    DEPRECATE_NAMESPACE,
    DELETE_NAMESPACE,
    LIST_NAMESPACES,
    CREATE_SCHEDULE,
    DESCRIBE_SCHEDULE,
    UPDATE_SCHEDULE,
    PATCH_SCHEDULE,
    DELETE_SCHEDULE,
    LIST_SCHEDULE_MATCHING_TIMES,
    LIST_SCHEDULES,
    COUNT_SCHEDULES,
    GET_SYSTEM_INFO,
)
