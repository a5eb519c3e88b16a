"""The outcome of one step, and the builder through which machines make it."""

from datetime import datetime

import msgspec
from stepwell.api.enums import CompletionOutcome, SuggestContinueAsNewReason
from stepwell.api.errors import ApiError
from stepwell.api.events import HistoryEvent
from stepwell.api.requests import ActivityOutcomeReply

from .commit import ClosedRun, RejectedUpdate
from .state import ExecutionState
from .tasks import Task


class StartReply(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    run_id: str
    first_run_id: str
    started: bool


class LeaseGranted(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    activity_id: str
    scheduled_event_id: int


class CompletionReply(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """``seq`` is the base of the continuation token: the seq of the completion's own commit."""

    outcome: CompletionOutcome
    run_id: str
    seq: int = 0
    started_event_id: int = 0
    next_event_id: int = 0
    history_size: int = 0
    suggested: tuple[SuggestContinueAsNewReason, ...] = ()
    fusible: bool = False
    leases: tuple[LeaseGranted, ...] = ()
    outcome_replies: tuple[ActivityOutcomeReply, ...] = ()
    message: str = ""


class OutcomesReply(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    outcome_replies: tuple[ActivityOutcomeReply, ...]


class ResetReply(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """``run_id`` is the new run, of this reset or of an earlier one that this one repeats."""

    run_id: str


class SignalsReply(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Per signal, in order: None when it is recorded (now or before), else why it is not."""

    refusals: tuple[ApiError | None, ...]
    starts: tuple[StartReply | None, ...] = ()
    """The run that it went to, of those that start one if none is open."""


class UpdateReply(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where the update is: in this run, and if ``ended_seq`` is set, ended in that commit."""

    run_id: str
    ended_seq: int = 0
    start: StartReply | None = None
    """For a call that starts a run if none is open."""


Reply = StartReply | CompletionReply | OutcomesReply | SignalsReply | UpdateReply | ResetReply | None


class Transition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """``changed`` False: there is nothing to commit, only a reply. ``state`` has its ``seq`` set for the commit."""

    state: ExecutionState
    changed: bool
    events: tuple[HistoryEvent, ...] = ()
    tasks: tuple[Task, ...] = ()
    deadline: datetime | None = None
    """The state's own next deadline; None when nothing is ever due."""
    arm: datetime | None = None
    """Arm this before the commit; None when what is armed fires early enough."""
    owes: bool | None = None
    closed: ClosedRun | None = None
    """The run that this transition closed before it opened the one that all else here is of."""
    rejected: tuple[RejectedUpdate, ...] = ()
    reply: Reply = None
    refusal: ApiError | None = None
    """Raised to the caller once the transition is committed: it was done in place of what was asked for."""
