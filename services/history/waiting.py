"""How long the tasks of a run have waited for a worker, as far as its log and items tell."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from .activity_item import ActivityItem, ItemState
from .state import ExecutionState, PendingActivity


def longest_wait(state: ExecutionState, items: Mapping[int, ActivityItem], now: datetime) -> timedelta | None:
    """Of the oldest task that nobody has taken; None without one. A workflow task that was taken counts while it runs,
    since that is not written; what waits on purpose, for its backoff or until it is unpaused, does not."""
    since = [
        ready
        for scheduled_event_id, pending in state.activities.items()
        if pending.lease is None and (ready := _ready(pending, items.get(scheduled_event_id))) is not None
    ]
    task = state.workflow_task
    if task is not None:
        since.append(max(task.scheduled_time, task.not_before or task.scheduled_time))
    oldest = min(since, default=now)
    return now - oldest if oldest < now else None


def _ready(pending: PendingActivity, item: ActivityItem | None) -> datetime | None:
    """Since when an attempt may start that did not."""
    if item is None:  # none was started yet
        return pending.next_attempt_time or pending.scheduled_time
    if item.state is not ItemState.SCHEDULED or item.pause is not None:
        return None
    return item.next_attempt_time or item.scheduled_time
