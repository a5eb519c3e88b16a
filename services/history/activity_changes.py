"""What somebody who operates a workflow does to a pending activity: pause, unpause, reset, options (AC-25, AC-26).

Pure, like ``activity_attempts``: each function takes an item and returns the next one, or the same when there is
nothing to change. What was asked for when the activity was scheduled stays in the pending activity.
"""

from datetime import datetime, timedelta

import msgspec
from stepwell.api.common import RetryPolicy
from stepwell.api.errors import InvalidArgument
from stepwell.api.requests import ActivityOptionsChange

from . import retry
from .activity_item import ActivityItem, ItemState, Pause, is_finished
from .state import ExecutionState, PendingActivity
from .timeouts import ActivityTimeouts, BadTimeout, filled_in, run_timeout

_replace = msgspec.structs.replace


def pause(item: ActivityItem, asked: Pause) -> ActivityItem:
    """No attempt is begun any more; one that runs is told by its heartbeat. Schedule-to-close runs on."""
    if is_finished(item) or item.pause is not None:
        return item
    return _replace(item, version=item.version + 1, pause=asked)


def unpause(item: ActivityItem, start: datetime, *, reset_attempts: bool, reset_heartbeat: bool) -> ActivityItem:
    """An activity that is not paused stays as it is. An attempt that waits may start at ``start``, whatever its
    backoff, and schedule-to-start is counted from there."""
    if is_finished(item) or item.pause is None:
        return item
    item = _replace(item, version=item.version + 1, pause=None)
    if reset_attempts:
        return _from_the_first(item, start, reset_heartbeat)
    if reset_heartbeat:
        item = _without_progress(item)
    return item if item.state is ItemState.STARTED else _replace(item, next_attempt_time=start)


def reset(item: ActivityItem, start: datetime, *, keep_paused: bool, reset_heartbeat: bool) -> ActivityItem:
    """The next attempt is the first. One that runs goes on, is told by its heartbeat, and counts if it succeeds."""
    if is_finished(item):
        return item
    item = _replace(item, version=item.version + 1, pause=item.pause if keep_paused else None)
    return _from_the_first(item, start, reset_heartbeat)


def with_options(
    state: ExecutionState, pending: PendingActivity, item: ActivityItem, change: ActivityOptionsChange, now: datetime
) -> ActivityItem:
    """With those options that ``change`` names; an attempt that runs gets its timeouts at once, counted from its start.
    Raises InvalidArgument, which names the field."""
    if is_finished(item):
        return item
    if change.restore_original:
        item = original(pending, item)
    try:
        timeouts = filled_in(
            item.activity_id,
            ActivityTimeouts(
                schedule_to_close=change.schedule_to_close_timeout or item.schedule_to_close_timeout,
                schedule_to_start=change.schedule_to_start_timeout or item.schedule_to_start_timeout,
                start_to_close=change.start_to_close_timeout or item.start_to_close_timeout,
                heartbeat=change.heartbeat_timeout or item.heartbeat_timeout,
            ),
            run_timeout(state.start_time, state.run_expires),
        )
    except BadTimeout as bad:
        raise InvalidArgument(str(bad), field="options") from None
    changed = _replace(
        item,
        schedule_to_close_timeout=timeouts.schedule_to_close,
        schedule_to_start_timeout=timeouts.schedule_to_start,
        start_to_close_timeout=timeouts.start_to_close,
        heartbeat_timeout=timeouts.heartbeat,
        retry_policy=_retry_policy(item.retry_policy, change),
        task_queue=change.task_queue or item.task_queue,
    )
    return _replace(changed, version=item.version + 1, next_attempt_time=_next_attempt(changed, now))


def original(pending: PendingActivity, item: ActivityItem) -> ActivityItem:
    """The options that the activity was scheduled with; same version."""
    return _replace(
        item,
        schedule_to_close_timeout=pending.schedule_to_close_timeout,
        schedule_to_start_timeout=pending.schedule_to_start_timeout,
        start_to_close_timeout=pending.start_to_close_timeout,
        heartbeat_timeout=pending.heartbeat_timeout,
        retry_policy=pending.retry_policy,
        task_queue="",
    )


def _retry_policy(policy: RetryPolicy, change: ActivityOptionsChange) -> RetryPolicy:
    asked = {
        name: value
        for name in ("initial_interval", "backoff_coefficient", "maximum_interval", "maximum_attempts")
        if (value := getattr(change, f"retry_{name}")) is not None
    }
    changed = _replace(policy, **asked)
    problem = retry.problem_of(changed)
    if problem:
        raise InvalidArgument(f"the retry policy would not do: {problem}", field="options")
    return changed


def _next_attempt(item: ActivityItem, now: datetime) -> datetime | None:
    """A shorter backoff is for the wait that runs, too, a longer one from the next on."""
    waits = item.next_attempt_time
    if item.state is not ItemState.SCHEDULED or item.attempt == 1 or waits is None or waits <= now:
        return waits
    return min(waits, now + retry.backoff(item.retry_policy, item.attempt - 1))


def _from_the_first(item: ActivityItem, start: datetime, reset_heartbeat: bool) -> ActivityItem:
    if item.state is ItemState.STARTED:
        return _replace(item, reset_requested=True, reset_heartbeat=item.reset_heartbeat or reset_heartbeat)
    if reset_heartbeat:
        item = _without_progress(item)
    return _replace(item, attempt=1, stamp=item.stamp + 1, next_attempt_time=start)


def _without_progress(item: ActivityItem) -> ActivityItem:
    """That of an attempt that runs is forgotten when it ends: until then it reports more."""
    if item.state is ItemState.STARTED:
        return _replace(item, reset_heartbeat=True)
    return _replace(item, heartbeat_details=(), heartbeat_time=None)


def spread(start: datetime, jitter: timedelta | None, nonce: str) -> datetime:
    """A time from ``start`` on, within ``jitter``, that hangs on ``nonce``, a random id."""
    if jitter is None:
        return start
    return start + jitter * (int.from_bytes(nonce.encode()[-4:]) % 1_000) / 1_000
