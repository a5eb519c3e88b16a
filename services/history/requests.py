"""Requests: everything that can be asked of a workflow execution. ``step`` is total over this union.

Ids and time enter here as data. A request that carries results of activity items carries them as
:class:`FinishedActivity`, read by the shell just before.
"""

from datetime import datetime, timedelta

import msgspec
from stepwell.api.commands import Command, ScheduleActivityTask
from stepwell.api.common import Headers, ProcessIdentity, SdkMetadata, UserMetadata, WorkflowExecution
from stepwell.api.enums import (
    ResetReapplyExcludeType,
    WorkflowTaskFailedCause,
)
from stepwell.api.events import EventAttributes, HistoryEvent, WorkflowExecutionStarted
from stepwell.api.failures import Failure
from stepwell.api.payloads import Payloads
from stepwell.api.requests import EagerActivities, StartWorkflowRequest, WorkflowExecutionOptions
from stepwell.api.updates import UpdateRequest

from .activity_item import ActivityItem
from .answers import Discharge, ExternalDelivered
from .run_limits import RUN_LIMITS, RunLimits
from .state import ExecutionState, ParentLink
from .task_tokens import ContinuationToken, WorkflowTaskToken


class FinishedActivity(msgspec.Struct, frozen=True, gc=False):
    """An item in a finished state, as read from the store."""

    item: ActivityItem


class LeasedOutcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a log-leased attempt ended, as its worker says. Exactly one of ``failure``, ``canceled`` or neither."""

    scheduled_event_id: int
    attempt: int
    result: Payloads = ()
    failure: Failure | None = None
    canceled: bool = False
    details: Payloads = ()
    worker_shutdown: bool = False


class Worker(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    identity: str
    build_id: str = ""
    worker_key: str = ""
    holder: ProcessIdentity | None = None


class EarlierStart(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a start was answered that came before with the same request id."""

    run_id: str
    first_run_id: str
    started: bool = True
    """False: it met the run and was attached to it (LC-04)."""


class Pace(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How often runs of one workflow id may begin (LC-06)."""

    apart: timedelta = timedelta(0)
    """None begins within this time behind the beginning of the newest one."""
    every: timedelta = timedelta(0)
    """One on average; zero: as often as is asked for."""
    at_once: int = 1
    """So many may begin sooner, where none did before."""


NO_PACE = Pace()


class Start(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    run_id: str
    """For the new run, if one is made."""
    start: StartWorkflowRequest
    parent: ParentLink | None = None
    """The run that asks for a child; None when a client asks."""
    root: WorkflowExecution | None = None
    """The top of the parent's tree."""
    earlier: EarlierStart | None = None
    """The shell found it in an earlier commit, which the state may not remember."""
    waiter: ParentLink | None = None
    """Who is to hear how the chain of a new run ends, without being its parent."""
    last_completion_result: Payloads = ()
    continued_failure: Failure | None = None
    """Of the run before in a series that is no chain."""
    pace: Pace = NO_PACE
    principal: str = ""
    """Who is known to ask (MT-10), here and in what follows."""


class StartActivity(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A run that is one activity, without a workflow (AC-28)."""

    start: Start
    command: ScheduleActivityTask
    start_delay: timedelta | None = None


class OptionsChange(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Options of a run to be changed: those that ``paths`` name, which exist."""

    paths: tuple[str, ...]
    options: WorkflowExecutionOptions
    identity: str = ""
    principal: str = ""


class UpdateOptions(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    run_id: str
    change: OptionsChange


class ImportRun(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A run from elsewhere, with a history that is known to be lawful (``machines.importing``)."""

    namespace: str
    run_id: str
    events: tuple[HistoryEvent, ...]
    request_id: str = ""


class Signal(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    run_id: str
    """Empty: whatever run is open."""
    signal_name: str
    input: Payloads = ()
    identity: str = ""
    headers: Headers = {}
    request_id: str = ""
    repeat: bool = False
    """The shell found it in an earlier commit, which the state may not remember."""
    sender: WorkflowExecution | None = None
    """The workflow that sends it; None when a client does."""
    first_run_id: str = ""
    """Only for the chain of runs that began with this one."""
    principal: str = ""


class Signals(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Signals that came in while a commit of the run was under way: one transition takes them all, in order."""

    signals: "tuple[Signal | SignalWithStart, ...]"


class SignalWithStart(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Never alone, but one of :class:`Signals`. ``signal`` has the request id of the start."""

    start: Start
    signal: Signal
    taken_by: tuple[str, str] | None = None
    """Of a repeat whose signal went to an earlier run: that run, and the first of its chain."""


class AdmitUpdate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    run_id: str
    """Empty: whatever run is open."""
    request: UpdateRequest
    first_run_id: str = ""
    ended_seq: int = 0
    """The shell found it ended in an earlier commit of the run, this one, which the state may not remember."""


class UpdateWithStart(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    start: Start
    update: AdmitUpdate


class RequestCancel(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    run_id: str
    reason: str = ""
    identity: str = ""
    request_id: str = ""
    first_run_id: str = ""
    sender: WorkflowExecution | None = None
    """The workflow that asks, and its Initiated event; None when a client does."""
    sender_event_id: int = 0
    repeat: bool = False
    """The shell found it in an earlier commit, which the state may not remember."""
    principal: str = ""


class Pause(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    run_id: str
    reason: str = ""
    identity: str = ""
    request_id: str = ""
    principal: str = ""


class Unpause(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    run_id: str
    reason: str = ""
    identity: str = ""
    request_id: str = ""
    principal: str = ""


class ResetAffinity(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The worker that has the run in memory is preferred no more (TQ-07)."""

    run_id: str


class Watch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Tell this run how the workflow ends (CH-19); answered with the run that is there."""

    waiter: ParentLink


class Unwatch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """This run waits no more."""

    waiter: ParentLink


class Terminate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    run_id: str
    reason: str = ""
    details: Payloads = ()
    identity: str = ""
    first_run_id: str = ""
    principal: str = ""


class Delete(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An open run is terminated first."""

    run_id: str
    """Empty: the newest run."""
    identity: str = ""
    first_run_id: str = ""
    found: bool = False
    """The shell has seen that the log has this run, which is not the newest."""
    principal: str = ""


class RecordDeleted(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Nothing is left of that run but what the log needs of its newest commit."""

    run_id: str


class RecordArchived(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All runs of the id that closed up to that commit are archived, as far as they were to be."""

    upto_seq: int


class NextRun(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a run needs to be followed by another one of its chain, whose id is ``run_id``: how it began itself."""

    run_id: str = ""
    started: WorkflowExecutionStarted | None = None
    user_metadata: UserMetadata | None = None


NO_NEXT_RUN = NextRun()


class CompleteWorkflowTask(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The worker's answer to a workflow task (``token`` a WorkflowTaskToken) or a fused step (a ContinuationToken)."""

    token: WorkflowTaskToken | ContinuationToken
    nonce: str
    worker: Worker
    commands: tuple[Command, ...] = ()
    outcomes: tuple[LeasedOutcome, ...] = ()
    """Ends of log-leased activities that travel with it."""
    finished: tuple[FinishedActivity, ...] = ()
    """The items that the token's list names, and any finished ones that it does not."""
    workflow_time: datetime | None = None
    sdk_metadata: SdkMetadata | None = None
    eager: EagerActivities | None = None
    next_run: NextRun = NO_NEXT_RUN
    another_task: bool = False
    """Another workflow task is to follow at once, whatever has come in."""
    takes_task: bool = False
    """That task goes to the worker with the answer, so that it is offered to nobody."""
    misfit: str = ""
    """What its search attributes are against the types of the namespace; empty when nothing is wrong."""
    limits: RunLimits = RUN_LIMITS


class FailWorkflowTask(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    token: WorkflowTaskToken | ContinuationToken
    nonce: str
    worker: Worker
    cause: WorkflowTaskFailedCause
    failure: Failure
    outcomes: tuple[LeasedOutcome, ...] = ()
    finished: tuple[FinishedActivity, ...] = ()


class RecordLeasedOutcomes(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Ends of log-leased attempts that come without a workflow part."""

    run_id: str
    outcomes: tuple[LeasedOutcome, ...]


class RecordFinishedActivities(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The wake-up behind an item's end: numbers the ends if no workflow task is outstanding, else does nothing."""

    run_id: str
    finished: tuple[FinishedActivity, ...]


class LeasedHeartbeat(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Progress of a log-leased attempt, for the next one."""

    run_id: str
    scheduled_event_id: int
    attempt: int
    details: Payloads


class EndLeases(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The holder of these leases is provably gone: the attempts are over and may be made again at once."""

    run_id: str
    scheduled_event_ids: tuple[int, ...]
    reason: str


class Detach(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """From now on the items are the authority on these leased attempts, which go on. Answered with one reply each."""

    run_id: str
    attempts: tuple[tuple[int, int], ...]
    """Scheduled event id and attempt."""
    released: bool = False
    """Their functions have returned, so that they are over with nobody's process (AC-21, ADR 0004)."""


class Reset(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The prefix of the new run is written; what is asked is the switch to it."""

    run_id: str
    """The new run."""
    base_run_id: str
    state: ExecutionState
    """Of the new run, as its prefix says."""
    late: tuple[EventAttributes, ...] = ()
    """What has come in, in the base run or later in its chain, since the prefix was written, up to the head."""
    excluded: frozenset[ResetReapplyExcludeType] = frozenset()
    request_id: str = ""
    reason: str = ""
    identity: str = ""
    operations: tuple[EventAttributes | OptionsChange, ...] = ()  # LC-18
    principal: str = ""


class FireDeadline(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The armed deadline fired. Always ends in a commit of an open run (design section 7)."""

    fire_at: datetime | None = None
    """The armed time that fired, whose row is struck off behind the commit: the re-arm must be another one."""
    items: tuple[ActivityItem, ...] = ()
    """The items of all pending activities that have one, after the shell timed out those that were due."""
    next_run: NextRun = NO_NEXT_RUN


Request = (
    Start
    | StartActivity
    | ImportRun
    | Signal
    | Signals
    | AdmitUpdate
    | UpdateWithStart
    | RequestCancel
    | Watch
    | Unwatch
    | Terminate
    | Delete
    | RecordDeleted
    | RecordArchived
    | UpdateOptions
    | Pause
    | Unpause
    | ResetAffinity
    | CompleteWorkflowTask
    | FailWorkflowTask
    | RecordLeasedOutcomes
    | RecordFinishedActivities
    | LeasedHeartbeat
    | EndLeases
    | Detach
    | ExternalDelivered
    | Discharge
    | Reset
    | FireDeadline
)
