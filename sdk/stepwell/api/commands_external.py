"""Commands about other workflows: children, signals and cancellation requests."""

from datetime import timedelta

from ._struct import Tagged
from .common import Headers, Memo, Priority, RetryPolicy, UserMetadata, WorkflowExecution
from .enums import ParentClosePolicy, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from .payloads import Payloads


class StartChildWorkflowExecution(Tagged, frozen=True, kw_only=True):
    """Makes ``StartChildWorkflowExecutionInitiated``. An empty ``namespace`` or ``task_queue`` is the run's own."""

    namespace: str = ""
    workflow_id: str
    workflow_type: str
    task_queue: str
    input: Payloads = ()
    workflow_execution_timeout: timedelta | None = None
    workflow_run_timeout: timedelta | None = None
    workflow_task_timeout: timedelta | None = None
    parent_close_policy: ParentClosePolicy = ParentClosePolicy.TERMINATE
    workflow_id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE
    workflow_id_conflict_policy: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.FAIL
    retry_policy: RetryPolicy | None = None
    cron_schedule: str = ""
    headers: Headers = {}
    memo: Memo = {}
    search_attributes: Memo = {}
    user_metadata: UserMetadata | None = None
    watch_only: bool = False
    """Starts nothing: waits for the end of the workflow that has the id, open or closed (CH-19). What it would be
    started with is left out, its type too."""
    priority: Priority | None = None
    """What it leaves open is the parent's."""


class SignalExternalWorkflowExecution(Tagged, frozen=True, kw_only=True):
    """Makes ``SignalExternalWorkflowExecutionInitiated``."""

    namespace: str = ""
    execution: WorkflowExecution
    signal_name: str
    input: Payloads = ()
    child_workflow_only: bool = False
    headers: Headers = {}


class RequestCancelExternalWorkflowExecution(Tagged, frozen=True, kw_only=True):
    """Makes ``RequestCancelExternalWorkflowExecutionInitiated``."""

    namespace: str = ""
    workflow_id: str
    run_id: str = ""
    child_workflow_only: bool = False
    reason: str = ""
