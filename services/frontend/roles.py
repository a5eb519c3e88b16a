"""Roles: who may call which operation. The policies of a deployed installation are made of this table (infra/cdk).

A new operation belongs into one of the sets; a test asks for it.
"""

from typing import Literal

Role = Literal["starter", "sender", "reader", "operator", "activity-operator", "worker", "administrator"]

_STARTS = {"StartWorkflow", "SignalWithStartWorkflow", "UpdateWithStartWorkflow"}
_SENDS = {"SignalWorkflow", "QueryWorkflow", "UpdateWorkflow", "PollWorkflowUpdate"}
_SENDS |= {"RespondActivityById", "RecordActivityHeartbeatById"}
_READS = {"DescribeWorkflow", "GetHistory", "ListWorkflows", "QueryWorkflow", "PollWorkflowUpdate", "DescribeTaskQueue"}
_READS |= {"CountWorkflows", "ScanWorkflows", "DescribeNamespace", "DescribeBatchOperation", "ListBatchOperations"}
_OPERATES = {"CancelWorkflow", "TerminateWorkflow", "ResetWorkflow", "PauseWorkflow", "UnpauseWorkflow"}
_OPERATES |= {
    "ResetWorkerAffinity",
    "DeleteWorkflow",
    "UpdateWorkflowOptions",
    "StartBatchOperation",
    "StopBatchOperation",
}
_OPERATES |= {"PauseActivity", "UnpauseActivity", "ResetActivity", "UpdateActivityOptions"}
_READS |= {"DescribeSchedule", "ListSchedules", "CountSchedules", "ListScheduleMatchingTimes"}
_OPERATES |= {"CreateSchedule", "UpdateSchedule", "PatchSchedule", "DeleteSchedule"}
_READS |= {"DescribeExport", "ListExports", "ListWorkers", "ListArchivedWorkflows"}
_STARTS |= {"StartActivity"}
_READS |= {"DescribeActivity", "PollActivity", "ListActivities", "CountActivities"}
_FINISHES_ALONE = {"CompleteStandaloneActivity", "RecordStandaloneActivityHeartbeat"}
_OPERATES_ALONE = {"PauseStandaloneActivity", "UnpauseStandaloneActivity", "ResetStandaloneActivity"}
_OPERATES_ALONE |= {"UpdateStandaloneActivityOptions", "CancelActivity", "TerminateActivity", "DeleteActivity"}
"""Of activities without a workflow, in a role of their own: the policy of operators has no room for more paths."""

_OPERATES |= {"StartExport", "StopExport"}
_WORKS = {"PollWorkflowTask", "PollActivityTask", "ShutdownWorker", "RecordActivityHeartbeat", "RespondActivityTasks"}
_WORKS |= {"RespondWorkflowTaskCompleted", "RespondWorkflowTasksCompleted", "RespondWorkflowTaskFailed"}
_WORKS |= {"RespondQueryTaskCompleted", "StartWorkflowTask", "StartActivityTask", "GetTaskSources"}
_WORKS |= {"GetHistory"}  # what came before, of a run that the worker has not got in its cache
_ADMINISTERS = {"RegisterNamespace", "UpdateNamespace", "DeprecateNamespace", "ListNamespaces", "DescribeNamespace"}
_ADMINISTERS |= {"DeleteNamespace", "ImportWorkflow"}
FOR_ALL = {"GetSystemInfo"}

OPERATIONS: dict[Role, set[str]] = {
    "starter": _STARTS | FOR_ALL,
    "sender": _SENDS | _FINISHES_ALONE | FOR_ALL,
    "reader": _READS | FOR_ALL,
    "operator": _OPERATES | _SENDS | _READS | FOR_ALL,
    "activity-operator": _OPERATES_ALONE | _FINISHES_ALONE | FOR_ALL,
    "worker": _WORKS | FOR_ALL,
    "administrator": _ADMINISTERS | FOR_ALL,
}
"""What each role may call, by operation. An application that starts workflows and awaits them is starter and reader;
who operates stand-alone activities as well is operator and activity-operator."""
