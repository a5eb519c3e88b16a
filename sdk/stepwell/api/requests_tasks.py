"""Workflow tasks and queries, as workers poll and answer them."""

from datetime import datetime, timedelta

from ._struct import Record
from .commands import Command
from .common import Headers, SdkMetadata, WorkflowExecution
from .enums import CompletionOutcome, SuggestContinueAsNewReason, WorkflowTaskFailedCause
from .errors import ErrorBody
from .events import HistoryEvent
from .failures import Failure
from .payloads import Payloads
from .requests_activity import ActivityOutcome, ActivityOutcomeReply
from .requests_worker import WorkerInfo
from .updates import DeliveredUpdate


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
    updates: tuple[DeliveredUpdate, ...] = ()
    """What workflow code has to accept or reject in this task, each behind the event it names."""
    same_worker: bool = False
    """The worker with this ``worker_key`` did the last task of the run, so it may have the run in its cache."""


class PollWorkflowTaskResponse(Record, frozen=True, kw_only=True):
    """``tasks`` is empty when the long poll ended without one."""

    tasks: tuple[WorkflowTask, ...] = ()


class StartWorkflowTaskRequest(Record, frozen=True, kw_only=True):
    """Asks for the task that a message of a task queue hints at. ``hint`` is the message's body."""

    namespace: str = "default"
    task_queue: str
    worker: WorkerInfo
    hint: str


class StartWorkflowTaskResponse(Record, frozen=True, kw_only=True):
    """``task`` is None when the hint is out of date: then its message is to be deleted. Else it is to be deleted when
    the task is answered, and given out again when the worker is lost."""

    task: WorkflowTask | None = None


class EagerActivities(Record, frozen=True, kw_only=True):
    """What the completing worker can take at once: slots it has reserved, on the one queue it serves (AC-23)."""

    task_queue: str
    slots: int


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
    force_new_workflow_task: bool = False
    """Another workflow task is to follow at once: the worker goes on with what takes longer than one (AC-24)."""
    return_new_workflow_task: bool = False
    """That task is to come with the answer, and to nobody else."""


class ActivityLease(Record, frozen=True, kw_only=True):
    """An activity of this completion that the worker may start now; what to run is in its own command."""

    activity_id: str
    scheduled_event_id: int
    task_token: bytes


class RespondWorkflowTaskCompletedResponse(Record, frozen=True, kw_only=True):
    outcome: CompletionOutcome
    continuation_token: bytes = b""
    started_event_id: int = 0
    """Event id of this task's WorkflowTaskStarted; Completed is the next, then one event per command, in order. Of the
    last completed task when this one was DROPPED."""
    next_event_id: int = 0
    """Id that the next event of the run will get. Larger than the commands explain when messages came in unseen;
    then a workflow task is scheduled for them and no fused step is possible until it is done."""
    history_size_bytes: int = 0
    """Size of the history so far; what a fused step on top of it records in its WorkflowTaskStarted."""
    suggest_continue_as_new_reasons: tuple[SuggestContinueAsNewReason, ...] = ()
    """The same of these: why the workflow should continue as new."""
    fusible: bool = False
    """True when the worker may continue with a fused step, that is, no workflow task is outstanding."""
    commit_time: datetime | None = None
    leases: tuple[ActivityLease, ...] = ()
    activity_replies: tuple[ActivityOutcomeReply, ...] = ()
    """One per ``activity_outcomes``, in order; they count even when the outcome is not ACCEPTED."""
    message: str = ""
    workflow_task: WorkflowTask | None = None
    """With ``return_new_workflow_task``; none when it could not be given here: then it comes by a poll."""


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
