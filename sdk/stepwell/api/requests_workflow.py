"""Start a workflow, send it messages, end it: what clients ask for."""

from datetime import timedelta

from ._struct import Record
from .callbacks import Callback
from .common import Headers, Memo, Priority, RetryPolicy, UserMetadata, WorkflowExecution
from .enums import (
    DeduplicationPolicy,
    QueryRejectCondition,
    ResetReapplyExcludeType,
    ResetType,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from .events import HistoryEvent
from .payloads import Payloads
from .requests_tasks import WorkflowTask
from .requests_worker import WorkerInfo


class OnConflictOptions(Record, frozen=True, kw_only=True):
    """What a start with USE_EXISTING does to the open run that it meets (LC-04). Empty: nothing."""

    attach_request_id: bool = False
    """The run remembers ``request_id``, in an event, as if it had been started by it: a repeat gets this run, also
    when it is closed by then."""
    attach_completion_callbacks: bool = False
    """The run gets those of the start. Needs ``attach_request_id``, so that a repeat does not add them twice."""


class Deduplication(Record, frozen=True, kw_only=True):
    """Of several starts with one key, whatever their workflow ids, one counts (LC-48)."""

    key: str
    """In the namespace."""
    policy: DeduplicationPolicy = DeduplicationPolicy.FAIL
    ttl: timedelta | None = None
    """For so long behind the last start with the key, also one that did not count, it is held, whether the workflow
    runs or not. None: until the workflow's chain of runs ends."""


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
    retry_policy: RetryPolicy | None = None
    """Of the whole workflow: each further attempt is a new run of the chain (ER-12). None: a failure is final."""
    cron_schedule: str = ""
    """Five fields in UTC, ``@daily`` and the like, ``@every 90m``; ``CRON_TZ=<zone>`` before them (LC-24)."""
    workflow_start_delay: timedelta | None = None
    """Time until the first workflow task; a message ends it early (LC-07). Not with a cron schedule."""
    eager_worker: WorkerInfo | None = None
    """A worker of the caller's own process that has room for the first workflow task (LC-08)."""
    user_metadata: UserMetadata | None = None
    """Summary and details for people (PM-27), of this run."""
    priority: Priority | None = None
    """Of its workflow tasks, and of the activities and children that say nothing else."""
    on_conflict_options: OnConflictOptions | None = None
    deduplication: Deduplication | None = None
    completion_callbacks: tuple[Callback, ...] = ()
    """Told when the chain of runs has ended (LC-10). Their addresses are those that the installation allows."""


class StartWorkflowResponse(Record, frozen=True, kw_only=True):
    run_id: str
    started: bool = True
    """False when USE_EXISTING returned a run that was already there. A repeat answers as the first call did (LC-01)."""
    first_execution_run_id: str = ""
    eager_workflow_task: WorkflowTask | None = None
    """The first workflow task, handed to ``eager_worker``. None: a poll gets it, as ever."""
    workflow_id: str = ""
    """Of the run, when a deduplication key led to another workflow than the one that was asked for; else empty."""


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


class SignalWithStartWorkflowRequest(StartWorkflowRequest, frozen=True, kw_only=True):
    """Starts the workflow unless it is open, and signals it, in one step (MS-09). A repeat with the same
    ``request_id`` gets the run of the first call, and adds no signal. The conflict policy says what becomes of an open
    run: it gets the signal, or TERMINATE_EXISTING."""

    workflow_id_conflict_policy: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.USE_EXISTING
    signal_name: str
    signal_input: Payloads = ()
    signal_headers: Headers = {}


class SignalWithStartWorkflowResponse(Record, frozen=True, kw_only=True):
    run_id: str
    """The run that got the signal."""
    started: bool = True
    """False when the run was there already."""
    first_execution_run_id: str = ""


class QueryWorkflowRequest(Record, frozen=True, kw_only=True):
    namespace: str = "default"
    execution: WorkflowExecution
    query_type: str
    query_args: Payloads = ()
    headers: Headers = {}
    query_reject_condition: QueryRejectCondition = QueryRejectCondition.NONE
    timeout: timedelta | None = None
    """How long to wait for a worker's answer; default and maximum (QUERY_TIMEOUT, MAX_QUERY_TIMEOUT) in ``limits``."""
    query_token: bytes = b""
    """For the same query once more, when the last answer had one."""
    wait_for_worker: bool = False
    """While nobody polls the run's task queue, wait for who does; else that is refused at once (MS-23)."""


class QueryWorkflowResponse(Record, frozen=True, kw_only=True):
    """``query_token``: there is no answer yet, and this engine holds no calls; ask again with it."""

    result: Payloads = ()
    query_token: bytes = b""


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


class DeleteWorkflowRequest(Record, frozen=True, kw_only=True):
    """``execution.run_id`` empty: the newest run. A running one is terminated first (LC-12)."""

    namespace: str = "default"
    execution: WorkflowExecution
    identity: str = ""
    first_execution_run_id: str = ""
    """With an empty ``run_id``: only in the chain of runs that began with this one."""


class DeleteWorkflowResponse(Record, frozen=True, kw_only=True):
    """The run counts as deleted: it is found no more, and its id is free. What is left of it goes in the background."""


class PauseWorkflowRequest(Record, frozen=True, kw_only=True):
    """Nothing more of the run is given to workers, until it is unpaused (LC-11). A workflow task that is with a worker
    may finish, and signals, timers and ends of activities are recorded; queries and updates are refused."""

    namespace: str = "default"
    execution: WorkflowExecution
    reason: str = ""
    identity: str = ""
    request_id: str = ""


class PauseWorkflowResponse(Record, frozen=True, kw_only=True):
    pass


class UnpauseWorkflowRequest(Record, frozen=True, kw_only=True):
    """The run goes on with what has come in since it was paused."""

    namespace: str = "default"
    execution: WorkflowExecution
    reason: str = ""
    identity: str = ""
    request_id: str = ""


class UnpauseWorkflowResponse(Record, frozen=True, kw_only=True):
    pass


class ResetWorkerAffinityRequest(Record, frozen=True, kw_only=True):
    """The next workflow task goes to any worker of its queue, as if none had the run in memory (TQ-07). For a worker
    that has dropped it, and for who operates it."""

    namespace: str = "default"
    execution: WorkflowExecution


class ResetWorkerAffinityResponse(Record, frozen=True, kw_only=True):
    pass


class PostResetSignal(Record, frozen=True, kw_only=True):
    signal_name: str
    input: Payloads = ()
    headers: Headers = {}


class WorkflowExecutionOptions(Record, frozen=True, kw_only=True):
    """What can be changed of a run that is there."""

    priority: Priority | None = None
    """As in its start."""


class UpdateWorkflowOptionsRequest(Record, frozen=True, kw_only=True):
    """Changes options of an open run. What is so already leaves no event, so a repeat is harmless."""

    namespace: str = "default"
    execution: WorkflowExecution
    workflow_execution_options: WorkflowExecutionOptions = WorkflowExecutionOptions()
    update_mask: str = ""
    """As in PostResetOptions."""
    identity: str = ""


class UpdateWorkflowOptionsResponse(Record, frozen=True, kw_only=True):
    pass


class PostResetOptions(Record, frozen=True, kw_only=True):
    workflow_execution_options: WorkflowExecutionOptions = WorkflowExecutionOptions()
    update_mask: str = ""
    """What of the options is taken, with commas between: ``priority``, or of it ``priority.priority_key``,
    ``priority.fairness_key``, ``priority.fairness_weight``. What is named here and not given goes back to its
    default."""


class PostResetOperation(Record, frozen=True, kw_only=True):
    """Exactly one of these."""

    signal_workflow: PostResetSignal | None = None
    update_workflow_options: PostResetOptions | None = None


class ResetWorkflowRequest(Record, frozen=True, kw_only=True):
    """Goes on from an earlier point of the run that ``execution`` names, the *base*, as a new run of the workflow id
    (LC-13 to LC-16). The current run is terminated, whichever was the base. A repeat with the same ``request_id`` gets
    the run that the first one made."""

    namespace: str = "default"
    execution: WorkflowExecution
    workflow_task_finish_event_id: int = 0
    """A WorkflowTaskCompleted, WorkflowTaskFailed, WorkflowTaskTimedOut or WorkflowTaskStarted event: that workflow
    task is done anew. Or 0, and a ``reset_type``."""
    reset_type: ResetType | None = None
    build_id: str = ""
    """For BUILD_ID."""
    current_run_only: bool = False
    """For BUILD_ID: does not look for it in the runs before in the chain."""
    reset_reapply_exclude_types: tuple[ResetReapplyExcludeType, ...] = ()
    """Of what came in behind the point, this does not come in again."""
    reason: str = ""
    identity: str = ""
    request_id: str = ""
    post_reset_operations: tuple[PostResetOperation, ...] = ()
    """Applied to the new run in this order, behind what comes in again and before its first workflow task (LC-18).
    ``reset_reapply_exclude_types`` says nothing of these."""


class ImportWorkflowRequest(Record, frozen=True, kw_only=True):
    """Makes a run of a history that was read elsewhere (LC-46): under its workflow id and run id, closed as it is there
    or, if it is open, going on. A repeat with the same ``request_id`` gets the run that the first one made."""

    namespace: str = "default"
    execution: WorkflowExecution
    """The run id is in the history; one that is given must be the same."""
    events: tuple[HistoryEvent, ...]
    """All of them, from 1 on."""
    identity: str = ""
    request_id: str = ""


class ImportWorkflowResponse(Record, frozen=True, kw_only=True):
    run_id: str


class ResetWorkflowResponse(Record, frozen=True, kw_only=True):
    run_id: str
