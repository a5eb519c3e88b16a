"""When a run needs attention if nothing else happens: one deadline per workflow id (design section 7).

An armed deadline may be early, never late. So a transition looks only at what it touched and keeps what is armed; the
firing, and whoever finds the armed time past, works the deadline out in full.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import chain

from . import activity_item
from .activity_item import ActivityItem, ItemState
from .apply import FIRST_REDISPATCH
from .state import Asked, ExecutionState, Owed, PendingActivity

LONGEST = timedelta(days=7)
"""No open run, and none that owes something, goes unlooked at for longer."""

LOOK_AGAIN = timedelta(seconds=1)
"""Wait until a firing that left something due is followed by the next."""

LONGEST_REDISPATCH = timedelta(days=1)
_DOUBLINGS = 12  # 30 s x 2^12 is over a day

NO_ITEMS: Mapping[int, ActivityItem] = {}


def redispatch_after(dispatches: int) -> timedelta:
    """Wait behind the n-th dispatch until the next: 30 s, doubling, at most a day."""
    return min(FIRST_REDISPATCH * (1 << min(max(dispatches - 1, 0), _DOUBLINGS)), LONGEST_REDISPATCH)


def ended_in_buffer(state: ExecutionState) -> frozenset[int]:
    """Ids of the events whose end is buffered, so that what they began is over but still pending: of log-leased
    activities their Scheduled event, of what another workflow was asked its Initiated event."""
    if not state.buffered:
        return frozenset()
    return frozenset(
        end
        for event in state.buffered
        if (
            end := getattr(event.attributes, "scheduled_event_id", 0)
            or getattr(event.attributes, "initiated_event_id", 0)
        )
    )


def asked_of_others(state: ExecutionState) -> Iterator[Asked]:
    if not (state.children or state.external_signals or state.external_cancels):
        return iter(())
    return chain(state.children.values(), state.external_signals.values(), state.external_cancels.values())


def owed_due(owed: Iterable[Owed], earliest: datetime) -> datetime:
    """``earliest``, or when something that a closed run owes is sent again before it."""
    for entry in owed:
        if entry.next_dispatch < earliest:
            earliest = entry.next_dispatch
    return earliest


def dispatch_due(pending: PendingActivity, item: ActivityItem | None) -> datetime | None:
    """When the dispatch of an item-held activity should be sent (again); None when an attempt runs or it is over."""
    if item is None:
        return pending.next_dispatch if pending.detached is None else None
    if item.state is not ItemState.SCHEDULED or item.pause is not None:
        return None
    if item.attempt > pending.attempt:
        return item.next_attempt_time or item.scheduled_time
    return pending.next_dispatch


def activity_due(
    pending: PendingActivity, item: ActivityItem | None = None, *, paused: bool = False
) -> datetime | None:
    """When the activity needs attention; without its item, the earliest that it might."""
    lease = pending.lease
    if lease is not None:
        # filled in (AC-03), start-to-close is there and never the longer of the two
        limit = pending.start_to_close_timeout or pending.schedule_to_close_timeout
        return lease.started_time + limit if limit is not None else None
    timeout = activity_item.due(item) if item is not None else activity_item.pending_due(pending)
    dispatch = None if paused else dispatch_due(pending, item)
    if timeout is None or (dispatch is not None and dispatch < timeout):
        return dispatch
    return timeout


def asked_due(pending: Iterable[Asked | None], over: Container[int], earliest: datetime) -> datetime:
    """``earliest``, or when one of these is asked again before it. ``over``: initiated events that are answered."""
    for asked in pending:
        if asked is not None and asked.next_dispatch is not None and asked.next_dispatch < earliest:
            if asked.initiated_event_id not in over:
                earliest = asked.next_dispatch
    return earliest


def _timers_due(state: ExecutionState, now: datetime, earliest: datetime) -> datetime:
    """A due timer whose workflow task is outstanding waits for that task."""
    idle = state.workflow_task is None
    for timer in state.timers.values():
        if timer.fire_time < earliest and (idle or timer.fire_time > now):
            earliest = timer.fire_time
    return earliest


def deadline(
    state: ExecutionState, now: datetime, items: Mapping[int, ActivityItem] = NO_ITEMS, *, just_fired: bool = False
) -> datetime | None:
    """The earliest time at which the state has something to do; None when it is closed and owes nothing.

    ``items`` by scheduled event id: the activity items that are known. Without an activity's item, the earliest time
    at which it might matter is taken. A due timer whose workflow task is outstanding waits for that task instead.
    ``just_fired``: an activity that is due even so is another's to end (its item just changed) and is looked at again,
    but not at once.
    """
    earliest = now + LONGEST
    if state.owed:
        earliest = owed_due(state.owed, earliest)
    if state.close_time is not None:
        return earliest if state.owed else None
    task = state.workflow_task
    if task is not None and task.next_dispatch < earliest and state.pause is None:
        earliest = task.next_dispatch
    if state.run_expires is not None and state.run_expires < earliest:
        earliest = state.run_expires
    if state.first_task_at is not None and state.first_task_at < earliest:
        earliest = state.first_task_at
    earliest = _timers_due(state, now, earliest)
    over = ended_in_buffer(state)
    earliest = asked_due(asked_of_others(state), over, earliest)
    for scheduled_event_id, pending in state.activities.items():
        if scheduled_event_id in over:
            continue
        due = activity_due(pending, items.get(scheduled_event_id) if items else None, paused=state.pause is not None)
        if due is not None and due < earliest:
            if just_fired and due <= now:
                due = min(now + LOOK_AGAIN, earliest)
            earliest = due
    return earliest
