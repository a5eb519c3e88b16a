"""The operations of the API that RPCs stand for: a role may call an RPC if it may call one of its operations over HTTP.

An RPC that is not here may be called by nobody whose credentials are asked for; a test asks for all of them.
"""

_SAME = """
GetSystemInfo RegisterNamespace UpdateNamespace DeprecateNamespace DeleteNamespace
QueryWorkflow RespondQueryTaskCompleted RespondWorkflowTaskCompleted RespondWorkflowTaskFailed ShutdownWorker
DescribeTaskQueue CreateSchedule DescribeSchedule UpdateSchedule PatchSchedule DeleteSchedule ListSchedules
CountSchedules ListScheduleMatchingTimes StartBatchOperation DescribeBatchOperation StopBatchOperation
ListBatchOperations PauseActivity UnpauseActivity ResetActivity UpdateActivityOptions
""".split()

_OTHERS = {
    "GetClusterInfo": "GetSystemInfo",
    "GetSearchAttributes": "GetSystemInfo",
    "AddSearchAttributes": "UpdateNamespace",
    "RemoveSearchAttributes": "UpdateNamespace",
    "ListSearchAttributes": "DescribeNamespace",
    # It shows those alone that the caller reaches; their web interface begins with it.
    "ListNamespaces": "ListNamespaces DescribeNamespace",
    # Workers of Temporal's SDKs ask for their namespace when they start.
    "DescribeNamespace": "DescribeNamespace PollWorkflowTask PollActivityTask",
    "StartWorkflowExecution": "StartWorkflow",
    "SignalWithStartWorkflowExecution": "SignalWithStartWorkflow",
    "ExecuteMultiOperation": "UpdateWithStartWorkflow",
    "SignalWorkflowExecution": "SignalWorkflow",
    "UpdateWorkflowExecution": "UpdateWorkflow",
    "PollWorkflowExecutionUpdate": "PollWorkflowUpdate",
    "RequestCancelWorkflowExecution": "CancelWorkflow",
    "TerminateWorkflowExecution": "TerminateWorkflow",
    "DeleteWorkflowExecution": "DeleteWorkflow",
    "ResetWorkflowExecution": "ResetWorkflow",
    "PauseWorkflowExecution": "PauseWorkflow",
    "UnpauseWorkflowExecution": "UnpauseWorkflow",
    # Go's workers say so when a run falls out of their cache.
    "ResetStickyTaskQueue": "ResetWorkerAffinity PollWorkflowTask",
    "UpdateWorkflowExecutionOptions": "UpdateWorkflowOptions",
    "DescribeWorkflowExecution": "DescribeWorkflow",
    "ListWorkflowExecutions": "ListWorkflows",
    "ScanWorkflowExecutions": "ScanWorkflows",
    "ListArchivedWorkflowExecutions": "ListArchivedWorkflows",
    "CountWorkflowExecutions": "CountWorkflows",
    # Their workers also read themselves what a task did not bring, from the beginning of the run.
    "GetWorkflowExecutionHistory": "GetHistory PollWorkflowTask",
    "GetWorkflowExecutionHistoryReverse": "GetHistory",
    "PollWorkflowTaskQueue": "PollWorkflowTask",
    "PollActivityTaskQueue": "PollActivityTask",
    "RespondActivityTaskCompleted": "RespondActivityTasks",
    "RespondActivityTaskFailed": "RespondActivityTasks",
    "RespondActivityTaskCanceled": "RespondActivityTasks",
    "RespondActivityTaskCompletedById": "RespondActivityById CompleteStandaloneActivity",
    "RespondActivityTaskFailedById": "RespondActivityById CompleteStandaloneActivity",
    "RespondActivityTaskCanceledById": "RespondActivityById CompleteStandaloneActivity",
    "StartActivityExecution": "StartActivity",
    "PollActivityExecution": "PollActivity",
    "DescribeActivityExecution": "DescribeActivity",
    "RequestCancelActivityExecution": "CancelActivity",
    "TerminateActivityExecution": "TerminateActivity",
    "DeleteActivityExecution": "DeleteActivity",
    "PauseActivityExecution": "PauseActivity PauseStandaloneActivity",
    "UnpauseActivityExecution": "UnpauseActivity UnpauseStandaloneActivity",
    "ResetActivityExecution": "ResetActivity ResetStandaloneActivity",
    "UpdateActivityExecutionOptions": "UpdateActivityOptions UpdateStandaloneActivityOptions",
    "ListActivityExecutions": "ListActivities",
    "CountActivityExecutions": "CountActivities",
    "RecordActivityTaskHeartbeat": "RecordActivityHeartbeat",
    "RecordActivityTaskHeartbeatById": "RecordActivityHeartbeatById RecordStandaloneActivityHeartbeat",
}

NEEDS: dict[str, frozenset[str]] = {name: frozenset({name}) for name in _SAME}
NEEDS |= {name: frozenset(operations.split()) for name, operations in _OTHERS.items()}

TOLD_APART = frozenset(
    """
    RespondActivityById CompleteStandaloneActivity RecordActivityHeartbeatById RecordStandaloneActivityHeartbeat
    PauseActivity PauseStandaloneActivity UnpauseActivity UnpauseStandaloneActivity ResetActivity
    ResetStandaloneActivity UpdateActivityOptions UpdateStandaloneActivityOptions
    """.split()
)
"""Of an RPC that stands for two of these the request decides which one it is: a role must have that one."""
