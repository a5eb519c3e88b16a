"""Requests: everything that can be asked of a workflow execution. ``step`` is total over this union.

Ids and time enter here as data. A request that carries results of activity items carries them as
:class:`FinishedActivity`, read by the shell just before.
"""

from datetime import datetime

import msgspec
from stepwell.api.commands import Command
from stepwell.api.common import Headers, ProcessIdentity, SdkMetadata, UserMetadata, WorkflowExecution
from stepwell.api.enums import (
    CancelExternalWorkflowExecutionFailedCause,
    ResetReapplyExcludeType,
    SignalExternalWorkflowExecutionFailedCause,
    StartChildWorkflowExecutionFailedCause,
    WorkflowTaskFailedCause,
)
from stepwell.api.events import EventAttributes, StartChildWorkflowExecutionInitiated, WorkflowExecutionStarted
from stepwell.api.failures import Failure
from stepwell.api.payloads import Payloads
from stepwell.api.requests import EagerActivities, StartWorkflowRequest
from stepwell.api.updates import UpdateRequest

from .activity_item import ActivityItem
from .state import ExecutionState, ParentLink


class PlacedBuffered(msgspec.Struct, frozen=True, tag="b", array_like=True, gc=False):
    """The buffered event with this index."""

    index: int


class PlacedActivity(msgspec.Struct, frozen=True, tag="a", array_like=True, gc=False):
    """The end of this item-held activity."""

    scheduled_event_id: int


class PlacedTimer(msgspec.Struct, frozen=True, tag="t", array_like=True, gc=False):
    """The firing of this pending timer."""

    timer_id: str


class PlacedUpdate(msgspec.Struct, frozen=True, tag="u", array_like=True, gc=False):
    """The admitted update with this index: shown at this place. It is no event unless it is accepted."""

    index: int


Placed = PlacedBuffered | PlacedActivity | PlacedTimer | PlacedUpdate


class WorkflowTaskToken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the engine says, signed, when it hands out a workflow task; the completion brings it back."""

    namespace: str
    workflow_id: str
    run_id: str
    base: int
    """Seq of the head when the task was handed out."""
    attempt: int
    placed: tuple[Placed, ...]
    """Exactly what the completion puts before WorkflowTaskStarted, in order."""
    started_time: datetime
    """Workflow time of the task."""
    refused_closes: int = 0
    ahead: datetime | None = None
    """Given out before the firing that scheduled the task was written (``firing_ahead``): the time of that firing's
    events. ``base`` is the head then."""


class ContinuationToken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Given with an accepted completion: the right to send a fused step on top of it."""

    namespace: str
    workflow_id: str
    run_id: str
    base: int
    """Seq of the completion's commit."""


class ActivityToken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Names one attempt of one activity."""

    namespace: str
    workflow_id: str
    run_id: str
    scheduled_event_id: int
    attempt: int
    leased: bool
    activity_id: str = ""
    stamp: int = 0
    """Tells attempts of one number apart (``ActivityItem.stamp``)."""


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


class Start(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    run_id: str
    """For the new run, if one is made."""
    start: StartWorkflowRequest
    parent: ParentLink | None = None
    """The run that asks for a child; None when a client asks."""
    root: WorkflowExecution | None = None
    """The top of the parent's tree."""
    repeat: bool = False
    """The shell found the run ``run_id`` in an earlier commit, which the state may not remember."""


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


class Delivery(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of a signal or a request to cancel: delivered, or refused with ``cause``."""

    run_id: str
    """The run that asked."""
    initiated_event_id: int
    workflow_task_completed_event_id: int
    namespace: str = ""
    execution: WorkflowExecution
    cause: SignalExternalWorkflowExecutionFailedCause | CancelExternalWorkflowExecutionFailedCause | None = None


class ChildAnswer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of the start of a child: it is there, or refused with ``cause``."""

    run_id: str
    """The parent's."""
    initiated_event_id: int
    child_run_id: str = ""
    """First run of the child's chain; empty when there is no child."""
    asked: StartChildWorkflowExecutionInitiated
    cause: StartChildWorkflowExecutionFailedCause | None = None
    workflow_type: str = ""
    """Of what is watched."""


class ChildClosed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a chain of runs ended, for the run that waits for it."""

    waiter: ParentLink
    workflow_id: str
    first_run_id: str
    workflow_type: str
    close: EventAttributes
    """The event that closed the chain's last run."""

    @property
    def run_id(self) -> str:
        return self.waiter.run_id


class Discharged(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a closed run owed is done, or needs no doing any more."""

    run_id: str
    initiated_event_id: int
    waiter: ParentLink | None = None
    """Of a notice: who was told."""


Answer = Delivery | ChildAnswer | ChildClosed | Discharged


class ExternalDelivered(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Answers for the run that asked; those for a run that has closed meanwhile discharge what it owes."""

    deliveries: tuple[Answer, ...]


class Discharge(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Answers for runs that are closed: what they owed is owed no more. One commit for all of it."""

    deliveries: tuple[Answer, ...]


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
    operations: tuple[EventAttributes, ...] = ()  # LC-18


class FireDeadline(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The armed deadline fired. Always ends in a commit of an open run (design section 7)."""

    fire_at: datetime | None = None
    """The armed time that fired, whose row is struck off behind the commit: the re-arm must be another one."""
    items: tuple[ActivityItem, ...] = ()
    """The items of all pending activities that have one, after the shell timed out those that were due."""
    next_run: NextRun = NO_NEXT_RUN


Request = (
    Start
    | Signal
    | Signals
    | AdmitUpdate
    | UpdateWithStart
    | RequestCancel
    | Watch
    | Unwatch
    | Terminate
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
