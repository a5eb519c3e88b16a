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

_CHAIN = "a continue-as-new carries over what Temporal's server does not: memo, search attributes, identity, summary"

OPEN: dict[str, str] = {
    "*/WorkflowTaskStarted */identity": "the worker's identity is missing",
    "*/WorkflowExecutionCancelRequested */identity": "the server's own identity is missing",
    "*/WorkflowExecutionCancelRequested */cause": "a cancel by the parent's close says so, and Temporal's does not",
    "*/WorkflowExecutionSignaled */identity": "the server's own identity is missing",
    "*/WorkflowExecutionTerminated */identity": "the server's own identity is missing",
    "*/WorkflowExecutionUpdateCompleted */meta/identity": "who sent an update is not told when it has completed",
    "*/StartChildWorkflowExecutionInitiated */workflowTaskTimeout": "the default timeout of tasks is not written out",
    "*/eventGroupMarkers": "markers that group the events of an update are not kept",
    "*/WorkflowTaskScheduled */attempt": "the first retry of a task that failed is numbered as the second attempt",
    "*/searchAttributes/indexedFields/*/type": "an unset search attribute has no type",
    "*/prevAutoResetPoints": "there are no automatic reset points",
    "*/WorkflowExecutionContinuedAsNew */memo": _CHAIN,
    "*/WorkflowExecutionContinuedAsNew */searchAttributes": _CHAIN,
    "*/run [2-9]/WorkflowExecutionStarted */*": _CHAIN,
    "described/*/[1-9]/memo": _CHAIN,
    "described/*/[1-9]/searchAttributes*": _CHAIN,
    "described/*/[1-9]/config/userMetadata": _CHAIN,
    "described/*/pendingActivities": "a closed run has nothing pending here",
    "described/*/pendingChildren": "a closed run has nothing pending here",
}
"""Differences that are to be mended, or explained above; who does takes the line away. The test of recorded programs
fails for any other."""
