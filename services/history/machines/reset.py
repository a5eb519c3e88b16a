"""Reset: a run that goes on from an earlier point of a history of its workflow id (LC-13 to LC-17).

The new run's history begins with a *prefix*: the base run's events up to the point, the started workflow task failed
with RESET_WORKFLOW, and what came in behind the point. A prefix may be as long as a history, so it is written in parts
before the one commit that ends the current run and begins the new one; until then nobody sees it.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec
from stepwell.api import limits
from stepwell.api.enums import ResetReapplyExcludeType, WorkflowTaskFailedCause
from stepwell.api.errors import InvalidArgument
from stepwell.api.events import (
    EventAttributes,
    HistoryEvent,
    WorkflowExecutionStarted,
    WorkflowExecutionTerminated,
    WorkflowTaskFailed,
    WorkflowTaskStarted,
)
from stepwell.api.failures import Failure, ServerFailureInfo

from .. import placement, request_ids
from ..apply import apply, opened
from ..builder import TransitionBuilder, unchanged
from ..commit import BEGINNING
from ..deadlines import asked_of_others
from ..requests import OptionsChange, Reset
from ..state import (
    ExecutionState,
    OwedArchive,
    OwedCancel,
    OwedChild,
    OwedDeletion,
    OwedSignal,
    OwedToOthers,
    PendingUpdate,
)
from ..tasks import DispatchActivityTask
from ..transition import ResetReply, Transition
from . import activity, closing, crossing, inbox, options, succession, update
from .reapplying import Excluded, knows_update, may_count_again, reapplied

_replace = msgspec.structs.replace

PART_BYTES = 512 * 1024
PART_EVENTS = 1_000
"""A part of a prefix is closed when it has reached one of these."""


class Prefix:
    """Makes a prefix from the events that it is given in order, part by part."""

    def __init__(self, namespace: str, run_id: str, excluded: Excluded) -> None:
        self._namespace = namespace
        self._run_id = run_id
        self._excluded = excluded
        self._state: ExecutionState | None = None
        self._recorded_by = ""
        """The run that recorded what was added last: the base run, or one that it goes on from itself."""
        self._seq = BEGINNING + 1
        self._part: list[HistoryEvent] = []
        self._began_at = 0
        self._full: list[tuple[int, tuple[HistoryEvent, ...]]] = []

    @property
    def state(self) -> ExecutionState:
        """What the prefix says so far."""
        if self._state is None:
            raise ValueError("a prefix begins with WorkflowExecutionStarted")
        return self._state

    def add(self, event: HistoryEvent) -> None:
        """The next event of the base run, as it is."""
        attributes = event.attributes
        if self._state is None:
            if not isinstance(attributes, WorkflowExecutionStarted):
                raise ValueError("a prefix begins with WorkflowExecutionStarted")
            self._state = opened(event, attributes, self._namespace, self._run_id)
            self._recorded_by = attributes.original_execution_run_id
            self._state.prefix_tail_seq = self._state.seq = self._seq
        else:
            if event.event_id == self._state.previous_started_event_id + 2:
                self._state.prefix_tail_seq = self._seq
            apply(self._state, event)
            if isinstance(attributes, WorkflowTaskFailed) and attributes.new_run_id:
                self._recorded_by = attributes.new_run_id
        self._part.append(event)
        if len(self._part) >= PART_EVENTS or self.state.history_size - self._began_at >= PART_BYTES:
            self._close_part()

    def fail_task(self, reason: str, identity: str, now: datetime, *, principal: str = "") -> None:
        """Ends the part that is the base run's: the workflow task there fails, since a reset replaces it."""
        state = self.state
        task = state.workflow_task
        if task is None:
            raise ValueError(f"no workflow task is open behind event {state.next_event_id - 1}")
        started_event_id = state.next_event_id - 1
        if not self._part_ends_with_started():
            started = WorkflowTaskStarted(
                scheduled_event_id=task.scheduled_event_id, history_size_bytes=state.history_size
            )
            started_event_id = self._record(started, now)
        self._record(
            WorkflowTaskFailed(
                scheduled_event_id=task.scheduled_event_id,
                started_event_id=started_event_id,
                cause=WorkflowTaskFailedCause.RESET_WORKFLOW,
                failure=Failure(message=reason, info=ServerFailureInfo()) if reason else None,
                identity=identity,
                base_run_id=self._recorded_by,
                new_run_id=self._run_id,
                principal=principal,
            ),
            now,
        )

    def reapply(self, attributes: EventAttributes, now: datetime) -> None:
        """Something that came in behind the point. Raises InvalidArgument when it is too much for one run."""
        again = reapplied(self.state, attributes, self._excluded)
        if again is not None:
            self._record(again, now)
            check_signals(self.state)

    def take_parts(self, *, last: bool = False) -> list[tuple[int, tuple[HistoryEvent, ...]]]:
        """The parts that are full by now, each with its seq; with ``last``, also the one that was begun."""
        if last and self._part:
            self._close_part()
        full, self._full = self._full, []
        return full

    def _part_ends_with_started(self) -> bool:
        newest = self._part[-1] if self._part else self._full[-1][1][-1] if self._full else None
        return newest is not None and isinstance(newest.attributes, WorkflowTaskStarted)

    def _record(self, attributes: EventAttributes, now: datetime) -> int:
        state = self.state
        event = HistoryEvent(
            event_id=state.next_event_id, event_time=max(now, state.last_event_time), attributes=attributes
        )
        self.add(event)
        return event.event_id

    def _close_part(self) -> None:
        self._full.append((self._seq, tuple(self._part)))
        self._part = []
        self._seq += 1
        self._began_at = self.state.history_size
        self.state.seq = self._seq


def check_signals(state: ExecutionState) -> None:
    if state.signal_count > limits.MAX_SIGNALS_PER_RUN:
        raise InvalidArgument(
            f"the reset of workflow {state.workflow_id!r} would take over more signals than one run takes "
            f"({limits.MAX_SIGNALS_PER_RUN}). Exclude signals, or reset to a later point or run.",
            field="reset_reapply_exclude_types",
        )


def reset(head: ExecutionState, request: Reset, now: datetime) -> Transition:
    """Ends the current run if it is open, whichever was the base, and begins the new one.

    Raises InvalidArgument when what came in meanwhile is too much for one run.
    """
    known = request_ids.reset_run(head, request.request_id)
    if known is not None:
        return unchanged(head, ResetReply(run_id=known))
    late = list(request.late)
    waiting: list[PendingUpdate] = []
    if head.close_time is None:
        draft = TransitionBuilder(head, now)
        goes_on = head.first_run_id == request.state.first_run_id
        if goes_on:
            late += _buffered(head, of_base=head.run_id == request.base_run_id)
            waiting = _unanswered(head, request.excluded)
        _end(draft, request, goes_on=goes_on)
        draft.succeed_with(request.state)
        if goes_on:
            draft.state.waiters = head.waiters
    else:
        draft = TransitionBuilder.resuming(head, request.state, now)
    _take_over(draft, head, request)
    draft.now = max(draft.now, draft.state.last_event_time)
    for attributes in late:
        again = reapplied(draft.state, attributes, request.excluded)
        if again is not None:
            draft.record(again)
    for operation in request.operations:
        _operate(draft, operation, request.run_id)
    check_signals(draft.state)
    update.take_over(draft)
    update.pass_on(draft, [pending for pending in waiting if not knows_update(draft.state, pending.update_id)])
    request_ids.remember_reset(draft.state, request.request_id, request.run_id)
    _begin(draft)
    return draft.finish(ResetReply(run_id=request.run_id))


def _operate(draft: TransitionBuilder, operation: EventAttributes | OptionsChange, run_id: str) -> None:
    """What came with the reset (LC-18)."""
    event = options.changed(draft.state, operation, run_id) if isinstance(operation, OptionsChange) else operation
    if event is not None:
        draft.record(event)


def _buffered(head: ExecutionState, *, of_base: bool) -> Sequence[EventAttributes]:
    """What the current run has not numbered, and must not be lost with it."""
    return [entry.attributes for entry in head.buffered if may_count_again(entry.attributes, of_base=of_base)]


def _unanswered(head: ExecutionState, excluded: Excluded) -> list[PendingUpdate]:
    """Updates that are admitted to the current run alone, by no event; their callers wait."""
    if ResetReapplyExcludeType.UPDATE in excluded:
        return []
    return [pending for pending in placement.admitted(head) if not pending.admitted_event_id]


def _end(draft: TransitionBuilder, request: Reset, *, goes_on: bool) -> None:
    """In the same chain, who waits for its end, as a parent does, hears nothing yet (CH-17)."""
    inbox.flush(draft)
    reason = f"reset: run {request.run_id} goes on from run {request.base_run_id}"
    closing.close(
        draft,
        WorkflowExecutionTerminated(
            reason=f"{reason} ({request.reason})" if request.reason else reason,
            identity=request.identity,
            new_execution_run_id=request.run_id if goes_on else "",
            principal=request.principal,
        ),
        goes_on=goes_on,
    )


def _take_over(draft: TransitionBuilder, head: ExecutionState, request: Reset) -> None:
    """What the base run has asked of others within the prefix is the new run's from now on: no parent-close policy
    reaches its children, and nothing is delivered for both."""
    state = draft.state
    owed = tuple(
        [
            entry
            for entry in state.owed
            if isinstance(entry, OwedDeletion | OwedArchive) or not _is_taken_over(entry, head, request)
        ]
    )
    if len(owed) < len(state.owed):
        draft.put_owed(owed)


def _is_taken_over(entry: OwedToOthers, head: ExecutionState, request: Reset) -> bool:
    asked = entry.initiated_event_id
    state = request.state
    match entry:
        case OwedChild(run_id=run_id):
            taken = state.children.get(asked)
            if taken is None:
                return False
            if run_id == request.base_run_id:
                return True
            # Another run that was reset to a later point has the same child, unless it has asked for one of its own.
            pending = head.children.get(asked) if run_id == head.run_id else None
            return pending is not None and pending.run_id == taken.run_id != ""
        case OwedSignal(run_id=request.base_run_id):
            return asked in state.external_signals
        case OwedCancel(run_id=request.base_run_id):
            return asked in state.external_cancels
    return False


def _begin(draft: TransitionBuilder) -> None:
    """What was pending at the point is dispatched anew: items of activities belong to their run."""
    succession.first_task(draft)
    for pending in draft.state.activities.values():
        if pending.cancel_requested_event_id:
            draft.tasks.append(activity.told_of_cancel(draft, pending))
        else:
            draft.tasks.append(
                DispatchActivityTask(scheduled_event_id=pending.scheduled_event_id, task_queue=pending.task_queue)
            )
    for asked in list(asked_of_others(draft.state)):
        # Also what was answered behind the point: a child may have ended since, while its parent was closed.
        draft.put_asked(_replace(asked, next_dispatch=draft.now, dispatches=0))
    crossing.dispatch_again(draft)
