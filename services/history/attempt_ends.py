"""What an outcome or a request makes of a pending activity and its item, and how one that names nothing is refused.

Pure; the shell reads state and item, and puts what comes out.
"""

from collections.abc import Callable
from datetime import datetime
from typing import assert_never

from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.errors import NotFound, WorkflowExecutionClosed
from stepwell.api.requests import (
    ActivityCanceled,
    ActivityCompleted,
    ActivityFailed,
    ActivityOutcome,
    ActivityPending,
)

from . import activity_attempts
from .activity_item import ActivityItem
from .commit import ExecutionKey
from .state import ExecutionState, PendingActivity
from .task_tokens import ActivityToken
from .tasks import CancelActivity

Change = Callable[[ExecutionState, PendingActivity, ActivityItem | None, datetime], ActivityItem]
"""The next item; the same object when there is nothing to put."""


def ended(item: ActivityItem, attempt: int, outcome: ActivityOutcome, now: datetime) -> ActivityItem:
    match outcome:
        case ActivityCompleted():
            return activity_attempts.complete(item, attempt, outcome.result, now)
        case ActivityFailed():
            return activity_attempts.fail(
                item,
                attempt,
                outcome.failure,
                now,
                heartbeat_details=outcome.last_heartbeat_details,
                worker_shutdown=outcome.worker_shutdown,
                uncounted=outcome.uncounted,
            )
        case ActivityCanceled():
            return activity_attempts.cancel(item, attempt, outcome.details, now)
        case ActivityPending():
            return activity_attempts.release(item, attempt)
        case _:
            assert_never(outcome)


def end_attempt(attempt: int, reason: str) -> Change:
    def end(state: ExecutionState, pending: PendingActivity, item: ActivityItem | None, now: datetime) -> ActivityItem:
        if item is None:
            raise NotFound(f"no attempt of activity {pending.activity_id!r} has started")
        return activity_attempts.end_attempt(item, attempt, reason, now)

    return end


def pending_in(state: ExecutionState | None, run_id: str, scheduled_event_id: int) -> PendingActivity | None:
    if state is None or state.run_id != run_id or state.status is not WorkflowExecutionStatus.RUNNING:
        return None
    return state.activities.get(scheduled_event_id)


def not_pending(state: ExecutionState | None, run_id: str, scheduled_event_id: int) -> NotFound:
    if state is not None and state.run_id == run_id and state.status is not WorkflowExecutionStatus.RUNNING:
        return WorkflowExecutionClosed(
            f"workflow {state.workflow_id!r} is closed ({state.status}); the attempt's end no longer matters",
            status=state.status.value,
        )
    return NotFound(f"activity {scheduled_event_id} of run {run_id!r} is not pending (any more); drop this attempt")


def token_of(item: ActivityItem) -> ActivityToken:
    """Of the item's attempt."""
    return ActivityToken(
        item.namespace,
        item.workflow_id,
        item.run_id,
        item.scheduled_event_id,
        item.attempt,
        False,
        item.activity_id,
        item.stamp,
    )


def token_of_lease(key: ExecutionKey, run_id: str, task: CancelActivity) -> ActivityToken:
    """Only first attempts are leased."""
    return ActivityToken(key.namespace, key.workflow_id, run_id, task.scheduled_event_id, 1, True, task.activity_id)


def not_current(token: ActivityToken) -> NotFound:
    return NotFound(
        f"attempt {token.attempt} of activity {token.activity_id!r} is not current; drop it",
        activity_id=token.activity_id,
    )
