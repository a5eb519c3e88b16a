"""The attempts of an activity item: how they are given out, end and are made again (design section 5).

Pure: every function takes an item (or None) and returns the next one; the shell puts it with a condition on
``version``, so of two writers one wins and the other looks again. A function that changes nothing returns the item it
was given (the same object): there is nothing to put. What a caller may not do raises NotFound (AC-22).
"""

from datetime import datetime

import msgspec
from stepwell.api.common import ProcessIdentity
from stepwell.api.enums import RetryState, TimeoutType
from stepwell.api.errors import NotFound
from stepwell.api.failures import CanceledFailureInfo, Failure, TimeoutFailureInfo
from stepwell.api.payloads import Payloads

from . import retry
from .activity_item import (
    ActivityItem,
    ItemState,
    expires,
    heartbeat_by,
    is_finished,
    new_item,
    pending_due,
    start_to_close_by,
    starts_by,
    unstarted_due,
)
from .state import ExecutionState, PendingActivity

_replace = msgspec.structs.replace


def start(
    state: ExecutionState,
    pending: PendingActivity,
    item: ActivityItem | None,
    *,
    attempt: int,
    identity: str,
    worker_key: str = "",
    holder: ProcessIdentity | None = None,
    now: datetime,
) -> ActivityItem:
    """Gives the attempt to a worker. Raises NotFound when it is not to be had: over, running, another, or not yet."""
    if pending.lease is not None:
        raise _gone(pending.activity_id, attempt, "it was handed out with its scheduling")
    if state.pause is not None:
        raise _gone(pending.activity_id, attempt, "its workflow is paused")
    current = item if item is not None else new_item(state, pending)
    if current.state is not ItemState.SCHEDULED:
        raise _gone(current.activity_id, attempt, f"the activity is {current.state.value}")
    if current.attempt != attempt:
        raise _gone(current.activity_id, attempt, f"attempt {current.attempt} is next")
    if current.pause is not None:
        raise _gone(current.activity_id, attempt, "the activity is paused")
    if current.next_attempt_time is not None and now < current.next_attempt_time:
        raise _gone(current.activity_id, attempt, f"it starts at {current.next_attempt_time.isoformat()}")
    due_at = unstarted_due(current)
    if due_at is not None and due_at <= now:
        raise _gone(current.activity_id, attempt, "its timeout has passed")
    return _replace(
        current,
        version=current.version + 1,
        state=ItemState.STARTED,
        identity=identity,
        worker_key=worker_key,
        holder=holder,
        started_time=now,
        heartbeat_time=None,
        next_attempt_time=None,
    )


def heartbeat(item: ActivityItem, attempt: int, details: Payloads, now: datetime) -> ActivityItem:
    """Notes that the attempt is alive. ``cancel_requested`` of the result goes into the reply (AC-19)."""
    _check_running(item, attempt)
    return _replace(item, version=item.version + 1, heartbeat_time=now, heartbeat_details=details)


def complete(item: ActivityItem, attempt: int, result: Payloads, now: datetime) -> ActivityItem:
    """The attempt succeeded. A repeat of a completion that counted changes nothing."""
    if item.state is ItemState.COMPLETED and item.attempt == attempt:
        return item
    oversize = retry.oversize(result)
    if oversize is not None:
        return fail(item, attempt, oversize, now)
    _check_running(item, attempt)
    return _finished(item, ItemState.COMPLETED, now, result=result)


def fail(
    item: ActivityItem,
    attempt: int,
    failure: Failure,
    now: datetime,
    *,
    heartbeat_details: Payloads = (),
    worker_shutdown: bool = False,
    uncounted: bool = False,
) -> ActivityItem:
    """The attempt failed: tried again after its backoff, or final. A repeat of a failure that counted changes nothing.
    ``uncounted``: it was told of a pause or a reset and so ended itself, which costs no attempt.

    ``heartbeat_details``: the last that the worker had and may not have sent yet (WC-07); they go to the next attempt.
    """
    if _failure_counted(item, attempt, failure):
        return item
    _check_running(item, attempt)
    if heartbeat_details:
        item = _replace(item, heartbeat_details=heartbeat_details)
    return _ended(item, failure, now, at_once=worker_shutdown, uncounted=uncounted)


def put_back(item: ActivityItem, attempt: int, worker_key: str, now: datetime) -> ActivityItem:
    """The attempt came to a worker that was stopping and never began: offered again, and not counted (WC-32).

    A repeat must not take it from the worker that has it by then, so only the one that was given it may do this.
    """
    if item.state is ItemState.SCHEDULED and item.attempt == attempt:
        return item
    _check_running(item, attempt)
    if item.worker_key != worker_key:
        raise _gone(item.activity_id, attempt, "another worker has it")
    waiting = not_begun(item)
    if item.cancel_requested:
        return _finished(_without_unstarted_attempt(waiting), ItemState.CANCELED, now)
    return _replace(waiting, version=item.version + 1)


def release(item: ActivityItem, attempt: int) -> ActivityItem:
    """The attempt goes on without its worker, whose end is not its own from now on (AC-21). It may have ended already:
    its token was out before its function returned."""
    if is_finished(item) and item.attempt == attempt:
        return item
    _check_running(item, attempt)
    if item.holder is None and not item.worker_key:
        return item
    return _replace(item, version=item.version + 1, holder=None, worker_key="")


def begun_elsewhere(item: ActivityItem, identity: str, now: datetime) -> ActivityItem:
    """A waiting item as if its attempt had just begun outside, for one who completes it by its id; same version."""
    if item.state is not ItemState.SCHEDULED:
        return item
    return _replace(item, state=ItemState.STARTED, identity=identity, started_time=now, holder=None, worker_key="")


def not_received(item: ActivityItem | None, attempt: int, stamp: int) -> ActivityItem:
    """The attempt was handed out and never arrived. Raises NotFound when it is not the one that runs."""
    if item is None or item.stamp != stamp:
        raise NotFound(f"attempt {attempt} is not current")
    _check_running(item, attempt)
    return _replace(not_begun(item), version=item.version + 1)


def not_begun(item: ActivityItem) -> ActivityItem:
    """A started item as it was before its attempt was handed out; same version."""
    return _replace(
        item,
        state=ItemState.SCHEDULED,
        holder=None,
        worker_key="",
        heartbeat_time=None,
        started_time=item.started_time if item.attempt > 1 else None,
    )


def cancel(item: ActivityItem, attempt: int, details: Payloads, now: datetime) -> ActivityItem:
    """The attempt ended as canceled. Unasked, that is a failure which is not retried."""
    if item.state is ItemState.CANCELED and item.attempt == attempt:
        return item
    if not item.cancel_requested:
        return fail(item, attempt, unasked_cancel(details), now)
    _check_running(item, attempt)
    return _finished(item, ItemState.CANCELED, now, result=details)


def unasked_cancel(details: Payloads) -> Failure:
    """What an attempt that ends as canceled without having been asked to fails with."""
    return Failure(
        message="the activity ended as canceled, but its cancellation was not requested",
        info=CanceledFailureInfo(details=details),
    )


def request_cancel(
    state: ExecutionState, pending: PendingActivity, item: ActivityItem | None, now: datetime
) -> ActivityItem:
    """The workflow asks for cancellation: an attempt that runs is told, one that has not started is over at once."""
    if item is None:
        item = new_item(state, pending)
    elif is_finished(item) or (item.cancel_requested and item.state is ItemState.STARTED):
        return item
    if item.state is ItemState.SCHEDULED:
        return _finished(_without_unstarted_attempt(item), ItemState.CANCELED, now, cancel_requested=True)
    return _replace(item, version=item.version + 1, cancel_requested=True)


def asked_to_cancel(item: ActivityItem, attempt: int) -> ActivityItem:
    """The running item as it will be told: its attempt may have heard of the log's request before; same version."""
    if item.state is not ItemState.STARTED or item.attempt != attempt or item.cancel_requested:
        return item
    return _replace(item, cancel_requested=True)


def end_attempt(item: ActivityItem, attempt: int, reason: str, now: datetime) -> ActivityItem:
    """The attempt's worker is provably gone: tried again at once if the policy allows it, else left to its timeouts."""
    if item.state is not ItemState.STARTED or item.attempt != attempt:
        return item
    failure = Failure(message=reason)
    uncounted = _is_uncounted(item)
    decision = _decide(item, failure, now, at_once=True, uncounted=uncounted)
    if isinstance(decision, RetryState):
        return item
    return _retried(item, failure, decision, now, uncounted=uncounted)


def time_out(item: ActivityItem, now: datetime) -> ActivityItem:
    """The item after every timeout that is due by ``now``; unchanged when none is."""
    if is_finished(item):
        return item
    closes = expires(item)
    starts = starts_by(item) if item.state is ItemState.SCHEDULED else None
    # Both are due at once where only schedule-to-close was given: that nobody took it is what is then of use to know.
    if starts is not None and starts <= now and (closes is None or starts <= closes):
        message = "schedule-to-start timeout: no worker took the activity in time"
        failure = retry.timeout_failure(TimeoutType.SCHEDULE_TO_START, message, item.last_failure)
        return _timed_out(_without_unstarted_attempt(item), failure, RetryState.TIMEOUT, now)
    if closes is not None and closes <= now:
        failure = retry.overall_deadline(item.last_failure, item.heartbeat_details)
        return _timed_out(_without_unstarted_attempt(item), failure, RetryState.TIMEOUT, now)
    if item.state is ItemState.SCHEDULED:
        return item
    kind = _attempt_timeout(item, now)
    if kind is None:
        return item
    message = "start-to-close timeout: the attempt took too long"
    if kind is TimeoutType.HEARTBEAT:
        message = "heartbeat timeout: the attempt's worker has not been heard from in time"
    return _ended(item, retry.timeout_failure(kind, message, item.last_failure, item.heartbeat_details), now)


def overdue(state: ExecutionState, items: dict[int, ActivityItem], now: datetime) -> list[ActivityItem]:
    """The next versions of all item-held activities with a timeout due, to be put one by one; ``items`` are those that
    exist, by scheduled event id."""
    changed = []
    for scheduled_event_id, pending in state.activities.items():
        if pending.lease is not None:
            continue
        item = items.get(scheduled_event_id)
        if item is None:
            earliest = pending_due(pending)
            if earliest is None or earliest > now:
                continue
            item = new_item(state, pending)
        after = time_out(item, now)
        if after is not item:
            changed.append(after)
    return changed


def _gone(activity_id: str, attempt: int, why: str) -> NotFound:
    return NotFound(
        f"attempt {attempt} of activity {activity_id!r} is not current: {why}. Drop it and go on.",
        activity_id=activity_id,
    )


def _check_running(item: ActivityItem, attempt: int) -> None:
    if item.attempt != attempt:
        raise _gone(item.activity_id, attempt, f"the current attempt is {item.attempt}")
    if item.state is not ItemState.STARTED:
        raise _gone(item.activity_id, attempt, f"the activity is {item.state.value}")


def _attempt_timeout(item: ActivityItem, now: datetime) -> TimeoutType | None:
    """The timeout that struck the running attempt first, if one did."""
    silent = heartbeat_by(item)
    closes = start_to_close_by(item)
    if closes is not None and closes <= now and (silent is None or closes <= silent):
        return TimeoutType.START_TO_CLOSE
    if silent is not None and silent <= now:
        return TimeoutType.HEARTBEAT
    return None


def _failure_counted(item: ActivityItem, attempt: int, failure: Failure) -> bool:
    """Whether this very failure has ended the attempt before."""
    if item.attempt == attempt + 1:
        return item.last_failure == retry.kept(failure)
    if item.attempt != attempt:
        return False
    ended_by = item.failure
    if item.state is ItemState.TIMED_OUT:
        return ended_by is not None and ended_by.cause == failure
    return item.state is ItemState.FAILED and ended_by == failure


def _is_uncounted(item: ActivityItem) -> bool:
    """An attempt that ends while its activity is paused, or is to begin anew, is not one of those it may have."""
    return item.pause is not None or item.reset_requested


def _decide(
    item: ActivityItem, failure: Failure, now: datetime, *, at_once: bool, uncounted: bool
) -> retry.Retry | RetryState:
    policy = item.retry_policy
    return retry.decide(
        _replace(policy, maximum_attempts=0) if uncounted else policy,
        item.attempt,
        failure,
        now=now,
        expires=expires(item),
        cancel_requested=item.cancel_requested,
        at_once=at_once or uncounted,
    )


def _ended(
    item: ActivityItem, failure: Failure, now: datetime, *, at_once: bool = False, uncounted: bool = False
) -> ActivityItem:
    """The running attempt ended with ``failure``."""
    uncounted = uncounted or _is_uncounted(item)
    decision = _decide(item, failure, now, at_once=at_once, uncounted=uncounted)
    if isinstance(decision, retry.Retry):
        return _retried(item, failure, decision, now, uncounted=uncounted)
    if decision is RetryState.TIMEOUT:
        overall = retry.overall_deadline(failure, item.heartbeat_details, early=True)
        return _timed_out(item, overall, decision, now)
    if isinstance(failure.info, TimeoutFailureInfo):
        return _timed_out(item, failure, decision, now)
    return _finished(item, ItemState.FAILED, now, failure=failure, retry_state=decision)


def _retried(
    item: ActivityItem, failure: Failure, decision: retry.Retry, now: datetime, *, uncounted: bool
) -> ActivityItem:
    attempt = 1 if item.reset_requested else item.attempt if uncounted else item.attempt + 1
    return _replace(
        item,
        version=item.version + 1,
        state=ItemState.SCHEDULED,
        attempt=attempt,
        stamp=item.stamp + 1 if attempt <= item.attempt else item.stamp,
        heartbeat_time=None,
        heartbeat_details=() if item.reset_heartbeat else item.heartbeat_details,
        next_attempt_time=decision.time or now,
        last_failure=retry.kept(failure),
        reset_requested=False,
        reset_heartbeat=False,
    )


def _without_unstarted_attempt(item: ActivityItem) -> ActivityItem:
    """An attempt that waits for its start when the activity ends was none: the last one is the one before."""
    if item.state is ItemState.SCHEDULED and item.attempt > 1:
        return _replace(item, attempt=item.attempt - 1)
    return item


def _timed_out(item: ActivityItem, failure: Failure, retry_state: RetryState, now: datetime) -> ActivityItem:
    return _finished(item, ItemState.TIMED_OUT, now, failure=failure, retry_state=retry_state)


def _finished(
    item: ActivityItem,
    state: ItemState,
    now: datetime,
    *,
    result: Payloads = (),
    failure: Failure | None = None,
    retry_state: RetryState | None = None,
    cancel_requested: bool = False,
) -> ActivityItem:
    return _replace(
        item,
        version=item.version + 1,
        state=state,
        finished_time=now,
        next_attempt_time=None,
        result=result,
        failure=failure,
        retry_state=retry_state,
        cancel_requested=cancel_requested or item.cancel_requested,
    )
