"""What a start does when the id is known already. Theirs has one more, which is a conflict policy by now."""

from stepwell.api.enums import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from stepwell.api.errors import InvalidArgument
from temporalio.api.enums.v1 import WorkflowIdConflictPolicy, WorkflowIdReusePolicy

from .names import member

_TERMINATE_IF_RUNNING = WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING


def reuse_policy(value: int) -> WorkflowIDReusePolicy:
    if value == _TERMINATE_IF_RUNNING:
        return WorkflowIDReusePolicy.ALLOW_DUPLICATE
    return member(
        value,
        WorkflowIDReusePolicy,
        "WORKFLOW_ID_REUSE_POLICY_",
        WorkflowIdReusePolicy,
        field="workflow_id_reuse_policy",
        unspecified=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
    )


def conflict_policy(
    value: int, reuse: int, unspecified: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.FAIL
) -> WorkflowIDConflictPolicy:
    if reuse == _TERMINATE_IF_RUNNING:
        if value:
            raise InvalidArgument(
                "workflow_id_reuse_policy TERMINATE_IF_RUNNING is a conflict policy already; give one of the two",
                field="workflow_id_conflict_policy",
            )
        return WorkflowIDConflictPolicy.TERMINATE_EXISTING
    return member(
        value,
        WorkflowIDConflictPolicy,
        "WORKFLOW_ID_CONFLICT_POLICY_",
        WorkflowIdConflictPolicy,
        field="workflow_id_conflict_policy",
        unspecified=unspecified,
    )
