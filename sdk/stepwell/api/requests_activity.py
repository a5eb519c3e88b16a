"""Activity tasks and how they ended, as workers poll and answer them."""

from datetime import datetime, timedelta

from ._struct import Record, Tagged
from .common import Headers, Priority, RetryPolicy, WorkflowExecution
from .failures import Failure
from .payloads import Payloads
from .requests_worker import WorkerInfo


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
    uncounted: bool = False
    """It was told of a pause or a reset, and stopped; neither does this count as an attempt."""


class ActivityCanceled(Tagged, frozen=True, kw_only=True):
    task_token: bytes
    details: Payloads = ()


class ActivityPending(Tagged, frozen=True, kw_only=True):
    """The function has returned and the attempt goes on: whoever has its token, or knows its ids, ends it (AC-21)."""

    task_token: bytes


ActivityOutcome = ActivityCompleted | ActivityFailed | ActivityCanceled | ActivityPending


class ActivityOutcomeReply(Record, frozen=True, kw_only=True):
    """``error_code`` is empty when the outcome counts, now or already before; else it is refused for good."""

    error_code: str = ""
    message: str = ""


class PollActivityTaskRequest(Record, frozen=True, kw_only=True):
    namespace: str = "default"
    task_queue: str
    worker: WorkerInfo
    maximum_tasks: int = 1
    timeout: timedelta | None = None
    max_tasks_per_second: float | None = None
    """From now on no more activity tasks per second go out from the task queue, to all workers together (TQ-08). None
    leaves it as it is."""


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
    priority: Priority | None = None
    activity_run_id: str = ""
    """Of a stand-alone activity (AC-28), which has no workflow: then ``execution`` and ``workflow_type`` are empty."""


class PollActivityTaskResponse(Record, frozen=True, kw_only=True):
    tasks: tuple[ActivityTask, ...] = ()
    cancel_requested: tuple[bytes, ...] = ()
    """Tokens of attempts that this worker runs and whose workflow asked for cancellation (AC-20). Heartbeats say so as
    well."""


class StartActivityTaskRequest(Record, frozen=True, kw_only=True):
    """Asks for the attempt that a message of a task queue hints at. ``hint`` is the message's body."""

    namespace: str = "default"
    task_queue: str
    worker: WorkerInfo
    hint: str


class StartActivityTaskResponse(Record, frozen=True, kw_only=True):
    """``task`` is None when the hint is out of date. Either way the message is to be deleted: an attempt that has been
    started is the engine's to watch."""

    task: ActivityTask | None = None


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
    """``cancel_requested``: the workflow asked for it (AC-19). A closed run or another attempt is NotFound.
    ``paused`` and ``reset``: somebody who operates the workflow did this to the activity (AC-25)."""

    cancel_requested: bool = False
    paused: bool = False
    reset: bool = False


class RespondActivityByIdRequest(Record, frozen=True, kw_only=True):
    """Ends the attempt that runs, of an activity that is named by its ids (AC-21). ``outcome`` needs no token.

    A completion also ends an activity that waits for an attempt."""

    namespace: str = "default"
    execution: WorkflowExecution
    """Without ``run_id``: the run that is open."""
    activity_id: str
    outcome: ActivityOutcome
    identity: str = ""


class RespondActivityByIdResponse(Record, frozen=True, kw_only=True):
    pass


class RecordActivityHeartbeatByIdRequest(Record, frozen=True, kw_only=True):
    """Answered with :class:`RecordActivityHeartbeatResponse`."""

    namespace: str = "default"
    execution: WorkflowExecution
    activity_id: str
    details: Payloads = ()
    identity: str = ""
