"""One request and one response record per API operation; ``services/frontend/routes.py`` lists the operations.

Times are UTC datetimes, durations ISO 8601 in JSON. Ids are checked against ``limits`` before anything is written.
"""

from datetime import datetime, timedelta

from ._struct import Record, Tagged
from .commands import Command
from .common import Headers, Memo, ProcessIdentity, RetryPolicy, SdkMetadata, WorkflowExecution
from .enums import (
    CompletionOutcome,
    PendingActivityState,
    QueryRejectCondition,
    TaskQueueKind,
    WorkflowExecutionStatus,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
    WorkflowTaskFailedCause,
)
from .errors import ErrorBody
from .events import HistoryEvent
from .failures import Failure
from .payloads import Payloads

# --- workflows: what clients call ---------------------------------------------------------------------------------


class StartWorkflowRequest(Record, frozen=True, kw_only=True):
    """Idempotent by ``request_id`` (LC-01): a repeat gets the run that the first one made."""

    namespace: str = "default"
    workflow_id: str
    workflow_type: str
    task_queue: str
    input: Payloads = ()
    workflow_execution_timeout: timedelta | None = None
    workflow_run_timeout: timedelta | None = None
    workflow_task_timeout: timedelta | None = None
    identity: str = ""
    request_id: str = ""
    workflow_id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE
    workflow_id_conflict_policy: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.FAIL
    memo: Memo = {}
    search_attributes: Memo = {}
    headers: Headers = {}


class StartWorkflowResponse(Record, frozen=True, kw_only=True):
    run_id: str
    started: bool = True
    """False when USE_EXISTING returned a run that was already there. A repeat answers as the first call did (LC-01)."""
    first_execution_run_id: str = ""


class SignalWorkflowRequest(Record, frozen=True, kw_only=True):
    """Success means recorded (MS-01). A repeated ``request_id`` adds nothing for as long as a client repeats a call."""

    namespace: str = "default"
    execution: WorkflowExecution
    signal_name: str
    input: Payloads = ()
    identity: str = ""
    request_id: str = ""
    headers: Headers = {}
    idempotency_key: str = ""
    """A key of the sender's own: for the time of the retention, signals of this workflow id with the same key are
    recorded once, in whichever run they came to (MS-16). ``request_id`` has no part in it then."""


class SignalWorkflowResponse(Record, frozen=True, kw_only=True):
    pass


class QueryWorkflowRequest(Record, frozen=True, kw_only=True):
    namespace: str = "default"
    execution: WorkflowExecution
    query_type: str
    query_args: Payloads = ()
    headers: Headers = {}
    query_reject_condition: QueryRejectCondition = QueryRejectCondition.NONE
    timeout: timedelta | None = None
    """How long to wait for a worker's answer; default and maximum in ``limits``."""


class QueryWorkflowResponse(Record, frozen=True, kw_only=True):
    result: Payloads = ()


class CancelWorkflowRequest(Record, frozen=True, kw_only=True):
    """Success also when the run is already closed or already asked to cancel (CH-09, CH-11)."""

    namespace: str = "default"
    execution: WorkflowExecution
    reason: str = ""
    identity: str = ""
    request_id: str = ""
    first_execution_run_id: str = ""


class CancelWorkflowResponse(Record, frozen=True, kw_only=True):
    pass


class TerminateWorkflowRequest(Record, frozen=True, kw_only=True):
    namespace: str = "default"
    execution: WorkflowExecution
    reason: str = ""
    details: Payloads = ()
    identity: str = ""
    first_execution_run_id: str = ""


class TerminateWorkflowResponse(Record, frozen=True, kw_only=True):
    pass


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


class PendingTimerInfo(Record, frozen=True, kw_only=True):
    timer_id: str
    started_event_id: int
    fire_time: datetime


class PendingWorkflowTaskInfo(Record, frozen=True, kw_only=True):
    """The outstanding workflow task; ``attempt`` above 1 means that it fails, ``last_failure`` says why."""

    scheduled_time: datetime
    attempt: int
    next_attempt_time: datetime | None = None
    last_failure: Failure | None = None
    last_cause: WorkflowTaskFailedCause | None = None


class PollerInfo(Record, frozen=True, kw_only=True):
    identity: str
    last_access_time: datetime


class DescribeWorkflowResponse(Record, frozen=True, kw_only=True):
    info: WorkflowExecutionInfo
    workflow_execution_timeout: timedelta | None = None
    workflow_run_timeout: timedelta | None = None
    workflow_task_timeout: timedelta
    pending_activities: tuple[PendingActivityInfo, ...] = ()
    pending_timers: tuple[PendingTimerInfo, ...] = ()
    pending_workflow_task: PendingWorkflowTaskInfo | None = None
    buffered_events: int = 0
    """Messages recorded that no workflow task has seen yet."""
    cancel_requested: bool = False
    workflow_task_pollers: tuple[PollerInfo, ...] = ()
    """Workers seen on the run's task queue in the last five minutes; empty means that nobody polls it."""
    unpolled_task_queues: tuple[str, ...] = ()
    """Task queues on which this run waits and that nobody polls, such as ``orders (activity)``."""


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


class GetHistoryResponse(Record, frozen=True, kw_only=True):
    """An empty page with a token is a long poll that ended without news: ask again with the token."""

    run_id: str
    events: tuple[HistoryEvent, ...] = ()
    next_page_token: bytes = b""


class ListWorkflowsRequest(Record, frozen=True, kw_only=True):
    """Newest start first. Filters by equality; the filter language comes with search."""

    namespace: str = "default"
    status: WorkflowExecutionStatus | None = None
    workflow_type: str = ""
    page_size: int = 0
    next_page_token: bytes = b""


class ListWorkflowsResponse(Record, frozen=True, kw_only=True):
    executions: tuple[WorkflowExecutionInfo, ...] = ()
    next_page_token: bytes = b""


# --- workers ------------------------------------------------------------------------------------------------------


class WorkerInfo(Record, frozen=True, kw_only=True):
    """Said with each poll and each completion."""

    identity: str
    build_id: str = ""
    process: ProcessIdentity | None = None
    worker_key: str = ""
    """Random id of this Worker object; workflow tasks of runs it has cached are offered to it first."""


class PollWorkflowTaskRequest(Record, frozen=True, kw_only=True):
    """``maximum_tasks``: how many the worker has room for; those that wait come together."""

    namespace: str = "default"
    task_queue: str
    worker: WorkerInfo
    maximum_tasks: int = 1
    timeout: timedelta | None = None


class WorkflowQuery(Record, frozen=True, kw_only=True):
    query_type: str
    query_args: Payloads = ()
    headers: Headers = {}


class WorkflowTask(Record, frozen=True, kw_only=True):
    """Work for workflow code.

    ``events`` are the events after the last completed workflow task (event id above ``previous_started_event_id``,
    less that task's Completed event is included), ending with this task's own ``WorkflowTaskStarted``; the whole
    history when there was none. A worker without the run in its cache reads what came before with GetHistory.
    For a query task (``query`` set), ``events`` may be empty, and the answer goes to RespondQueryTaskCompleted.
    """

    task_token: bytes
    execution: WorkflowExecution
    workflow_type: str
    task_queue: str
    previous_started_event_id: int = 0
    started_event_id: int = 0
    attempt: int = 1
    scheduled_time: datetime
    started_time: datetime
    events: tuple[HistoryEvent, ...] = ()
    last_event_id: int = 0
    """Id of the last event the worker must have applied; events up to it exist or will once this task completes."""
    query: WorkflowQuery | None = None
    history_size_bytes: int = 0


class PollWorkflowTaskResponse(Record, frozen=True, kw_only=True):
    """``tasks`` is empty when the long poll ended without one."""

    tasks: tuple[WorkflowTask, ...] = ()


class EagerActivities(Record, frozen=True, kw_only=True):
    """What the completing worker can take at once: slots it has reserved, on the one queue it serves (AC-23)."""

    task_queue: str
    slots: int


class ActivityCompleted(Tagged, frozen=True, kw_only=True):
    task_token: bytes
    result: Payloads = ()


class ActivityFailed(Tagged, frozen=True, kw_only=True):
    task_token: bytes
    failure: Failure
    last_heartbeat_details: Payloads = ()
    worker_shutdown: bool = False
    """The attempt was ended by its worker's shutdown: retried at once, without backoff (WC-32)."""
    begun: bool = True
    """False: it came to a worker that was stopping already, which puts it back; it does not count as an attempt."""


class ActivityCanceled(Tagged, frozen=True, kw_only=True):
    task_token: bytes
    details: Payloads = ()


ActivityOutcome = ActivityCompleted | ActivityFailed | ActivityCanceled


class ActivityOutcomeReply(Record, frozen=True, kw_only=True):
    """``error_code`` is empty when the outcome counts, now or already before; else it is refused for good."""

    error_code: str = ""
    message: str = ""


class RespondWorkflowTaskCompletedRequest(Record, frozen=True, kw_only=True):
    """Ends a workflow task, or makes a fused step.

    ``task_token`` is the polled task's token, or the ``continuation_token`` of the worker's previous accepted
    completion of the run. With a continuation token, ``activity_outcomes`` (of this run's leased activities) are what
    caused the step, and ``workflow_time`` is what the workflow saw as now. ``nonce`` is new for each completion and the
    same for its repeats.
    """

    namespace: str = "default"
    task_token: bytes
    nonce: str
    worker: WorkerInfo
    commands: tuple[Command, ...] = ()
    activity_outcomes: tuple[ActivityOutcome, ...] = ()
    workflow_time: datetime | None = None
    sdk_metadata: SdkMetadata | None = None
    eager_activities: EagerActivities | None = None


class ActivityLease(Record, frozen=True, kw_only=True):
    """An activity of this completion that the worker may start now; what to run is in its own command."""

    activity_id: str
    scheduled_event_id: int
    task_token: bytes


class RespondWorkflowTaskCompletedResponse(Record, frozen=True, kw_only=True):
    outcome: CompletionOutcome
    continuation_token: bytes = b""
    started_event_id: int = 0
    """Event id of this task's WorkflowTaskStarted; Completed is the next, then one event per command, in order."""
    next_event_id: int = 0
    """Id that the next event of the run will get. Larger than the commands explain when messages came in unseen;
    then a workflow task is scheduled for them and no fused step is possible until it is done."""
    history_size_bytes: int = 0
    """Size of the history so far; what a fused step on top of it records in its WorkflowTaskStarted."""
    fusible: bool = False
    """True when the worker may continue with a fused step, that is, no workflow task is outstanding."""
    commit_time: datetime | None = None
    leases: tuple[ActivityLease, ...] = ()
    activity_replies: tuple[ActivityOutcomeReply, ...] = ()
    """One per ``activity_outcomes``, in order; they count even when the outcome is not ACCEPTED."""
    message: str = ""


class RespondWorkflowTasksCompletedRequest(Record, frozen=True, kw_only=True):
    """Completions of several runs that a worker made at the same moment, in one request. Each is answered as if it had
    come alone, and each names the namespace of the request."""

    namespace: str = "default"
    completions: tuple[RespondWorkflowTaskCompletedRequest, ...]


class CompletionAnswer(Record, frozen=True, kw_only=True):
    """What one completion would have been answered alone: ``response``, or the refusal in ``error``."""

    response: RespondWorkflowTaskCompletedResponse | None = None
    error: ErrorBody | None = None


class RespondWorkflowTasksCompletedResponse(Record, frozen=True, kw_only=True):
    """One answer per completion, in order."""

    answers: tuple[CompletionAnswer, ...] = ()


class RespondWorkflowTaskFailedRequest(Record, frozen=True, kw_only=True):
    """The workflow task failed; the run stays open. Also for a step with a continuation token, whose outcomes count."""

    namespace: str = "default"
    task_token: bytes
    nonce: str = ""
    worker: WorkerInfo
    cause: WorkflowTaskFailedCause
    failure: Failure
    activity_outcomes: tuple[ActivityOutcome, ...] = ()


class RespondWorkflowTaskFailedResponse(Record, frozen=True, kw_only=True):
    activity_replies: tuple[ActivityOutcomeReply, ...] = ()


class RespondQueryTaskCompletedRequest(Record, frozen=True, kw_only=True):
    namespace: str = "default"
    task_token: bytes
    result: Payloads = ()
    failure: Failure | None = None


class RespondQueryTaskCompletedResponse(Record, frozen=True, kw_only=True):
    pass


class PollActivityTaskRequest(Record, frozen=True, kw_only=True):
    namespace: str = "default"
    task_queue: str
    worker: WorkerInfo
    maximum_tasks: int = 1
    timeout: timedelta | None = None


class ActivityTask(Record, frozen=True, kw_only=True):
    task_token: bytes
    execution: WorkflowExecution
    workflow_type: str
    activity_id: str
    activity_type: str
    task_queue: str
    headers: Headers = {}
    input: Payloads = ()
    heartbeat_details: Payloads = ()
    attempt: int = 1
    scheduled_time: datetime
    current_attempt_scheduled_time: datetime
    started_time: datetime
    schedule_to_close_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None
    heartbeat_timeout: timedelta | None = None
    retry_policy: RetryPolicy | None = None


class PollActivityTaskResponse(Record, frozen=True, kw_only=True):
    tasks: tuple[ActivityTask, ...] = ()


class RespondActivityTasksRequest(Record, frozen=True, kw_only=True):
    """Outcomes of activity attempts, of any runs, in one request."""

    namespace: str = "default"
    worker: WorkerInfo
    outcomes: tuple[ActivityOutcome, ...]


class RespondActivityTasksResponse(Record, frozen=True, kw_only=True):
    replies: tuple[ActivityOutcomeReply, ...] = ()


class RecordActivityHeartbeatRequest(Record, frozen=True, kw_only=True):
    namespace: str = "default"
    task_token: bytes
    details: Payloads = ()
    identity: str = ""


class RecordActivityHeartbeatResponse(Record, frozen=True, kw_only=True):
    """``cancel_requested``: the workflow asked for it (AC-19). A closed run or another attempt is NotFound."""

    cancel_requested: bool = False


class ShutdownWorkerRequest(Record, frozen=True, kw_only=True):
    """The worker stops: its open polls end empty, and it is offered nothing more (TQ-07)."""

    namespace: str = "default"
    task_queue: str
    worker: WorkerInfo


class ShutdownWorkerResponse(Record, frozen=True, kw_only=True):
    pass


# --- system -------------------------------------------------------------------------------------------------------


class DescribeTaskQueueRequest(Record, frozen=True, kw_only=True):
    namespace: str = "default"
    task_queue: str
    kind: TaskQueueKind = TaskQueueKind.WORKFLOW


class DescribeTaskQueueResponse(Record, frozen=True, kw_only=True):
    pollers: tuple[PollerInfo, ...] = ()
    backlog_count: int = 0


class GetSystemInfoRequest(Record, frozen=True, kw_only=True):
    pass


class GetSystemInfoResponse(Record, frozen=True, kw_only=True):
    server_version: str
    database: str = ""
    """Where data is kept, for people; such as a path, or ``memory``."""
    default_retention: timedelta | None = None
