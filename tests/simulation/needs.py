"""When a state or an item needs a deadline; written from the design, not from the product."""

from collections.abc import Collection
from datetime import datetime, timedelta

from stepwell.api.enums import WorkflowExecutionStatus

from stepwell_server.history.activity_item import ActivityItem, ItemState
from stepwell_server.history.state import ExecutionState, PendingActivity
from tests.simulation.violation import Violation

_LONGEST_DEADLINE = timedelta(days=7)


def earliest_need(state: ExecutionState, now: datetime, with_item: Collection[int] = ()) -> datetime | None:
    """The latest time by which a deadline has to fire for this state. ``with_item``: activities whose items are the
    authority on their attempts (``item_need``)."""
    needs = [owed.next_dispatch for owed in state.owed]
    if state.status is not WorkflowExecutionStatus.RUNNING:
        return min(needs, default=None)
    needs.append(now + _LONGEST_DEADLINE)
    if state.run_expires is not None:
        needs.append(state.run_expires)
    task = state.workflow_task
    if state.first_task_at is not None:
        needs.append(state.first_task_at)
    if task is None:
        needs.extend(timer.fire_time for timer in state.timers.values())
    else:
        needs.append(max(task.next_dispatch, task.not_before or task.next_dispatch))
    over = {getattr(entry.attributes, "scheduled_event_id", 0) for entry in state.buffered}
    answered = {getattr(entry.attributes, "initiated_event_id", 0) for entry in state.buffered}
    for asked in (*state.children.values(), *state.external_signals.values(), *state.external_cancels.values()):
        if asked.next_dispatch is not None and asked.initiated_event_id not in answered:
            needs.append(asked.next_dispatch)
    for activity in state.activities.values():
        need = _activity_need(activity, detached=activity.scheduled_event_id not in with_item)
        if need is not None and activity.scheduled_event_id not in over:
            needs.append(need)
    return min(needs)


def _activity_need(activity: PendingActivity, *, detached: bool) -> datetime | None:
    """``detached``: an attempt that was left open is known by this state alone."""
    lease = activity.lease or (activity.detached if detached else None)
    if lease is None:
        return None
    ends = []
    if activity.start_to_close_timeout is not None:
        ends.append(lease.started_time + activity.start_to_close_timeout)
    if activity.schedule_to_close_timeout is not None:
        ends.append(activity.scheduled_time + activity.schedule_to_close_timeout)
    if not ends:
        raise Violation(f"log-leased activity {activity.scheduled_event_id} has no timeout that would ever end it")
    return min(ends)


def item_need(item: ActivityItem) -> datetime | None:
    """When the attempt that the item describes needs a deadline."""
    if item.state is ItemState.SCHEDULED:
        return None
    if item.state is not ItemState.STARTED or item.started_time is None:
        return None
    ends = []
    if item.start_to_close_timeout is not None:
        ends.append(item.started_time + item.start_to_close_timeout)
    if item.schedule_to_close_timeout is not None:
        ends.append(item.scheduled_time + item.schedule_to_close_timeout)
    if item.heartbeat_timeout is not None:
        ends.append(max(item.heartbeat_time or item.started_time, item.started_time) + item.heartbeat_timeout)
    return min(ends) if ends else None
