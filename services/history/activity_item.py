"""The activity item: the single authority on the attempts of an activity that went through a queue (design section 5).

Pure: what an item is, and when it needs attention. What becomes of it is in ``activity_attempts``.
"""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec
from stepwell.api.common import ProcessIdentity, RetryPolicy
from stepwell.api.enums import RetryState
from stepwell.api.failures import Failure
from stepwell.api.payloads import Payloads

from .state import ExecutionState, PendingActivity


class ItemState(StrEnum):
    SCHEDULED = "SCHEDULED"
    """Waits for attempt ``attempt``, not before ``next_attempt_time``."""
    STARTED = "STARTED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    CANCELED = "CANCELED"


FINISHED = frozenset({ItemState.COMPLETED, ItemState.FAILED, ItemState.TIMED_OUT, ItemState.CANCELED})


class Pause(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Somebody stopped the activity: what runs may end, nothing new is begun until it is unpaused (AC-25)."""

    time: datetime
    identity: str = ""
    reason: str = ""


class ActivityItem(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    namespace: str
    workflow_id: str
    run_id: str
    scheduled_event_id: int
    version: int = 1
    """Grows by one with each put."""
    nonce: str = ""
    """New with each put: tells a put whose answer was lost from another one with the same content."""
    state: ItemState
    attempt: int = 1
    # copied from the pending activity, so that decisions need no read of the log
    activity_id: str
    activity_type: str
    scheduled_time: datetime
    schedule_to_close_timeout: timedelta | None = None
    schedule_to_start_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None
    heartbeat_timeout: timedelta | None = None
    retry_policy: RetryPolicy
    # the current or last attempt
    identity: str = ""
    holder: ProcessIdentity | None = None
    worker_key: str = ""
    started_time: datetime | None = None
    heartbeat_time: datetime | None = None
    heartbeat_details: Payloads = ()
    next_attempt_time: datetime | None = None
    last_failure: Failure | None = None
    cancel_requested: bool = False
    # the end
    finished_time: datetime | None = None
    result: Payloads = ()
    failure: Failure | None = None
    retry_state: RetryState | None = None
    # what somebody who operates the workflow did to it
    task_queue: str = ""
    """Where its attempts wait, if not where the activity was scheduled."""
    pause: Pause | None = None
    reset_requested: bool = False
    """The attempt that runs is followed by a first one."""
    reset_heartbeat: bool = False
    """Which is given no progress."""
    stamp: int = 0
    """Grows when an attempt is followed by one that has not the next number; part of its token."""


def queue_of(pending: PendingActivity, item: ActivityItem | None) -> str:
    return (item.task_queue if item is not None else "") or pending.task_queue


def is_finished(item: ActivityItem) -> bool:
    return item.state in FINISHED


def new_item(state: ExecutionState, pending: PendingActivity) -> ActivityItem:
    """The item of an activity that has none yet, at version 0: the put that follows makes it version 1."""
    item = _waiting(state, pending)
    lease = pending.detached
    if lease is None:
        return item
    return msgspec.structs.replace(
        item,
        state=ItemState.STARTED,
        identity=lease.identity,
        holder=lease.holder,
        worker_key=lease.worker_key,
        started_time=lease.started_time,
        next_attempt_time=None,
    )


def with_detached(state: ExecutionState, items: dict[int, ActivityItem]) -> dict[int, ActivityItem]:
    """``items`` by scheduled event id, and for those detached attempts that have none yet what it would be."""
    for scheduled_event_id, pending in state.activities.items():
        if pending.detached is not None and scheduled_event_id not in items:
            items[scheduled_event_id] = new_item(state, pending)
    return items


def _waiting(state: ExecutionState, pending: PendingActivity) -> ActivityItem:
    return ActivityItem(
        namespace=state.namespace,
        workflow_id=state.workflow_id,
        run_id=state.run_id,
        scheduled_event_id=pending.scheduled_event_id,
        version=0,
        state=ItemState.SCHEDULED,
        attempt=pending.attempt,
        activity_id=pending.activity_id,
        activity_type=pending.activity_type,
        scheduled_time=pending.scheduled_time,
        schedule_to_close_timeout=pending.schedule_to_close_timeout,
        schedule_to_start_timeout=pending.schedule_to_start_timeout,
        start_to_close_timeout=pending.start_to_close_timeout,
        heartbeat_timeout=pending.heartbeat_timeout,
        retry_policy=pending.retry_policy,
        identity=pending.last_worker_identity,
        # a first attempt that the log leased began with the commit that scheduled it
        started_time=pending.scheduled_time if pending.attempt > 1 else None,
        heartbeat_details=pending.heartbeat_details,
        next_attempt_time=pending.next_attempt_time,
        last_failure=pending.last_failure,
        cancel_requested=pending.cancel_requested_event_id != 0,
    )


def expires(item: ActivityItem) -> datetime | None:
    """End of schedule-to-close."""
    return _after(item.scheduled_time, item.schedule_to_close_timeout)


def starts_by(item: ActivityItem) -> datetime | None:
    """End of schedule-to-start: it is counted from when the attempt may start (AC-04), which a paused one may not."""
    if item.pause is not None:
        return None
    return _after(item.next_attempt_time or item.scheduled_time, item.schedule_to_start_timeout)


def start_to_close_by(item: ActivityItem) -> datetime | None:
    """End of start-to-close of the attempt that runs."""
    return _after(item.started_time, item.start_to_close_timeout)


def heartbeat_by(item: ActivityItem) -> datetime | None:
    """When the attempt that runs counts as lost unless it is heard from."""
    return _after(item.heartbeat_time or item.started_time, item.heartbeat_timeout)


def unstarted_due(item: ActivityItem) -> datetime | None:
    """Earliest timeout of an item whose attempt waits to be taken."""
    return _earliest(expires(item), starts_by(item))


def due(item: ActivityItem) -> datetime | None:
    """When ``time_out`` would next do something, or the next attempt may start; None when it is finished."""
    if is_finished(item):
        return None
    if item.state is ItemState.SCHEDULED:
        return unstarted_due(item)
    return _earliest(expires(item), start_to_close_by(item), heartbeat_by(item))


def arm_time(item: ActivityItem) -> datetime | None:
    """When the item next needs attention: ``due``, or the start of a later attempt. Armed before the item is put."""
    if item.state is ItemState.SCHEDULED and item.pause is None:
        return _earliest(unstarted_due(item), item.next_attempt_time)
    return due(item)


def pending_due(pending: PendingActivity) -> datetime | None:
    """Earliest timeout of an item-held activity whose item is not at hand."""
    closes = _after(pending.scheduled_time, pending.schedule_to_close_timeout)
    if pending.detached is not None:
        return _earliest(closes, _after(pending.detached.started_time, pending.start_to_close_timeout))
    starts = _after(pending.next_attempt_time or pending.scheduled_time, pending.schedule_to_start_timeout)
    return _earliest(closes, starts)


def _earliest(*times: datetime | None) -> datetime | None:
    return min((time for time in times if time is not None), default=None)


def _after(start: datetime | None, timeout: timedelta | None) -> datetime | None:
    return None if start is None or timeout is None else start + timeout
