"""Differences that are known and are no faults: patterns of paths (``compare.Difference.where``), each with its reason;
behind the path a pattern can name the values, theirs and ours.

The page docs/temporal-compatibility.md tells them too.
"""

_VERSIONING = "worker versioning is not part of the gateway, so builds of workers are not written"
_CHAIN = (
    "a run that continues as new passes on its memo and its search attributes, as the SDK's documentation says, its "
    "summary, and the identity of the worker that asked for it; Temporal's server passes on what the command repeats"
)
_CLOSED = "a run that is closed has nothing pending"

EXPLANATIONS: dict[str, str] = {
    "*/WorkflowTaskStarted */workerVersion": _VERSIONING,
    "*/ActivityTaskStarted */workerVersion": _VERSIONING,
    "*/ActivityTaskScheduled */useWorkflowBuildId": _VERSIONING,
    "*/StartChildWorkflowExecutionInitiated */inheritBuildId": _VERSIONING,
    "*/WorkflowExecutionContinuedAsNew */inheritBuildId": _VERSIONING,
    "*/run [2-9]/WorkflowExecutionStarted 1/prevAutoResetPoints: * | (nothing)": _VERSIONING,
    "*/WorkflowExecutionContinuedAsNew 1/memo: (nothing) | *": _CHAIN,
    "*/WorkflowExecutionContinuedAsNew 1/searchAttributes: (nothing) | *": _CHAIN,
    "*/run [2-9]/WorkflowExecutionStarted 1/memo: (nothing) | *": _CHAIN,
    "*/run [2-9]/WorkflowExecutionStarted 1/searchAttributes: (nothing) | *": _CHAIN,
    "*/run [2-9]/WorkflowExecutionStarted 1/userMetadata: (nothing) | *": _CHAIN,
    "*/run [2-9]/WorkflowExecutionStarted 1/identity: (nothing) | *": _CHAIN,
    "described/*/[1-9]/memo: (nothing) | *": _CHAIN,
    "described/*/[1-9]/searchAttributes*: (nothing) | *": _CHAIN,
    "described/*/[1-9]/config/userMetadata: (nothing) | *": _CHAIN,
    "described/*/pendingActivities: * | (nothing)": _CLOSED,
    "described/*/pendingChildren: * | (nothing)": _CLOSED,
    '*/run [2-9]/WorkflowExecutionStarted 1/firstWorkflowTaskBackoff: "0.*s" | (nothing)': (
        "a run that continues as new within its first second is not held back until that is over"
    ),
    '*/WorkflowExecutionCancelRequested */cause: (nothing) | "by parent close policy"': (
        "a cancel that the parent's close asked for says so"
    ),
    "*/WorkflowTaskScheduled */attempt: 1 | 2": (
        "the retry of a workflow task has its number in the history; Temporal's server writes 1 at the first one"
    ),
    "*/eventGroupMarkers: * | (nothing)": (
        "marks by which Temporal's UI puts the events of an update together are not kept"
    ),
}

OPEN: dict[str, str] = {}
"""Differences that are to be mended, or explained above; who does takes the line away. The test of recorded programs
fails for any other."""
