"""The operations of the API in one table: what the HTTP client calls, the server serves and the OpenAPI document lists.

All are POST with the request record as JSON body. The path repeats namespace, workflow type and workflow id of the
body, so that access can be granted by path; the server refuses a body that differs from its path.
"""

from typing import Any

from . import operations_standalone as standalone
from . import requests as r
from .operation import Operation as Operation
from .operations_standalone import CANCEL_ACTIVITY as CANCEL_ACTIVITY
from .operations_standalone import COMPLETE_STANDALONE_ACTIVITY as COMPLETE_STANDALONE_ACTIVITY
from .operations_standalone import COUNT_ACTIVITIES as COUNT_ACTIVITIES
from .operations_standalone import DELETE_ACTIVITY as DELETE_ACTIVITY
from .operations_standalone import DESCRIBE_ACTIVITY as DESCRIBE_ACTIVITY
from .operations_standalone import LIST_ACTIVITIES as LIST_ACTIVITIES
from .operations_standalone import PAUSE_STANDALONE_ACTIVITY as PAUSE_STANDALONE_ACTIVITY
from .operations_standalone import POLL_ACTIVITY as POLL_ACTIVITY
from .operations_standalone import RECORD_STANDALONE_ACTIVITY_HEARTBEAT as RECORD_STANDALONE_ACTIVITY_HEARTBEAT
from .operations_standalone import RESET_STANDALONE_ACTIVITY as RESET_STANDALONE_ACTIVITY
from .operations_standalone import START_ACTIVITY as START_ACTIVITY
from .operations_standalone import TERMINATE_ACTIVITY as TERMINATE_ACTIVITY
from .operations_standalone import UNPAUSE_STANDALONE_ACTIVITY as UNPAUSE_STANDALONE_ACTIVITY
from .operations_standalone import UPDATE_STANDALONE_ACTIVITY_OPTIONS as UPDATE_STANDALONE_ACTIVITY_OPTIONS

_NAMESPACE = "/api/v1/namespaces/{namespace}"
_WORKFLOW = _NAMESPACE + "/workflows/{workflow_id}"
_QUEUE = _NAMESPACE + "/task-queues/{task_queue}"
_SCHEDULE = _NAMESPACE + "/schedules/{schedule_id}"


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
UPDATE_SCHEDULE = Operation(  # does not end as an update of a workflow does, see operations_standalone
    "UpdateSchedule", _SCHEDULE + "/update-schedule", r.UpdateScheduleRequest, r.UpdateScheduleResponse
)
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
    *standalone.OPERATIONS,
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
