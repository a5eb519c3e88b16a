"""The draft of one transition: the machines decide on it, ``finish`` closes it.

It copies the state once (O(pending) at C speed) and then changes only its own copy, so that a transition of thousands
of events costs what its events cost.
"""

from collections.abc import Mapping
from copy import copy
from datetime import datetime, timedelta

import msgspec
from stepwell.api.common import UserMetadata
from stepwell.api.events import (
    ActivityTaskScheduled,
    ChildWorkflowExecutionStarted,
    EventAttributes,
    HistoryEvent,
    RequestCancelExternalWorkflowExecutionInitiated,
    SignalExternalWorkflowExecutionInitiated,
    StartChildWorkflowExecutionInitiated,
    TimerStarted,
    WorkflowExecutionStarted,
)

from . import deadlines
from .activity_item import ActivityItem
from .apply import apply, opened
from .commit import ClosedRun, RejectedUpdate
from .run_limits import RUN_LIMITS
from .state import (
    Asked,
    ExecutionState,
    Owed,
    PendingActivity,
    PendingChild,
    PendingExternalCancel,
    PendingExternalSignal,
)
from .tasks import Task
from .transition import Reply, Transition

_NEXT_ROW = timedelta(milliseconds=1)
"""Armed times are rows of their own down to this."""

_ASKS = frozenset(
    {
        StartChildWorkflowExecutionInitiated,
        ChildWorkflowExecutionStarted,
        SignalExternalWorkflowExecutionInitiated,
        RequestCancelExternalWorkflowExecutionInitiated,
    }
)
"""Events behind which something is waited for of another execution, with a time of its own."""


def unchanged(state: ExecutionState, reply: Reply = None) -> Transition:
    """Nothing to commit, only a reply."""
    return Transition(state=state, changed=False, reply=reply)


def owes(state: ExecutionState) -> bool:
    """Whether there is work to hand on from this state after a restart: queues, and what others are to be told."""
    return state.workflow_task is not None or bool(
        state.activities or state.children or state.external_signals or state.external_cancels or state.owed
    )


def _pass_on(before: ExecutionState, state: ExecutionState) -> None:
    """What a run takes over from the one before it of the same workflow id."""
    state.seq = before.seq
    state.request_ids = before.request_ids
    state.owed = before.owed
    state.starts_paid_until = before.starts_paid_until


def _copied(state: ExecutionState) -> ExecutionState:
    """A state that may be changed while ``state`` stays as it is."""
    draft = msgspec.structs.replace(state)
    # Displays and assignments: named arguments and calls of ``dict`` would make this twice as dear.
    draft.activities = {**state.activities}
    draft.activity_ids = {**state.activity_ids}
    draft.timers = {**state.timers}
    draft.children = {**state.children}
    draft.external_signals = {**state.external_signals}
    draft.external_cancels = {**state.external_cancels}
    draft.updates = {**state.updates}
    return draft


class TransitionBuilder:
    """``state`` is the draft's own; what has a deadline is changed by ``put_…`` only, all else freely."""

    __slots__ = (
        "_activities",
        "_asked",
        "_closed",
        "_had_task",
        "_owed",
        "_owed_before",
        "_timers",
        "ended",
        "events",
        "limits",
        "noted",
        "now",
        "rejected",
        "shown_updates",
        "state",
        "tasks",
        "woken",
    )

    def __init__(self, state: ExecutionState, now: datetime) -> None:
        draft = _copied(state)
        draft.seq += 1
        self.now = now
        self.limits = RUN_LIMITS
        self.tasks: list[Task] = []
        self._closed: ClosedRun | None = None
        self.rejected: list[RejectedUpdate] = []
        self._begin(draft)
        if state.buffered:
            self.ended.update(deadlines.ended_in_buffer(state))

    def _begin(self, state: ExecutionState) -> None:
        """Nothing has happened to this run in this draft yet."""
        self.state = state
        self.events: list[HistoryEvent] = []
        self.woken = False
        """Something came in that workflow code should see."""
        self.noted = False
        """Something came in that is buffered, and workflow code need not see."""
        self.ended: set[int] = set()
        """Ids of the Scheduled and Initiated events whose end is buffered."""
        self.shown_updates: dict[str, int] = {}
        """Admitted updates that the workflow task to be completed has shown, each with the event it came behind."""
        self._owed = owes(state)
        self._owed_before = state.owed
        self._had_task = state.workflow_task is not None
        self._activities: list[int] = []
        self._timers: list[str] = []
        self._asked: list[int] = []

    @classmethod
    def opening(
        cls,
        head: ExecutionState | None,
        attributes: WorkflowExecutionStarted,
        namespace: str,
        now: datetime,
        user_metadata: UserMetadata | None = None,
    ) -> "TransitionBuilder":
        """A draft that begins a run behind ``head`` (closed, or None), with the run's first event recorded."""
        event = HistoryEvent(event_id=1, event_time=now, attributes=attributes, user_metadata=user_metadata)
        state = opened(event, attributes, namespace)
        if head is not None:
            # What the closed run had armed may have fired since, which one that owes nothing does not record.
            _pass_on(head, state)
        draft = cls(state, now)
        draft.state.first_seq = draft.state.seq
        draft.events.append(event)
        return draft

    @classmethod
    def importing(
        cls, head: ExecutionState | None, first: HistoryEvent, namespace: str, run_id: str, now: datetime
    ) -> "TransitionBuilder":
        """The same with a first event from elsewhere, as it is."""
        if not isinstance(first.attributes, WorkflowExecutionStarted):
            raise ValueError("a history begins with WorkflowExecutionStarted")
        state = opened(first, first.attributes, namespace, run_id)
        if head is not None:
            _pass_on(head, state)
        draft = cls(state, now)
        draft.state.first_seq = draft.state.seq
        draft.events.append(first)
        return draft

    @classmethod
    def resuming(cls, head: ExecutionState, state: ExecutionState, now: datetime) -> "TransitionBuilder":
        """A draft that begins a run behind ``head``, which is closed, from ``state``, all that its prefix says."""
        state = copy(state)
        _pass_on(head, state)
        draft = cls(state, now)
        draft.state.first_seq = draft.state.seq
        return draft

    def succeed(self, attributes: WorkflowExecutionStarted, user_metadata: UserMetadata | None = None) -> None:
        """Goes on with a draft of the run that follows the one which this draft has just closed, with the next run's
        first event recorded. Both become one commit. What its machines call is ``succession.succeed``.

        Tasks stay: those that the close has left name their run themselves, and all later ones are the next run's.
        """
        closed = self._closed_run()
        event = HistoryEvent(event_id=1, event_time=self.now, attributes=attributes, user_metadata=user_metadata)
        self._follow(closed, opened(event, attributes, closed.namespace))
        self.events.append(event)

    def succeed_with(self, state: ExecutionState) -> None:
        """The same with a run whose history begins with a prefix, and ``state`` is all that it says."""
        self._follow(self._closed_run(), _copied(state))

    def _closed_run(self) -> ExecutionState:
        closed = self.state
        if closed.close_time is None or self._closed is not None:
            raise ValueError(f"run {closed.run_id} is to be followed, but is open, or follows another in this commit")
        closed.numbered_seq = closed.seq
        self._closed = ClosedRun(state=closed, events=tuple(self.events))
        if self.now < closed.last_event_time:
            self.now = closed.last_event_time
        return closed

    def _follow(self, closed: ExecutionState, state: ExecutionState) -> None:
        _pass_on(closed, state)
        closed.owed = ()
        state.first_seq = closed.seq
        mark = closed.completion
        if mark is not None and mark.seq == closed.seq:
            state.completion = msgspec.structs.replace(mark, run_id=closed.run_id)
        self._begin(state)

    def record(
        self, attributes: EventAttributes, time: datetime | None = None, user_metadata: UserMetadata | None = None
    ) -> HistoryEvent:
        """Numbers an event and applies it. Its time is ``time`` or now, but never before the last event's."""
        state = self.state
        event_time = self.now if time is None else time
        if event_time < state.last_event_time:
            event_time = state.last_event_time
        event = HistoryEvent(
            event_id=state.next_event_id,
            event_time=event_time,
            attributes=attributes,
            user_metadata=user_metadata,
        )
        apply(state, event)
        self.events.append(event)
        if type(attributes) is ActivityTaskScheduled:
            self._activities.append(event.event_id)
        elif type(attributes) is TimerStarted:
            self._timers.append(attributes.timer_id)
        elif type(attributes) in _ASKS:
            self._asked.append(getattr(attributes, "initiated_event_id", event.event_id))
        return event

    def record_as_shown(self, event: HistoryEvent) -> None:
        """Records an event exactly as a worker has seen it."""
        if event.event_id != self.state.next_event_id:
            raise ValueError(f"event {event.event_id} was shown, but the next one is {self.state.next_event_id}")
        apply(self.state, event)
        self.events.append(event)

    def put_activity(self, pending: PendingActivity) -> None:
        """Replaces a pending activity; its new due time counts for the deadline."""
        self.state.activities[pending.scheduled_event_id] = pending
        self._activities.append(pending.scheduled_event_id)

    def put_asked(self, asked: Asked) -> None:
        """Replaces what was asked of another execution and is not answered; its new time counts for the deadline."""
        initiated_event_id = asked.initiated_event_id
        match asked:
            case PendingChild():
                self.state.children[initiated_event_id] = asked
            case PendingExternalSignal():
                self.state.external_signals[initiated_event_id] = asked
            case PendingExternalCancel():
                self.state.external_cancels[initiated_event_id] = asked
        self._asked.append(initiated_event_id)

    def put_owed(self, owed: tuple[Owed, ...]) -> None:
        """Replaces what closed runs of the id still owe."""
        self.state.owed = owed

    @property
    def dirty(self) -> bool:
        """Whether there is anything to commit: whatever comes in makes an event, a task or a buffered event, or
        discharges something."""
        return bool(self.events or self.tasks or self.woken or self.noted or self.state.owed is not self._owed_before)

    def finish(
        self,
        reply: Reply = None,
        *,
        firing: bool = False,
        fired: datetime | None = None,
        items: Mapping[int, ActivityItem] = deadlines.NO_ITEMS,
    ) -> Transition:
        """The transition. ``firing``: a deadline fired, so the next one is worked out in full, from ``items`` too.
        ``fired`` is its time; it may lie ahead of a clock that went back, and is struck off all the same."""
        state = self.state
        if self.events:
            state.numbered_seq = state.seq
        deadline = self._deadline(firing, items)
        arm = None
        if deadline is not None:
            armed = state.armed
            if deadline == fired:
                deadline += _NEXT_ROW
            if armed is None or armed <= self.now or deadline < armed or armed == fired:
                state.armed = arm = deadline
        owed = owes(state)
        return Transition(
            state=state,
            changed=True,
            events=tuple(self.events),
            tasks=tuple(self.tasks),
            deadline=deadline,
            arm=arm,
            owes=None if owed == self._owed and state.seq > state.first_seq else owed,
            closed=self._closed,
            rejected=tuple(self.rejected),
            reply=reply,
        )

    def _deadline(self, firing: bool, items: Mapping[int, ActivityItem]) -> datetime | None:
        state = self.state
        if state.close_time is not None and not state.owed:
            return None
        armed = state.armed
        if firing:
            return deadlines.deadline(state, self.now, items, just_fired=True)
        if armed is None or armed <= self.now:
            return deadlines.deadline(state, self.now)
        return self._touched(armed)

    def _touched(self, earliest: datetime) -> datetime:
        """The armed time, or what this transition made due before it."""
        state = self.state
        if state.owed is not self._owed_before:
            earliest = deadlines.owed_due(state.owed, earliest)
        if state.close_time is not None:
            return earliest
        task = state.workflow_task
        if task is not None and task.next_dispatch < earliest:
            earliest = task.next_dispatch
        if state.run_expires is not None and state.run_expires < earliest:
            earliest = state.run_expires
        timers = self._timers
        if task is None and self._had_task:
            # A firing left due timers to the task that is done now; after a jump of the clock they are not due any
            # more.
            timers = list(state.timers)
        for timer_id in timers:
            timer = state.timers.get(timer_id)
            if timer is not None and timer.fire_time < earliest:
                earliest = timer.fire_time
        return self._touched_elsewhere(earliest)

    def _touched_elsewhere(self, earliest: datetime) -> datetime:
        """Of what runs outside: other executions, activities."""
        state = self.state
        if self._asked:
            earliest = deadlines.asked_due([_pending(state, asked) for asked in self._asked], self.ended, earliest)
        for scheduled_event_id in self._activities:
            pending = state.activities.get(scheduled_event_id)
            due = deadlines.activity_due(pending) if pending is not None else None
            if due is not None and due < earliest:
                earliest = due
        return earliest


def _pending(state: ExecutionState, initiated_event_id: int) -> Asked | None:
    return (
        state.external_signals.get(initiated_event_id)
        or state.children.get(initiated_event_id)
        or state.external_cancels.get(initiated_event_id)
    )
