"""Events of child workflows, at their parent."""

from datetime import timedelta

from ._struct import Tagged
from .common import Headers, Memo, Priority, RetryPolicy, WorkflowExecution
from .enums import (
    ParentClosePolicy,
    RetryState,
    StartChildWorkflowExecutionFailedCause,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from .failures import Failure
from .payloads import Payloads


class StartChildWorkflowExecutionInitiated(Tagged, frozen=True, kw_only=True):
    """The run asked for a child. An empty ``namespace`` in these events is the run's own."""

    namespace: str = ""
    workflow_id: str
    workflow_type: str
    task_queue: str
    input: Payloads = ()
    workflow_execution_timeout: timedelta | None = None
    workflow_run_timeout: timedelta | None = None
    workflow_task_timeout: timedelta | None = None
    parent_close_policy: ParentClosePolicy = ParentClosePolicy.TERMINATE
    workflow_task_completed_event_id: int
    workflow_id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE
    workflow_id_conflict_policy: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.FAIL
    """USE_EXISTING attaches to a run that is there and only watches it (CH-18)."""
    retry_policy: RetryPolicy | None = None
    cron_schedule: str = ""
    headers: Headers = {}
    memo: Memo = {}
    search_attributes: Memo = {}
    watch_only: bool = False
    """Nothing is started: the run waits for the end of the workflow that has the id (CH-19)."""
    priority: Priority | None = None
    """As it counts: with what was taken from the parent's."""


class StartChildWorkflowExecutionFailed(Tagged, frozen=True, kw_only=True):
    """There is no child: the start was refused."""

    namespace: str = ""
    workflow_id: str
    workflow_type: str
    cause: StartChildWorkflowExecutionFailedCause
    initiated_event_id: int
    workflow_task_completed_event_id: int


class ChildWorkflowExecutionStarted(Tagged, frozen=True, kw_only=True):
    """``workflow_execution.run_id`` is the first run of the child's chain."""

    namespace: str = ""
    initiated_event_id: int
    workflow_execution: WorkflowExecution
    workflow_type: str
    headers: Headers = {}


class ChildWorkflowExecutionCompleted(Tagged, frozen=True, kw_only=True):
    """How the child's chain ended; ``workflow_execution.run_id`` is the first run of the chain."""

    result: Payloads = ()
    namespace: str = ""
    workflow_execution: WorkflowExecution
    workflow_type: str
    initiated_event_id: int
    started_event_id: int


class ChildWorkflowExecutionFailed(Tagged, frozen=True, kw_only=True):
    failure: Failure
    namespace: str = ""
    workflow_execution: WorkflowExecution
    workflow_type: str
    initiated_event_id: int
    started_event_id: int
    retry_state: RetryState = RetryState.RETRY_POLICY_NOT_SET


class ChildWorkflowExecutionCanceled(Tagged, frozen=True, kw_only=True):
    details: Payloads = ()
    namespace: str = ""
    workflow_execution: WorkflowExecution
    workflow_type: str
    initiated_event_id: int
    started_event_id: int


class ChildWorkflowExecutionTimedOut(Tagged, frozen=True, kw_only=True):
    namespace: str = ""
    workflow_execution: WorkflowExecution
    workflow_type: str
    initiated_event_id: int
    started_event_id: int
    retry_state: RetryState = RetryState.TIMEOUT


class ChildWorkflowExecutionTerminated(Tagged, frozen=True, kw_only=True):
    namespace: str = ""
    workflow_execution: WorkflowExecution
    workflow_type: str
    initiated_event_id: int
    started_event_id: int
