"""Events of a workflow execution itself: its start, its ends, messages to it, and what it says of itself."""

from datetime import datetime, timedelta

from ._struct import Tagged
from .callbacks import Callback
from .common import Headers, Memo, Priority, RetryPolicy, WorkflowExecution
from .enums import ContinueAsNewInitiator, RetryState
from .failures import Failure
from .payloads import Payloads


class WorkflowExecutionStarted(Tagged, frozen=True, kw_only=True):
    workflow_type: str
    task_queue: str
    input: Payloads = ()
    workflow_execution_timeout: timedelta | None = None
    workflow_run_timeout: timedelta | None = None
    workflow_task_timeout: timedelta
    original_execution_run_id: str
    """The run's own id; seeds the workflow's randomness (PM-10)."""
    first_execution_run_id: str
    identity: str = ""
    retry_policy: RetryPolicy | None = None
    attempt: int = 1
    workflow_execution_expiration_time: datetime | None = None
    memo: Memo = {}
    search_attributes: Memo = {}
    headers: Headers = {}
    request_id: str = ""
    workflow_id: str
    parent_workflow_namespace: str = ""
    parent_workflow_execution: WorkflowExecution | None = None
    """The run that started this one as its child; None for a run that has no parent."""
    parent_initiated_event_id: int = 0
    parent_original_execution_run_id: str = ""
    """``original_execution_run_id`` of that parent, which a reset of the parent keeps (CH-17); empty: its run id."""
    root_workflow_execution: WorkflowExecution | None = None
    """The top of the tree of parents; None when it is this workflow."""
    continued_execution_run_id: str = ""
    """The run of this workflow id that went before: continued as new, failed and retried, or a turn of its cron."""
    initiator: ContinueAsNewInitiator | None = None
    continued_failure: Failure | None = None
    """How the run before failed, for a retry or a turn of a cron (PM-29)."""
    last_completion_result: Payloads = ()
    """Result of the newest run before that completed, for a cron (PM-29)."""
    cron_schedule: str = ""
    first_workflow_task_backoff: timedelta | None = None
    """Time from the start to the first workflow task: a retry's or cron's backoff, or the start delay that was asked
    for (then there is no ``initiator``)."""
    eager_execution_accepted: bool = False
    priority: Priority | None = None
    completion_callbacks: tuple[Callback, ...] = ()
    """Those that were attached to the chain so far (LC-10)."""
    principal: str = ""
    """Whose verified credentials asked for it (MT-10), such as an ARN or the id of a key; empty: nobody's."""


class WorkflowExecutionCompleted(Tagged, frozen=True, kw_only=True):
    result: Payloads = ()
    workflow_task_completed_event_id: int
    new_execution_run_id: str = ""
    """The run that goes on from here: the next turn of a cron, or the next attempt."""


class WorkflowExecutionFailed(Tagged, frozen=True, kw_only=True):
    failure: Failure
    retry_state: RetryState = RetryState.RETRY_POLICY_NOT_SET
    workflow_task_completed_event_id: int
    new_execution_run_id: str = ""
    """The run that goes on from here: the next turn of a cron, or the next attempt."""


class WorkflowExecutionTimedOut(Tagged, frozen=True, kw_only=True):
    retry_state: RetryState = RetryState.TIMEOUT
    new_execution_run_id: str = ""
    """The run that goes on from here: the next turn of a cron, or the next attempt."""


class WorkflowExecutionCanceled(Tagged, frozen=True, kw_only=True):
    workflow_task_completed_event_id: int
    details: Payloads = ()


class WorkflowExecutionTerminated(Tagged, frozen=True, kw_only=True):
    reason: str = ""
    details: Payloads = ()
    identity: str = ""
    new_execution_run_id: str = ""
    """The run that goes on from here, when a reset ended this one."""
    principal: str = ""


class WorkflowExecutionContinuedAsNew(Tagged, frozen=True, kw_only=True):
    """The run closed and ``new_execution_run_id`` goes on with the same workflow id. What the next run begins with is
    in its own WorkflowExecutionStarted; here is what was asked for."""

    new_execution_run_id: str
    workflow_type: str
    task_queue: str
    input: Payloads = ()
    workflow_run_timeout: timedelta | None = None
    workflow_task_timeout: timedelta | None = None
    workflow_task_completed_event_id: int
    backoff_start_interval: timedelta | None = None
    initiator: ContinueAsNewInitiator = ContinueAsNewInitiator.WORKFLOW
    failure: Failure | None = None
    last_completion_result: Payloads = ()
    headers: Headers = {}
    memo: Memo = {}
    search_attributes: Memo = {}


class WorkflowExecutionCancelRequested(Tagged, frozen=True, kw_only=True):
    cause: str = ""
    """The caller's reason (CH-10)."""
    identity: str = ""
    request_id: str = ""
    external_initiated_event_id: int = 0
    """Of the event at the workflow that asks, when it was a workflow."""
    external_workflow_execution: WorkflowExecution | None = None
    principal: str = ""


class WorkflowExecutionSignaled(Tagged, frozen=True, kw_only=True):
    signal_name: str
    input: Payloads = ()
    identity: str = ""
    headers: Headers = {}
    request_id: str = ""
    external_workflow_execution: WorkflowExecution | None = None
    """The workflow that sent it; None when a client did."""
    principal: str = ""


class WorkflowExecutionOptionsUpdated(Tagged, frozen=True, kw_only=True):
    """What a run is like has changed from outside; workflow code is not woken for it, and sees nothing of it."""

    attached_request_id: str = ""
    """Of a start that met the open run: a repeat of it is answered with this run (LC-04)."""
    identity: str = ""
    priority: Priority | None = None
    """From here on, in full; None: as it was."""
    reset_run_id: str = ""
    """The run that a reset made, when the change came with that reset (LC-18)."""
    attached_completion_callbacks: tuple[Callback, ...] = ()
    principal: str = ""


class WorkflowExecutionPaused(Tagged, frozen=True, kw_only=True):
    """From here on nothing of the run is given to workers (LC-11)."""

    identity: str = ""
    reason: str = ""
    request_id: str = ""
    principal: str = ""


class WorkflowExecutionUnpaused(Tagged, frozen=True, kw_only=True):
    """The run goes on with all that has come in meanwhile."""

    identity: str = ""
    reason: str = ""
    request_id: str = ""
    principal: str = ""


class UpsertWorkflowSearchAttributes(Tagged, frozen=True, kw_only=True):
    """Values by name over those that are there; a null or an empty list takes a name away."""

    workflow_task_completed_event_id: int
    search_attributes: Memo = {}


class WorkflowPropertiesModified(Tagged, frozen=True, kw_only=True):
    """Memo values by name over those that are there; a null takes a name away."""

    workflow_task_completed_event_id: int
    upserted_memo: Memo = {}
