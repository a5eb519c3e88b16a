"""What a call is to the limits of its namespace: how important (MT-06), whether it starts, lists or waits. Pure."""

from typing import Any

from stepwell.api import requests as r
from stepwell.api.operations import Operation

PRIORITIES = 6
LOOK_UPS, WORK, STEERING, ASKING, POLLS, WAITING = range(PRIORITIES)

STARTS = frozenset({"StartWorkflow", "SignalWithStartWorkflow", "UpdateWithStartWorkflow", "StartActivity"})
FOR_STARTS = frozenset({"CreateSchedule", "ImportWorkflow"})
"""Start nothing yet, and are of no use where nothing is started."""
NAMESPACE_CHANGES = frozenset({"RegisterNamespace", "UpdateNamespace", "DeprecateNamespace", "DeleteNamespace"})
OF_THE_INSTALLATION = NAMESPACE_CHANGES | {"DescribeNamespace", "ListNamespaces", "GetSystemInfo"}
"""Answered also for a namespace that is not registered."""

_VISIBILITY = ("List", "Count", "Scan")
_BY_NAME = {
    "DescribeNamespace": LOOK_UPS,
    "ListNamespaces": LOOK_UPS,
    "GetSystemInfo": LOOK_UPS,
    **dict.fromkeys(STARTS, WORK),
    "SignalWorkflow": WORK,
    "UpdateWorkflow": WORK,
    "CreateSchedule": WORK,
    "RecordActivityHeartbeat": WORK,
    "RecordActivityHeartbeatById": WORK,
    "RecordStandaloneActivityHeartbeat": WORK,
    "RespondWorkflowTaskCompleted": WORK,
    "RespondWorkflowTasksCompleted": WORK,
    "RespondWorkflowTaskFailed": ASKING,
    "QueryWorkflow": ASKING,
    "RespondQueryTaskCompleted": ASKING,
    "PollWorkflowTask": POLLS,
    "StartWorkflowTask": POLLS,
    "PollActivityTask": POLLS,
    "StartActivityTask": POLLS,
    "PollWorkflowUpdate": POLLS,
    "PollActivity": WAITING,
    "GetTaskSources": POLLS,
    "ShutdownWorker": POLLS,
}


def is_visibility(name: str) -> bool:
    """Lists and counts have a limit of their own."""
    return name.startswith(_VISIBILITY) and name != "ListNamespaces"


def priority_of(operation: Operation[Any, Any], request: Any) -> int:
    """0 first. What is not named steers (changes of what runs, and reading a history, which replay needs)."""
    name = operation.name
    if name == "GetHistory":
        return WAITING if request.wait_new_event else STEERING
    if name == "RespondActivityTasks":
        return WORK if any(map(_is_progress, request.outcomes)) else ASKING
    if name in ("RespondActivityById", "CompleteStandaloneActivity"):
        return WORK if _is_progress(request.outcome) else ASKING
    found = _BY_NAME.get(name)
    if found is None:
        found = ASKING if name.startswith("Describe") else STEERING
    return found


def cost_of(request: Any) -> int:
    """A call that carries several answers counts as so many."""
    if isinstance(request, r.RespondWorkflowTasksCompletedRequest):
        return max(1, len(request.completions))
    if isinstance(request, r.RespondActivityTasksRequest):
        return max(1, len(request.outcomes))
    return 1


def dispatched_by(response: Any) -> int:
    """How many tasks an answer hands to a worker."""
    if isinstance(response, r.RespondWorkflowTasksCompletedResponse):
        return sum(map(_handed_over, (each.response for each in response.answers)))
    return _handed_over(response)


def _handed_over(response: Any) -> int:
    if isinstance(response, r.PollWorkflowTaskResponse | r.PollActivityTaskResponse):
        return len(response.tasks)
    if isinstance(response, r.RespondWorkflowTaskCompletedResponse):
        return len(response.leases)
    if isinstance(response, r.StartWorkflowResponse):
        return 0 if response.eager_workflow_task is None else 1
    if isinstance(response, r.StartWorkflowTaskResponse | r.StartActivityTaskResponse):
        return 0 if response.task is None else 1
    return 0


def _is_progress(outcome: r.ActivityOutcome) -> bool:
    return isinstance(outcome, r.ActivityCompleted | r.ActivityPending)
