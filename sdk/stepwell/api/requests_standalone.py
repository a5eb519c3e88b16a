"""Activities without a workflow (AC-28): started, awaited, read and operated by clients, done by the workers of their
task queue like any other attempt.

An activity is named by ``activity_id``, and one of several under the same id by ``run_id``: without it, the newest.
"""

from datetime import datetime, timedelta

from ._struct import Record
from .common import Headers, Memo, Priority, RetryPolicy, UserMetadata
from .enums import PendingActivityState, WorkflowExecutionStatus, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from .failures import Failure
from .payloads import Payloads
from .requests_reading import CountGroup


class StartActivityRequest(Record, frozen=True, kw_only=True):
    """``schedule_to_close_timeout`` or ``start_to_close_timeout`` is needed, as for any activity (AC-03). A start with
    a ``request_id`` that started a run before answers with that run."""

    namespace: str = "default"
    activity_id: str
    activity_type: str
    task_queue: str
    input: Payloads = ()
    headers: Headers = {}
    schedule_to_close_timeout: timedelta | None = None
    schedule_to_start_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None
    heartbeat_timeout: timedelta | None = None
    retry_policy: RetryPolicy | None = None
    id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE
    id_conflict_policy: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.FAIL
    """FAIL or USE_EXISTING."""
    memo: Memo = {}
    search_attributes: Memo = {}
    priority: Priority | None = None
    user_metadata: UserMetadata | None = None
    identity: str = ""
    request_id: str = ""
    start_delay: timedelta | None = None
    """Until the first attempt may start; all timeouts count from then on."""


class StartActivityResponse(Record, frozen=True, kw_only=True):
    """``started`` False: the run was there already, by its request id or by USE_EXISTING."""

    run_id: str
    started: bool = True


class PollActivityRequest(Record, frozen=True, kw_only=True):
    """Waits until the activity has ended, up to ``timeout``; then the answer has no outcome, and one asks again."""

    namespace: str = "default"
    activity_id: str
    run_id: str = ""
    timeout: timedelta | None = None


class ActivityResult(Record, frozen=True, kw_only=True):
    """``failure`` None: it completed with ``result``."""

    status: WorkflowExecutionStatus
    result: Payloads = ()
    failure: Failure | None = None


class PollActivityResponse(Record, frozen=True, kw_only=True):
    run_id: str
    outcome: ActivityResult | None = None


class ActivityExecutionInfo(Record, frozen=True, kw_only=True):
    """What lists show."""

    activity_id: str
    run_id: str
    activity_type: str
    task_queue: str
    status: WorkflowExecutionStatus
    """RUNNING, COMPLETED, FAILED, CANCELED, TERMINATED or TIMED_OUT."""
    schedule_time: datetime
    close_time: datetime | None = None
    memo: Memo = {}
    search_attributes: Memo = {}


class DescribeActivityRequest(Record, frozen=True, kw_only=True):
    namespace: str = "default"
    activity_id: str
    run_id: str = ""


class DescribeActivityResponse(Record, frozen=True, kw_only=True):
    """``run_state`` is None once it has ended. Options are those that hold now."""

    info: ActivityExecutionInfo
    run_state: PendingActivityState | None = None
    attempt: int = 1
    last_started_time: datetime | None = None
    last_heartbeat_time: datetime | None = None
    heartbeat_details: Payloads = ()
    next_attempt_schedule_time: datetime | None = None
    expiration_time: datetime | None = None
    last_failure: Failure | None = None
    last_worker_identity: str = ""
    cancel_requested: bool = False
    cancel_reason: str = ""
    paused_time: datetime | None = None
    paused_by: str = ""
    pause_reason: str = ""
    schedule_to_close_timeout: timedelta | None = None
    schedule_to_start_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None
    heartbeat_timeout: timedelta | None = None
    retry_policy: RetryPolicy | None = None
    priority: Priority | None = None
    headers: Headers = {}
    input: Payloads = ()
    user_metadata: UserMetadata | None = None
    outcome: ActivityResult | None = None
    execution_time: datetime | None = None
    """When the first attempt may start."""
    state_transition_count: int = 0
    """How often anything about the run was written: it grows with each start, heartbeat and end of an attempt."""


class CancelActivityRequest(Record, frozen=True, kw_only=True):
    """Its worker hears of it with the next heartbeat, or at once where it polls; one that no worker has is over. Of one
    that has ended nothing is changed."""

    namespace: str = "default"
    activity_id: str
    run_id: str = ""
    reason: str = ""
    identity: str = ""
    request_id: str = ""


class CancelActivityResponse(Record, frozen=True, kw_only=True):
    pass


class TerminateActivityRequest(Record, frozen=True, kw_only=True):
    """Ends it at once; what its worker says then is refused."""

    namespace: str = "default"
    activity_id: str
    run_id: str = ""
    reason: str = ""
    identity: str = ""


class TerminateActivityResponse(Record, frozen=True, kw_only=True):
    pass


class DeleteActivityRequest(Record, frozen=True, kw_only=True):
    """Terminated if it runs, then erased in the background."""

    namespace: str = "default"
    activity_id: str
    run_id: str = ""
    identity: str = ""


class DeleteActivityResponse(Record, frozen=True, kw_only=True):
    pass


class ListActivitiesRequest(Record, frozen=True, kw_only=True):
    """Newest first, unless ``query`` has an ORDER BY."""

    namespace: str = "default"
    page_size: int = 0
    next_page_token: bytes = b""
    query: str = ""
    """In the filter language, with ActivityId, ActivityType, ExecutionStatus, TaskQueue, StartTime, CloseTime, RunId
    and the namespace's own search attributes."""


class ListActivitiesResponse(Record, frozen=True, kw_only=True):
    executions: tuple[ActivityExecutionInfo, ...] = ()
    next_page_token: bytes = b""


class CountActivitiesRequest(Record, frozen=True, kw_only=True):
    namespace: str = "default"
    query: str = ""
    next_page_token: bytes = b""


class CountActivitiesResponse(Record, frozen=True, kw_only=True):
    """As of a count of workflows: with a token these are the ones counted so far."""

    count: int
    groups: tuple[CountGroup, ...] = ()
    next_page_token: bytes = b""
