"""The unplaced events of a run: what has happened and has no number yet, in the order in which it will be placed.

``begin`` shows them to a worker and the completion records them. Both number them here, so they are the same bytes.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec
from stepwell.api import limits
from stepwell.api.enums import RetryState
from stepwell.api.errors import Internal
from stepwell.api.events import (
    ActivityTaskCanceled,
    ActivityTaskCompleted,
    ActivityTaskFailed,
    ActivityTaskStarted,
    ActivityTaskTimedOut,
    ChildWorkflowExecutionCanceled,
    ChildWorkflowExecutionCompleted,
    ChildWorkflowExecutionFailed,
    ChildWorkflowExecutionStarted,
    ChildWorkflowExecutionTerminated,
    ChildWorkflowExecutionTimedOut,
    EventAttributes,
    TimerFired,
)
from stepwell.api.failures import Failure

from .activity_item import ActivityItem, ItemState, is_finished
from .state import BufferedEvent, ExecutionState, PendingActivity, PendingTimer, PendingUpdate
from .task_tokens import Placed, PlacedActivity, PlacedBuffered, PlacedTimer, PlacedUpdate

ActivityEnd = ActivityTaskCompleted | ActivityTaskFailed | ActivityTaskTimedOut | ActivityTaskCanceled

CHILD_ENDS = (
    ChildWorkflowExecutionCompleted,
    ChildWorkflowExecutionFailed,
    ChildWorkflowExecutionCanceled,
    ChildWorkflowExecutionTimedOut,
    ChildWorkflowExecutionTerminated,
)

_encode = msgspec.json.Encoder().encode
_RANK_BUFFERED, _RANK_ACTIVITY, _RANK_TIMER = range(3)


class Unplaced(NamedTuple):
    """Sorts by time, then kind, then id; no two are equal in all three."""

    time: datetime
    rank: int
    order: int
    placed: Placed
    started: EventAttributes | None
    attributes: EventAttributes
    size: int


class ShownUpdate(NamedTuple):
    """An admitted update among the unplaced events: shown at this place, and no event yet. Sorts with them."""

    time: datetime
    rank: int
    order: int
    placed: Placed
    update: PendingUpdate
    size: int


Shown = Unplaced | ShownUpdate


def unplaced(state: ExecutionState, now: datetime, items: Sequence[ActivityItem]) -> list[Unplaced]:
    """Everything that a workflow task which starts now can show, in order."""
    if not (items or state.buffered or state.timers):
        return []
    found = [_buffered(event) for event in state.buffered]
    for item in items:
        pending = _held_by_item(state, item.scheduled_event_id)
        if pending is not None and is_finished(item) and item.run_id == state.run_id:
            found.append(_activity(pending, item))
    if state.timers:
        found += [_timer(timer) for timer in state.timers.values() if timer.fire_time <= now]
    found.sort()
    return found


def admitted(state: ExecutionState) -> list[PendingUpdate]:
    """Updates that workflow code has not answered, in the order in which they came."""
    if not state.updates:
        return []
    return sorted((update for update in state.updates.values() if not update.accepted_event_id), key=_index)


def with_updates(state: ExecutionState, entries: list[Unplaced]) -> Sequence[Shown]:
    """What a workflow task shows: the unplaced events, and the admitted updates where they came in between."""
    updates = admitted(state)
    return sorted([*entries, *map(_update, updates)]) if updates else entries


def within_limits(entries: Sequence[Shown]) -> Sequence[Shown]:
    """As many of the first as one workflow task shows; at least one."""
    events = size = 0
    for position, entry in enumerate(entries):
        events += 0 if isinstance(entry, ShownUpdate) else 1 if entry.started is None else 2
        size += entry.size
        if position and (events > limits.MAX_PLACED_EVENTS or size > limits.MAX_PLACED_BYTES):
            return entries[:position]
    return entries


def chosen(state: ExecutionState, placed: Iterable[Placed], items: Iterable[ActivityItem]) -> list[Shown]:
    """The entries that a token lists. Raises Internal when one is not at hand, such as an item that was not read."""
    buffered = {event.index: event for event in state.buffered}
    finished = {item.scheduled_event_id: item for item in items if is_finished(item)}
    try:
        return [_entry(state, entry, buffered, finished) for entry in placed]
    except KeyError as missing:
        raise Internal(
            f"the workflow task shows an event that is not at hand ({missing}); the task will be offered again"
        ) from missing


class Begun:
    """Event ids of children's Started events, for ends that came in when those had no number yet."""

    __slots__ = ("_numbered", "_state")

    def __init__(self, state: ExecutionState) -> None:
        self._state = state
        self._numbered: dict[int, int] = {}

    def note(self, event_id: int, attributes: EventAttributes) -> None:
        if type(attributes) is ChildWorkflowExecutionStarted:
            self._numbered[attributes.initiated_event_id] = event_id

    def completed(self, attributes: EventAttributes) -> EventAttributes:
        """An end with its ``started_event_id``; anything else as it is."""
        if isinstance(attributes, CHILD_ENDS) and not attributes.started_event_id:
            initiated_event_id = attributes.initiated_event_id
            started_event_id = (
                self._numbered.get(initiated_event_id) or self._state.children[initiated_event_id].started_event_id
            )
            return msgspec.structs.replace(attributes, started_event_id=started_event_id)
        return attributes


def _entry(
    state: ExecutionState,
    entry: Placed,
    buffered: dict[int, BufferedEvent],
    finished: dict[int, ActivityItem],
) -> Shown:
    match entry:
        case PlacedBuffered(index):
            return _buffered(buffered[index])
        case PlacedActivity(scheduled_event_id):
            return _activity(state.activities[scheduled_event_id], finished[scheduled_event_id])
        case PlacedTimer(timer_id):
            return _timer(state.timers[timer_id])
        case PlacedUpdate(index):
            found = next((update for update in state.updates.values() if update.index == index), None)
            if found is None or found.accepted_event_id:
                raise KeyError(f"update {index}")
            return _update(found)


def _held_by_item(state: ExecutionState, scheduled_event_id: int) -> PendingActivity | None:
    pending = state.activities.get(scheduled_event_id)
    return pending if pending is not None and pending.lease is None else None


def _buffered(event: BufferedEvent) -> Unplaced:
    placed = PlacedBuffered(event.index)
    return Unplaced(event.time, _RANK_BUFFERED, event.index, placed, event.started, event.attributes, event.size)


def _index(update: PendingUpdate) -> int:
    return update.index


def _update(update: PendingUpdate) -> ShownUpdate:
    assert update.admitted_time is not None
    return ShownUpdate(
        update.admitted_time, _RANK_BUFFERED, update.index, PlacedUpdate(update.index), update, update.size
    )


def _timer(timer: PendingTimer) -> Unplaced:
    attributes = TimerFired(timer_id=timer.timer_id, started_event_id=timer.started_event_id)
    placed = PlacedTimer(timer.timer_id)
    return Unplaced(timer.fire_time, _RANK_TIMER, timer.started_event_id, placed, None, attributes, 64)


def _activity(pending: PendingActivity, item: ActivityItem) -> Unplaced:
    started, end = item_end(pending, item)
    size = len(_encode(end)) + (len(_encode(started)) if started is not None else 0)
    placed = PlacedActivity(item.scheduled_event_id)
    time = item.finished_time if item.finished_time is not None else pending.scheduled_time
    return Unplaced(time, _RANK_ACTIVITY, item.scheduled_event_id, placed, started, end, size)


def item_end(pending: PendingActivity, item: ActivityItem) -> tuple[ActivityTaskStarted | None, ActivityEnd]:
    """The events of a finished item. No Started event when no attempt was ever started."""
    scheduled_event_id = item.scheduled_event_id
    started = None
    if item.started_time is not None:
        started = ActivityTaskStarted(
            scheduled_event_id=scheduled_event_id,
            identity=item.identity,
            attempt=item.attempt,
            last_failure=item.last_failure,
            started_time=item.started_time,
        )
    failure = item.failure if item.failure is not None else Failure()
    retry_state = item.retry_state if item.retry_state is not None else RetryState.IN_PROGRESS
    end: ActivityEnd
    match item.state:
        case ItemState.COMPLETED:
            end = ActivityTaskCompleted(
                result=item.result, scheduled_event_id=scheduled_event_id, started_event_id=0, identity=item.identity
            )
        case ItemState.FAILED:
            end = ActivityTaskFailed(
                failure=failure,
                scheduled_event_id=scheduled_event_id,
                started_event_id=0,
                identity=item.identity,
                retry_state=retry_state,
            )
        case ItemState.TIMED_OUT:
            end = ActivityTaskTimedOut(failure=failure, scheduled_event_id=scheduled_event_id, retry_state=retry_state)
        case ItemState.CANCELED:
            end = ActivityTaskCanceled(
                details=item.result,
                latest_cancel_requested_event_id=pending.cancel_requested_event_id,
                scheduled_event_id=scheduled_event_id,
                identity=item.identity,
            )
        case ItemState.SCHEDULED | ItemState.STARTED:
            raise ValueError(f"activity {item.activity_id!r} is {item.state.value}, it has no end yet")
    return started, end
