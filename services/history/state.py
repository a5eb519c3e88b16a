"""What the engine knows of a workflow execution: the fold of its history, and what is not (yet) in it.

One :class:`ExecutionState` rides in every commit. It is bounded by the pending limits, never by the history's length.
Fields under "transient" cannot be rebuilt from the events alone; ``rebuild(history) == state`` holds for the rest.
"""

from datetime import datetime, timedelta

import msgspec
from stepwell.api.common import Memo, ProcessIdentity, RetryPolicy
from stepwell.api.enums import WorkflowExecutionStatus, WorkflowTaskFailedCause
from stepwell.api.events import EventAttributes
from stepwell.api.failures import Failure
from stepwell.api.payloads import Payloads


class Lease(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Attempt 1 of an activity, handed over in the reply to a completion: the log is its authority."""

    identity: str
    started_time: datetime
    holder: ProcessIdentity | None = None
    worker_key: str = ""


class PendingActivity(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """An activity without an end in the history.

    ``lease`` set: log-leased, the log is the authority. ``lease`` None: the activity item is (and when there is no
    item yet, no attempt from ``attempt`` on has started). Timeouts are filled in and capped already (AC-03).
    """

    scheduled_event_id: int
    scheduled_seq: int
    """Seq of the commit whose events hold the ActivityTaskScheduled event (its input, headers, …)."""
    activity_id: str
    activity_type: str
    task_queue: str
    scheduled_time: datetime
    schedule_to_close_timeout: timedelta | None = None
    schedule_to_start_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None
    heartbeat_timeout: timedelta | None = None
    retry_policy: RetryPolicy
    cancel_requested_event_id: int = 0
    # transient
    lease: Lease | None = None
    attempt: int = 1
    """The attempt that is next or running as far as the log knows; an item, once it exists, knows better."""
    next_attempt_time: datetime | None = None
    """When attempt ``attempt`` may start; None is at once."""
    last_failure: Failure | None = None
    last_worker_identity: str = ""
    heartbeat_details: Payloads = ()
    """The last progress that a log-leased attempt reported; an item, once it exists, has its own (WC-07)."""
    next_dispatch: datetime | None = None
    """Send the dispatch again at this time, if the activity has still no started item (design section 7)."""
    dispatches: int = 0


class PendingTimer(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    timer_id: str
    started_event_id: int
    fire_time: datetime


class WorkflowTaskState(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """The outstanding workflow task: scheduled and not closed; nobody can know whether it was started."""

    scheduled_event_id: int
    """0 for a transient one (attempt above 1): it gets its number when it is completed."""
    scheduled_time: datetime
    attempt: int = 1
    # transient
    not_before: datetime | None = None
    """Backoff of a failed attempt (ER-07)."""
    next_dispatch: datetime
    dispatches: int = 1
    last_failure: Failure | None = None
    last_cause: WorkflowTaskFailedCause | None = None
    closing: bool = False
    """A close was refused twice: until this task is done, messages are refused as retryable (MS-06)."""


class BufferedEvent(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """An event that is recorded but has no number, since a workflow task is outstanding. Shown to no reader."""

    index: int
    """Ever-growing in the run; tokens refer to it."""
    time: datetime
    attributes: EventAttributes
    """For an activity's end, ``started_event_id`` is 0 and set when it is placed behind its Started event."""
    started: EventAttributes | None = None
    """The ActivityTaskStarted event that is placed just before this one."""
    size: int


class CompletionMark(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """The last accepted completion, so that a repeat with its nonce gets the same answer."""

    nonce: str
    seq: int
    started_event_id: int
    run_id: str = ""
    """The run that it closed, in the state of the run that it opened; else empty: this run."""


class ExecutionState(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Mutable on purpose: a transition changes its own copy (``TransitionBuilder``); nobody else changes one."""

    namespace: str
    workflow_id: str
    run_id: str
    first_run_id: str
    workflow_type: str
    task_queue: str
    status: WorkflowExecutionStatus = WorkflowExecutionStatus.RUNNING
    start_time: datetime
    close_time: datetime | None = None
    last_event_time: datetime
    workflow_task_timeout: timedelta
    execution_expires: datetime | None = None
    run_expires: datetime | None = None
    memo: Memo = {}
    search_attributes: Memo = {}
    start_request_id: str = ""
    next_event_id: int = 1
    history_size: int = 0
    """Bytes of the events as encoded in JSON; an estimate is enough, but it must be the same everywhere."""
    previous_started_event_id: int = 0
    """WorkflowTaskStarted of the last completed workflow task; 0 when there was none."""
    workflow_task: WorkflowTaskState | None = None
    activities: dict[int, PendingActivity] = {}
    """By scheduled event id."""
    activity_ids: dict[str, int] = {}
    timers: dict[str, PendingTimer] = {}
    cancel_requested: bool = False
    signal_count: int = 0
    # transient
    seq: int = 0
    """Seq of the commit that holds this state."""
    first_seq: int = 1
    """Seq of this run's first commit."""
    numbered_seq: int = 0
    """Seq of the last commit that numbered an event; a completion from an older base is stale."""
    buffered: tuple[BufferedEvent, ...] = ()
    next_buffer_index: int = 1
    armed: datetime | None = None
    """The armed deadline, as far as commits know."""
    request_ids: tuple[str, ...] = ()
    """Recent request ids of signals and cancels, newest last, hashed; survive the run (design section 3)."""
    completion: CompletionMark | None = None
    last_worker_key: str = ""
    """Worker that completed the last workflow task and has the run cached."""
