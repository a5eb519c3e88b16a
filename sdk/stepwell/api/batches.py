"""Batch operations: one thing done to many workflows, in the background (LC-43, LC-44)."""

from datetime import datetime, timedelta

from ._struct import Record, Tagged
from .common import Headers, WorkflowExecution
from .enums import BatchOperationState, BatchOperationType, ResetReapplyExcludeType, ResetType
from .payloads import Payloads
from .requests_activity_admin import ActivityOptionsChange
from .requests_workflow import PostResetOperation, WorkflowExecutionOptions


class BatchTerminate(Tagged, frozen=True, kw_only=True):
    """Of a filter: those that are open, paused ones too. One that has closed meanwhile counts as done."""

    details: Payloads = ()


class BatchCancel(Tagged, frozen=True, kw_only=True):
    """As BatchTerminate."""


class BatchSignal(Tagged, frozen=True, kw_only=True):
    """Once for each run. Of a filter: those that are open."""

    signal_name: str
    input: Payloads = ()
    headers: Headers = {}


class BatchDelete(Tagged, frozen=True, kw_only=True):
    """Open or closed; an open one is terminated first."""


class BatchReset(Tagged, frozen=True, kw_only=True):
    """Open or closed, as in ResetWorkflow. Runs that the batch makes are not reset themselves."""

    reset_type: ResetType = ResetType.LAST_WORKFLOW_TASK
    build_id: str = ""
    current_run_only: bool = False
    reset_reapply_exclude_types: tuple[ResetReapplyExcludeType, ...] = ()
    post_reset_operations: tuple[PostResetOperation, ...] = ()


class BatchUpdateOptions(Tagged, frozen=True, kw_only=True):
    """As in UpdateWorkflowOptions. Of a filter: those that are open."""

    workflow_execution_options: WorkflowExecutionOptions = WorkflowExecutionOptions()
    update_mask: str = ""


class BatchUnpause(Tagged, frozen=True, kw_only=True):
    """Of a filter: workflows that are paused."""


class BatchUnpauseActivities(Tagged, frozen=True, kw_only=True):
    """All pending activities of a type. Of a filter: in workflows that are open."""

    activity_type: str
    reset_attempts: bool = False
    reset_heartbeat: bool = False
    jitter: timedelta | None = None


class BatchResetActivities(Tagged, frozen=True, kw_only=True):
    """As BatchUnpauseActivities."""

    activity_type: str
    keep_paused: bool = False
    reset_heartbeat: bool = False
    restore_original_options: bool = False
    jitter: timedelta | None = None


class BatchUpdateActivityOptions(Tagged, frozen=True, kw_only=True):
    """As BatchUnpauseActivities."""

    activity_type: str
    options: ActivityOptionsChange


class BatchTerminateActivities(Tagged, frozen=True, kw_only=True):
    """Of stand-alone activities, as the next two: their ids and runs stand where those of workflows do, and a filter is
    one of activities. Of a filter: those that run. One that has ended meanwhile counts as done."""


class BatchCancelActivities(Tagged, frozen=True, kw_only=True):
    """As BatchTerminateActivities."""


class BatchDeleteActivities(Tagged, frozen=True, kw_only=True):
    """Whether they run or have ended; one that runs is terminated first."""


BatchOperation = (
    BatchTerminate
    | BatchCancel
    | BatchSignal
    | BatchDelete
    | BatchReset
    | BatchUpdateOptions
    | BatchUnpause
    | BatchUnpauseActivities
    | BatchResetActivities
    | BatchUpdateActivityOptions
    | BatchTerminateActivities
    | BatchCancelActivities
    | BatchDeleteActivities
)


class BatchFailure(Record, frozen=True, kw_only=True):
    """Why it was not done to a workflow."""

    execution: WorkflowExecution
    code: str
    message: str = ""


class BatchOperationInfo(Record, frozen=True, kw_only=True):
    job_id: str
    operation_type: BatchOperationType
    state: BatchOperationState
    start_time: datetime
    close_time: datetime | None = None
    total_operation_count: int = 0
    """Of a filter: those that were found so far."""
    complete_operation_count: int = 0
    failure_operation_count: int = 0
    all_found: bool = False
    """There will be no more than ``total_operation_count``."""
