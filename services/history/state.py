"""What the engine knows of a workflow execution: the fold of its history, and what is not (yet) in it.

One :class:`ExecutionState` rides in every commit. It is bounded by the pending limits, never by the history's length.
Fields under "transient" cannot be rebuilt from the events alone; ``rebuild(history) == state`` holds for the rest.
"""

from datetime import datetime, timedelta

import msgspec
from stepwell.api.callbacks import Callback
from stepwell.api.common import Memo, Priority, ProcessIdentity, RetryPolicy, WorkflowExecution
from stepwell.api.enums import ParentClosePolicy, WorkflowExecutionStatus, WorkflowTaskFailedCause
from stepwell.api.events import EventAttributes
from stepwell.api.failures import Failure
from stepwell.api.payloads import Payloads
from stepwell.api.updates import UpdateRequest

REMEMBERED_UPDATES = 64
"""Ended updates that the state knows; older ones only the log."""


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
    """Seq of the commit, or of the part of the prefix, whose events hold the ActivityTaskScheduled event (its input,
    headers, …)."""
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
    detached: Lease | None = None
    """The lease that an attempt had until its item became the authority while it went on (AC-21, AC-25). Until then
    there may be no item; it is made of this when it is first needed."""
    priority: Priority | None = None
    """Of the event, not transient."""


class PendingTimer(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    timer_id: str
    started_event_id: int
    fire_time: datetime


class PendingChild(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """A child without an end in the history. What it was asked to do is in its event, not here."""

    initiated_event_id: int
    namespace: str = ""
    """Empty: the parent's."""
    workflow_id: str
    workflow_type: str
    parent_close_policy: ParentClosePolicy = ParentClosePolicy.TERMINATE
    attached: bool = False
    """Only watched (conflict policy USE_EXISTING, CH-18, or asked for so): neither its parent's end nor a cancel
    reaches it."""
    started_event_id: int = 0
    """0 until the start is confirmed."""
    run_id: str = ""
    """First run of the child's chain, known once the start is confirmed."""
    # transient
    initiated_seq: int = 0
    """Seq of the commit whose events hold the Initiated event."""
    next_dispatch: datetime | None = None
    """Ask again at this time: start it, or see whether it has ended."""
    dispatches: int = 0


class PendingExternal(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Something asked of another workflow that is not known to have been recorded there."""

    initiated_event_id: int
    namespace: str = ""
    workflow_id: str
    run_id: str = ""
    """Empty: whatever run is open."""
    child_workflow_only: bool = False
    asked_by: str = ""
    """The run that asked first, when a reset has taken the question over from it; empty: this run."""
    # transient
    initiated_seq: int = 0
    next_dispatch: datetime | None = None
    dispatches: int = 0


class PendingExternalSignal(PendingExternal, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """A signal to another workflow."""


class PendingExternalCancel(PendingExternal, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """A request to cancel another workflow."""


Asked = PendingChild | PendingExternalSignal | PendingExternalCancel
"""What a run has asked of another execution and waits for. One shape, so that deadlines treat all alike."""


class OwedRequest(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """What a closed run asked of another workflow and is not known to have been recorded there."""

    run_id: str
    """The run that owes it."""
    initiated_event_id: int
    initiated_seq: int
    namespace: str = ""
    workflow_id: str
    next_dispatch: datetime
    dispatches: int = 0
    asked_by: str = ""
    """As in the pending question."""


class OwedSignal(OwedRequest, frozen=True, omit_defaults=True, kw_only=True, gc=False, tag="signal"):
    """A signal."""


class OwedCancel(OwedRequest, frozen=True, omit_defaults=True, kw_only=True, gc=False, tag="cancel"):
    """A request to cancel."""


class OwedChild(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False, tag="child"):
    """A child that outlives the run which started it: its parent-close policy is not known to have been carried out,
    or, with ABANDON, its start."""

    run_id: str
    initiated_event_id: int
    initiated_seq: int
    namespace: str = ""
    workflow_id: str
    policy: ParentClosePolicy = ParentClosePolicy.TERMINATE
    watched: bool = False
    """It was only watched, and is to know that nobody does any more."""
    original_run_id: str = ""
    """As the run's ``original_run_id`` and ``root``, for a start that is still to be made."""
    root: WorkflowExecution | None = None
    next_dispatch: datetime
    dispatches: int = 0


class ParentLink(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """The run that started this chain of runs as its child; it is told how the chain ends."""

    namespace: str
    workflow_id: str
    run_id: str
    initiated_event_id: int
    original_run_id: str = ""
    """The parent's ``original_run_id``, which its resets keep; empty: ``run_id``."""


class OwedNotice(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False, tag="notice"):
    """How a chain of runs ended, for the run that waits for it: its parent, or one that watches."""

    run_id: str
    """The chain's last run."""
    initiated_event_id: int
    """Of the event that closed it."""
    initiated_seq: int
    namespace: str = ""
    workflow_id: str
    """Whom to tell."""
    waiter: ParentLink
    first_run_id: str
    workflow_type: str
    next_dispatch: datetime
    dispatches: int = 0


class OwedDeletion(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False, tag="deletion"):
    """A closed run that counts as deleted already (LC-12); what is left of it is not known to be gone."""

    run_id: str
    next_dispatch: datetime
    dispatches: int = 0


class OwedArchive(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False, tag="archive"):
    """Runs that are not known to be archived (OP-06): those that closed with a commit behind ``after_seq``, up to
    ``upto_seq``. At most one, so that it does not grow with the runs of a chain."""

    after_seq: int
    upto_seq: int
    next_dispatch: datetime
    dispatches: int = 0


OwedToOthers = OwedSignal | OwedCancel | OwedChild | OwedNotice
"""What closed runs of the id owe to other executions."""

Owed = OwedToOthers | OwedDeletion | OwedArchive
"""What is to be done yet about closed runs of the id; each has ``next_dispatch`` and ``dispatches``."""


class PendingUpdate(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """An update without an end: admitted, and accepted when ``accepted_event_id`` says so."""

    update_id: str
    admitted_event_id: int = 0
    """0 unless it was taken over from another run: else admission leaves no event."""
    accepted_event_id: int = 0
    identity: str = ""
    """Who sent it, once it is accepted."""
    # transient
    index: int = 0
    """Of its admission, ever-growing in the run; tokens refer to it."""
    request: UpdateRequest | None = None
    """Until it is accepted; then it is in the event."""
    admitted_time: datetime | None = None
    size: int = 0


class EndedUpdate(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Where the outcome of an update is."""

    update_id: str
    completed_event_id: int
    """0 when the run ended before the accepted update did."""
    # transient
    seq: int = 0
    """Seq of the commit whose events hold the Completed event."""


class WorkflowTaskState(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """The outstanding workflow task: scheduled and not closed; nobody can know whether it was started."""

    scheduled_event_id: int
    """0 for a transient one (attempt above 1), and for one that is there for updates alone (attempt 1): it gets its
    number when it is completed."""
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
    update_index: int = 0
    """Of the update that it was scheduled for, when it is there for updates alone: no two such tasks are the same."""
    kept_alive: bool = False
    """It goes on with what the task before had not finished (AC-24), and nothing had come in."""


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
    dropped: str = ""
    """Nonce of the completion behind it that dropped a workflow task which was there for updates alone."""


class Pause(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Why nothing of a run is given out."""

    time: datetime
    identity: str = ""
    reason: str = ""
    woken: bool = False
    """Something has come in since that workflow code is to see, and no workflow task is scheduled for it."""


class ExecutionState(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
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
    children: dict[int, PendingChild] = {}
    """These three by initiated event id."""
    external_signals: dict[int, PendingExternalSignal] = {}
    external_cancels: dict[int, PendingExternalCancel] = {}
    updates: dict[str, PendingUpdate] = {}
    """By update id: those that are admitted (transient) or accepted, and have no end."""
    ended_updates: tuple[EndedUpdate, ...] = ()
    """The newest ``REMEMBERED_UPDATES``, newest last; kept when the run closes."""
    update_count: int = 0
    """Accepted ones."""
    parent: ParentLink | None = None
    root: WorkflowExecution | None = None
    """The top of the tree of parents; None when it is this workflow."""
    original_run_id: str = ""
    """What a reset keeps of the run it began from; empty: the run's own id."""
    attempt: int = 1
    retry_policy: RetryPolicy | None = None
    cron_schedule: str = ""
    workflow_execution_timeout: timedelta | None = None
    workflow_run_timeout: timedelta | None = None
    """As asked for; states written before there was this field lack both timeouts."""
    first_task_at: datetime | None = None
    """While the first workflow task waits for its time: a backoff, or a start delay."""
    continued_execution_run_id: str = ""
    """The run that went before in the chain."""
    new_execution_run_id: str = ""
    """The run that goes on behind the close."""
    # transient
    seq: int = 0
    """Seq of the commit that holds this state."""
    first_seq: int = 1
    """Seq of this run's first commit."""
    prefix_tail_seq: int = 0
    """Of a run that a reset made: seq of the part of its prefix in which the first event stands that is behind the last
    completed workflow task there. 0: the run has no prefix, its history begins with its first commit."""
    numbered_seq: int = 0
    """Seq of the last commit that numbered an event; a completion from an older base is stale."""
    buffered: tuple[BufferedEvent, ...] = ()
    next_buffer_index: int = 1
    armed: datetime | None = None
    """The armed deadline, as far as commits know."""
    request_ids: tuple[str, ...] = ()
    """Recent request ids of signals and cancels, newest last, hashed; survive the run (design section 3)."""
    completion: CompletionMark | None = None
    owed: tuple[Owed, ...] = ()
    """Survives into the next run, in the order of asking."""
    last_worker_key: str = ""
    """Worker that completed the last workflow task and has the run cached."""
    waiters: tuple[ParentLink, ...] = ()
    """Runs that watch how the chain ends without being its parent; passes on within the chain."""
    priority: Priority | None = None
    """Of the started event, not transient."""
    pause: Pause | None = None
    """While it is paused (LC-11). Its event may still be in the buffer, so it is transient."""
    deleted: bool = False
    """The run is deleted, all but this state, behind which the next run of the id begins as if there had been none."""
    callbacks: tuple[Callback, ...] = ()
    """Told when the chain has ended (LC-10); of its events, not transient."""
    starts_paid_until: datetime | None = None
    """Where runs of the id may only begin so often (LC-06): up to when those that have begun use that up."""
    execution_time: datetime | None = None
    """When the code was to begin at the earliest, if that is not when the run was started; not transient."""
