"""Differences that are known and are no faults: patterns of paths (``compare.Difference.where``), each with its reason.

The page docs/temporal-compatibility.md tells them too.
"""

_VERSIONING = "worker versioning is not part of the gateway, so builds of workers are not written"

EXPLANATIONS: dict[str, str] = {
    "*/WorkflowTaskStarted */workerVersion": _VERSIONING,
    "*/ActivityTaskStarted */workerVersion": _VERSIONING,
    "*/ActivityTaskScheduled */useWorkflowBuildId": _VERSIONING,
    "*/StartChildWorkflowExecutionInitiated */inheritBuildId": _VERSIONING,
    "*/WorkflowExecutionContinuedAsNew */inheritBuildId": _VERSIONING,
}
