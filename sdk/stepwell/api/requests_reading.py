"""Read what is known of workflows: describe, history, list."""

from datetime import datetime, timedelta

from ._struct import Record
from .callbacks import CallbackInfo
from .common import Memo, RetryPolicy, UserMetadata, WorkflowExecution
from .enums import (
    ParentClosePolicy,
    PendingActivityState,
    WorkflowExecutionStatus,
    WorkflowTaskFailedCause,
    WorkflowUpdateStage,
)
from .events import HistoryEvent
from .failures import Failure
from .payloads import Payloads
from .requests_system import PollerInfo


class DescribeWorkflowRequest(Record, frozen=True, kw_only=True):
    namespace: str = "default"
    execution: WorkflowExecution


class WorkflowExecutionInfo(Record, frozen=True, kw_only=True):
    execution: WorkflowExecution
    workflow_type: str
    task_queue: str
    status: WorkflowExecutionStatus
    start_time: datetime
    close_time: datetime | None = None
    history_length: int = 0
    history_size_bytes: int = 0
    first_run_id: str = ""
    memo: Memo = {}
    search_attributes: Memo = {}
    parent_namespace: str = ""
    parent_execution: WorkflowExecution | None = None
    """The run that started this one as its child. Lists do not show it, nor ``root_execution``."""
    root_execution: WorkflowExecution | None = None
    """The top of the tree of parents; None when it is this workflow."""


class PendingActivityInfo(Record, frozen=True, kw_only=True):
    """AC-17."""

    activity_id: str
    activity_type: str
    scheduled_event_id: int
    state: PendingActivityState
    attempt: int
    maximum_attempts: int = 0
    scheduled_time: datetime
    last_started_time: datetime | None = None
    last_heartbeat_time: datetime | None = None
    heartbeat_details: Payloads = ()
    next_attempt_schedule_time: datetime | None = None
    expiration_time: datetime | None = None
    last_failure: Failure | None = None
    last_worker_identity: str = ""
    paused_time: datetime | None = None
    paused_by: str = ""
    pause_reason: str = ""
    task_queue: str = ""
    """From here on: the options that hold now."""
    schedule_to_close_timeout: timedelta | None = None
    schedule_to_start_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None
    heartbeat_timeout: timedelta | None = None
    retry_policy: RetryPolicy | None = None


class PendingTimerInfo(Record, frozen=True, kw_only=True):
    timer_id: str
    started_event_id: int
    fire_time: datetime


class PendingChildInfo(Record, frozen=True, kw_only=True):
    """A child without an end. ``run_id`` is the first of its chain, empty until its start is confirmed."""

    workflow_id: str
    run_id: str = ""
    workflow_type: str
    initiated_event_id: int
    parent_close_policy: ParentClosePolicy
    watched: bool = False
    """It is only waited for: neither this run's end nor a cancel reaches it."""


class PendingExternalInfo(Record, frozen=True, kw_only=True):
    """A signal or a request to cancel for another workflow that is not known to have been recorded there."""

    workflow_id: str
    run_id: str = ""
    initiated_event_id: int
    attempt: int
    next_attempt_time: datetime | None = None


class PendingWorkflowTaskInfo(Record, frozen=True, kw_only=True):
    """The outstanding workflow task; ``attempt`` above 1 means that it fails, ``last_failure`` says why."""

    scheduled_time: datetime
    attempt: int
    next_attempt_time: datetime | None = None
    last_failure: Failure | None = None
    last_cause: WorkflowTaskFailedCause | None = None


class PendingUpdateInfo(Record, frozen=True, kw_only=True):
    """An update without an end."""

    update_id: str
    update_name: str = ""
    """Known until it is accepted; then the history has it."""
    stage: WorkflowUpdateStage
    admitted_time: datetime | None = None
    accepted_event_id: int = 0


class DescribeWorkflowResponse(Record, frozen=True, kw_only=True):
    info: WorkflowExecutionInfo
    workflow_execution_timeout: timedelta | None = None
    workflow_run_timeout: timedelta | None = None
    workflow_task_timeout: timedelta
    paused_time: datetime | None = None
    """Since when nothing of it is given to workers; the status is PAUSED then."""
    paused_by: str = ""
    pause_reason: str = ""
    pending_activities: tuple[PendingActivityInfo, ...] = ()
    pending_timers: tuple[PendingTimerInfo, ...] = ()
    pending_workflow_task: PendingWorkflowTaskInfo | None = None
    buffered_events: int = 0
    """Messages recorded that no workflow task has seen yet."""
    pending_updates: tuple[PendingUpdateInfo, ...] = ()
    cancel_requested: bool = False
    workflow_task_pollers: tuple[PollerInfo, ...] = ()
    """Workers seen on the run's task queue in the last five minutes; empty means that nobody polls it."""
    unpolled_task_queues: tuple[str, ...] = ()
    """Task queues on which this run waits and that nobody polls, such as ``orders (activity)``."""
    pending_children: tuple[PendingChildInfo, ...] = ()
    pending_external_signals: tuple[PendingExternalInfo, ...] = ()
    pending_external_cancels: tuple[PendingExternalInfo, ...] = ()
    user_metadata: UserMetadata | None = None
    """What the run was started with for people to read (PM-27)."""
    attempt: int = 1
    """Counted up by the workflow's retry policy."""
    cron_schedule: str = ""
    first_workflow_task_time: datetime | None = None
    """While the run's code waits for its time: a start delay, a retry's backoff, the next turn of its cron."""
    continued_execution_run_id: str = ""
    """The run before this one in its chain."""
    new_execution_run_id: str = ""
    """The run that goes on behind this one."""
    callbacks: tuple[CallbackInfo, ...] = ()
    """Of a chain of runs, as far as they are; of a run that goes on as another one those that it handed on."""


class GetHistoryRequest(Record, frozen=True, kw_only=True):
    """A page of events. ``wait_new_event`` holds the call until an event comes or the run closes (LC-45)."""

    namespace: str = "default"
    execution: WorkflowExecution
    maximum_page_size: int = 0
    next_page_token: bytes = b""
    wait_new_event: bool = False
    close_event_only: bool = False
    """Answer with the close event alone; with ``wait_new_event`` this is how a result is waited for."""
    timeout: timedelta | None = None
    reverse: bool = False
    """Newest event first. Waits for nothing."""
    skip_archival: bool = False
    """Not from the archive, where a run that is named by its run id is found when its retention is over (OP-08)."""


class GetHistoryResponse(Record, frozen=True, kw_only=True):
    """An empty page with a token is a long poll that ended without news: ask again with the token."""

    run_id: str
    events: tuple[HistoryEvent, ...] = ()
    next_page_token: bytes = b""
    following_token: bytes = b""
    """With the first page of a history newest first: as ``next_page_token``, without ``reverse``, it reads on with what
    comes in behind that page."""


class ListWorkflowsRequest(Record, frozen=True, kw_only=True):
    """Newest start first, unless ``query`` has an ORDER BY. All filters that are given must hold."""

    namespace: str = "default"
    status: WorkflowExecutionStatus | None = None
    workflow_type: str = ""
    page_size: int = 0
    next_page_token: bytes = b""
    query: str = ""
    """In the filter language (VI-01), such as ``WorkflowType = 'order' AND Customer IN ('a', 'b')``."""


class ListWorkflowsResponse(Record, frozen=True, kw_only=True):
    """There is more as long as there is a token; a page may have few runs, or none, and a token all the same."""

    executions: tuple[WorkflowExecutionInfo, ...] = ()
    next_page_token: bytes = b""


class ScanWorkflowsRequest(Record, frozen=True, kw_only=True):
    """All runs that satisfy ``query``, which has no ORDER BY, in the order that costs least. A run that closes between
    two pages may be in both."""

    namespace: str = "default"
    page_size: int = 0
    next_page_token: bytes = b""
    query: str = ""


class ScanWorkflowsResponse(Record, frozen=True, kw_only=True):
    """As a page of ListWorkflows."""

    executions: tuple[WorkflowExecutionInfo, ...] = ()
    next_page_token: bytes = b""


class ListArchivedWorkflowsRequest(Record, frozen=True, kw_only=True):
    """Closed runs in the archive of the namespace that satisfy ``query``, which has no ORDER BY: newest close first
    (VI-17). A run is there some minutes behind its close."""

    namespace: str = "default"
    page_size: int = 0
    next_page_token: bytes = b""
    query: str = ""


class ListArchivedWorkflowsResponse(Record, frozen=True, kw_only=True):
    """A call looks at a bounded number of runs, so a page may have few, or none, and a token all the same."""

    executions: tuple[WorkflowExecutionInfo, ...] = ()
    next_page_token: bytes = b""
    scanned_count: int = 0
    """Runs that this call has looked at. What narrows ``CloseTime`` saves looking."""


class CountWorkflowsRequest(Record, frozen=True, kw_only=True):
    """How many runs satisfy ``query``, in all or by value of one attribute (GROUP BY)."""

    namespace: str = "default"
    query: str = ""
    next_page_token: bytes = b""


class CountGroup(Record, frozen=True, kw_only=True):
    """``value`` None: the runs that do not have the attribute."""

    value: str | None = None
    count: int


class CountWorkflowsResponse(Record, frozen=True, kw_only=True):
    """With a token, these are the ones counted so far: ask again with it, and add what comes."""

    count: int
    groups: tuple[CountGroup, ...] = ()
    next_page_token: bytes = b""
