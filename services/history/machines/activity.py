"""Activities as the log sees them: ends of log-leased attempts, and the ends that items hold (design section 5)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec
from stepwell.api.enums import RetryState, TimeoutType
from stepwell.api.errors import NotFound
from stepwell.api.events import (
    ActivityTaskCanceled,
    ActivityTaskCompleted,
    ActivityTaskFailed,
    ActivityTaskStarted,
    ActivityTaskTimedOut,
    HistoryEvent,
)
from stepwell.api.failures import Failure, ServerFailureInfo, TimeoutFailureInfo
from stepwell.api.payloads import Payloads, size_of
from stepwell.api.requests import ActivityOutcomeReply

from .. import placement, problems, retry
from ..activity_attempts import unasked_cancel
from ..activity_item import ActivityItem, is_finished, queue_of
from ..apply import FIRST_REDISPATCH
from ..builder import TransitionBuilder
from ..deadlines import dispatch_due, redispatch_after
from ..placement import ActivityEnd
from ..requests import Detach, LeasedHeartbeat, LeasedOutcome
from ..state import ExecutionState, Lease, PendingActivity
from ..tasks import CancelActivity, DispatchActivityTask
from . import inbox

COUNTS = ActivityOutcomeReply()
MAX_KEPT_DETAILS_BYTES = 2 * 1024 * 1024
"""Progress that the state keeps for all its activities together, since every commit carries the state. What comes on
top is not kept; activities with a heartbeat timeout have items, where this limit is not."""

_replace = msgspec.structs.replace


# --- ends of log-leased attempts ----------------------------------------------------------------------------------


def record_outcomes(draft: TransitionBuilder, outcomes: Sequence[LeasedOutcome]) -> tuple[ActivityOutcomeReply, ...]:
    """Takes in how leased attempts ended, one reply each; those that are still current count. Settle afterwards."""
    return tuple([_record_outcome(draft, outcome) for outcome in outcomes]) if outcomes else ()


def _record_outcome(draft: TransitionBuilder, outcome: LeasedOutcome) -> ActivityOutcomeReply:
    state = draft.state
    pending = state.activities.get(outcome.scheduled_event_id)
    if pending is None or pending.lease is None or pending.attempt != outcome.attempt:
        return _gone(state, outcome.scheduled_event_id, outcome.attempt)
    if outcome.scheduled_event_id in draft.ended:
        return COUNTS if _counted(state, outcome) else _gone(state, outcome.scheduled_event_id, outcome.attempt)
    if outcome.failure is not None:
        reported = _with_progress(draft.state, pending, outcome.details)
        _end_attempt(draft, reported, outcome.failure, at_once=outcome.worker_shutdown)
    elif (oversize := retry.oversize(outcome.result if not outcome.canceled else outcome.details)) is not None:
        _end_attempt(draft, pending, oversize)
    elif not outcome.canceled:
        end = ActivityTaskCompleted(
            result=outcome.result,
            scheduled_event_id=pending.scheduled_event_id,
            started_event_id=0,
            identity=pending.lease.identity,
        )
        inbox.receive_end(draft, _started(pending), end)
    elif pending.cancel_requested_event_id:
        canceled = ActivityTaskCanceled(
            details=outcome.details,
            latest_cancel_requested_event_id=pending.cancel_requested_event_id,
            scheduled_event_id=pending.scheduled_event_id,
            identity=pending.lease.identity,
        )
        inbox.receive_end(draft, _started(pending), canceled)
    else:
        _end_attempt(draft, pending, unasked_cancel(outcome.details))
    return COUNTS


def note_progress(draft: TransitionBuilder, request: LeasedHeartbeat) -> bool:
    """Keeps what a leased attempt reported, for the next attempt (WC-07). False when there is nothing to keep."""
    pending = draft.state.activities.get(request.scheduled_event_id)
    if pending is None or pending.lease is None or pending.attempt != request.attempt:
        return False
    noted = _with_progress(draft.state, pending, request.details)
    if noted is pending or request.scheduled_event_id in draft.ended:
        return False
    draft.put_activity(noted)
    return True


def detach(draft: TransitionBuilder, request: Detach) -> tuple[tuple[ActivityOutcomeReply, ...], bool]:
    """Leaves attempts that go on to their items: a reply for each, and whether anything changed. A repeat succeeds."""
    replies: list[ActivityOutcomeReply] = []
    changed = False
    for scheduled_event_id, attempt in request.attempts:
        pending = draft.state.activities.get(scheduled_event_id)
        lease = pending.lease if pending is not None else None
        if pending is None or pending.attempt != attempt or scheduled_event_id in draft.ended:
            replies.append(_gone(draft.state, scheduled_event_id, attempt))
        elif lease is not None:
            detached = Lease(identity=lease.identity, started_time=lease.started_time) if request.released else lease
            draft.put_activity(_replace(pending, lease=None, detached=detached, next_dispatch=None, dispatches=0))
            changed = True
            replies.append(COUNTS)
        else:
            replies.append(COUNTS if pending.detached is not None else _gone(draft.state, scheduled_event_id, attempt))
    return tuple(replies), changed


def _with_progress(state: ExecutionState, pending: PendingActivity, details: Payloads) -> PendingActivity:
    if not details or details == pending.heartbeat_details:
        return pending
    others = (other for other in state.activities.values() if other is not pending and other.heartbeat_details)
    if size_of(details) + sum(size_of(other.heartbeat_details) for other in others) > MAX_KEPT_DETAILS_BYTES:
        return pending
    return _replace(pending, heartbeat_details=details)


def ended_as_said(events: Sequence[HistoryEvent], outcomes: Sequence[LeasedOutcome]) -> bool:
    """Whether each outcome, in order, made its Started event and the very end that its worker showed the workflow."""
    if len(events) != 2 * len(outcomes):
        return False
    for event, outcome in zip(events[1::2], outcomes, strict=True):
        end = event.attributes
        match end:
            case ActivityTaskCompleted():
                continue
            case ActivityTaskCanceled() if outcome.canceled:
                continue
            case ActivityTaskFailed() if end.failure is outcome.failure:
                continue
            case _:
                return False
    return True


def _counted(state: ExecutionState, outcome: LeasedOutcome) -> bool:
    """Whether the buffered end of the activity is this outcome, sent again."""
    ends = [event.attributes for event in state.buffered if event.started is not None]
    end = next(end for end in ends if getattr(end, "scheduled_event_id", 0) == outcome.scheduled_event_id)
    match end:
        case ActivityTaskTimedOut():
            return outcome.failure is not None and end.failure.cause == outcome.failure
        case ActivityTaskFailed():
            return outcome.canceled or end.failure == outcome.failure
        case ActivityTaskCanceled():
            return outcome.canceled
    said_completed = outcome.failure is None and not outcome.canceled
    return said_completed and isinstance(end, ActivityTaskCompleted) and end.result == outcome.result


def _gone(state: ExecutionState, scheduled_event_id: int, attempt: int) -> ActivityOutcomeReply:
    where = "the run is closed" if state.close_time is not None else "the attempt is over or was never leased"
    return ActivityOutcomeReply(
        error_code=NotFound.code,
        message=f"attempt {attempt} of activity {scheduled_event_id} does not count: {where}. Drop it.",
    )


def _started(pending: PendingActivity) -> ActivityTaskStarted:
    lease = pending.lease
    return ActivityTaskStarted(
        scheduled_event_id=pending.scheduled_event_id,
        identity=lease.identity if lease is not None else pending.last_worker_identity,
        attempt=pending.attempt,
        last_failure=pending.last_failure,
        started_time=lease.started_time if lease is not None else None,
    )


def _expires(pending: PendingActivity) -> datetime | None:
    timeout = pending.schedule_to_close_timeout
    return None if timeout is None else pending.scheduled_time + timeout


def _decide(
    draft: TransitionBuilder, pending: PendingActivity, failure: Failure, at_once: bool
) -> retry.Retry | RetryState:
    return retry.decide(
        pending.retry_policy,
        pending.attempt,
        failure,
        now=draft.now,
        expires=_expires(pending),
        cancel_requested=pending.cancel_requested_event_id != 0,
        at_once=at_once,
    )


def _end_attempt(
    draft: TransitionBuilder, pending: PendingActivity, failure: Failure, *, at_once: bool = False
) -> None:
    """A leased attempt ended with ``failure``: the item takes over for the next one, or the activity is over."""
    decision = _decide(draft, pending, failure, at_once)
    if isinstance(decision, retry.Retry):
        _hand_to_item(draft, pending, failure, decision)
        return
    identity = pending.lease.identity if pending.lease is not None else ""
    if decision is RetryState.TIMEOUT:
        failure = retry.overall_deadline(failure, pending.heartbeat_details, early=True)
    end: ActivityEnd
    if isinstance(failure.info, TimeoutFailureInfo):
        end = ActivityTaskTimedOut(failure=failure, scheduled_event_id=pending.scheduled_event_id, retry_state=decision)
    else:
        end = ActivityTaskFailed(
            failure=failure,
            scheduled_event_id=pending.scheduled_event_id,
            started_event_id=0,
            identity=identity,
            retry_state=decision,
        )
    inbox.receive_end(draft, _started(pending), end)


def _hand_to_item(draft: TransitionBuilder, pending: PendingActivity, failure: Failure, decision: retry.Retry) -> None:
    """From the second attempt on, the activity item is the authority; this leaves no history (rule 8)."""
    attempt = pending.attempt + 1
    later = decision.time
    draft.put_activity(
        _replace(
            pending,
            lease=None,
            attempt=attempt,
            next_attempt_time=later if later is not None else draft.now,
            last_failure=retry.kept(failure),
            last_worker_identity=pending.lease.identity if pending.lease is not None else "",
            next_dispatch=later if later is not None else draft.now + FIRST_REDISPATCH,
            dispatches=0 if later is not None else 1,
        )
    )
    draft.tasks.append(
        DispatchActivityTask(
            scheduled_event_id=pending.scheduled_event_id,
            task_queue=pending.task_queue,
            attempt=attempt,
            not_before=later,
        )
    )


def time_out_leases(draft: TransitionBuilder) -> None:
    """Ends the leased attempts whose start-to-close or schedule-to-close is due. Settle afterwards."""
    for pending in list(draft.state.activities.values()):
        lease = pending.lease
        if lease is None or pending.scheduled_event_id in draft.ended:
            continue
        expires = _expires(pending)
        attempt_timeout = pending.start_to_close_timeout
        if expires is not None and expires <= draft.now:
            timed_out = ActivityTaskTimedOut(
                failure=retry.overall_deadline(pending.last_failure, pending.heartbeat_details),
                scheduled_event_id=pending.scheduled_event_id,
                retry_state=RetryState.TIMEOUT,
            )
            inbox.receive_end(draft, _started(pending), timed_out)
        elif attempt_timeout is not None and lease.started_time + attempt_timeout <= draft.now:
            message = "start-to-close timeout: the attempt took too long"
            failure = retry.timeout_failure(
                TimeoutType.START_TO_CLOSE, message, pending.last_failure, pending.heartbeat_details
            )
            _end_attempt(draft, pending, failure)


def end_leases(draft: TransitionBuilder, scheduled_event_ids: Iterable[int], reason: str) -> None:
    """The holder is provably gone: the attempts are made again at once, where the policy allows."""
    failure = Failure(message=reason, info=ServerFailureInfo())
    for scheduled_event_id in scheduled_event_ids:
        pending = draft.state.activities.get(scheduled_event_id)
        if pending is None or pending.lease is None or scheduled_event_id in draft.ended:
            continue
        decision = _decide(draft, pending, failure, at_once=True)
        if isinstance(decision, retry.Retry):
            _hand_to_item(draft, pending, failure, decision)


# --- ends that items hold -----------------------------------------------------------------------------------------


def record_finished(draft: TransitionBuilder, items: Sequence[ActivityItem]) -> None:
    """Numbers the ends of finished items when no workflow task is outstanding; the next task derives them otherwise."""
    if draft.state.workflow_task is None:
        number_unplaced(draft, items)


def number_unplaced(draft: TransitionBuilder, items: Sequence[ActivityItem]) -> None:
    """Numbers all that is unplaced: buffered events, ends of finished items, due timers. Settle afterwards."""
    entries = placement.unplaced(draft.state, draft.now, items)
    if not entries:
        return
    draft.state.buffered = ()
    for entry in entries:
        inbox.number(draft, entry)
    draft.woken = draft.woken or any(map(inbox.wakes, entries))


def told_of_cancel(draft: TransitionBuilder, pending: PendingActivity) -> CancelActivity:
    return CancelActivity(
        scheduled_event_id=pending.scheduled_event_id,
        activity_id=pending.activity_id,
        task_queue=pending.task_queue,
        leased_to=pending.lease.worker_key if pending.lease is not None else "",
        run_id=draft.state.run_id,
    )


def note_failing(draft: TransitionBuilder, items: Mapping[int, ActivityItem]) -> None:
    """Takes over from items what fails again and again, so that the run is found by it (VI-19). A commit that is made
    anyway does it, so attempts cost nothing more; as many are noted as are told of."""
    activities = draft.state.activities
    room = problems.MOST - sum(pending.last_failure is not None for pending in activities.values())
    for scheduled_event_id, item in items.items():
        if room <= 0:
            return
        pending = activities.get(scheduled_event_id)
        if pending is None or pending.last_failure is not None or is_finished(item):
            continue
        if item.last_failure is not None and item.attempt > problems.FAILING_FROM:
            draft.put_activity(_replace(pending, last_failure=item.last_failure))
            room -= 1


def dispatch_again(draft: TransitionBuilder, items: dict[int, ActivityItem]) -> None:
    """Sends the dispatch of waiting activities again where that is due, and cancel requests that have not arrived."""
    for pending in list(draft.state.activities.values()):
        if pending.lease is not None:
            continue
        item = items.get(pending.scheduled_event_id)
        if pending.cancel_requested_event_id and not (
            item is not None and (item.cancel_requested or is_finished(item))
        ):
            draft.tasks.append(told_of_cancel(draft, pending))
        due = dispatch_due(pending, item)
        if due is None or due > draft.now or draft.state.pause is not None:
            continue
        attempt = pending.attempt if item is None else item.attempt
        dispatches = pending.dispatches + 1 if attempt == pending.attempt else 1
        draft.put_activity(
            _replace(
                pending,
                attempt=attempt,
                detached=None,
                dispatches=dispatches,
                next_dispatch=draft.now + redispatch_after(dispatches),
            )
        )
        draft.tasks.append(
            DispatchActivityTask(
                scheduled_event_id=pending.scheduled_event_id, task_queue=queue_of(pending, item), attempt=attempt
            )
        )
