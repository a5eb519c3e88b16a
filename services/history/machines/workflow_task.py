"""The workflow task: scheduled, shown to a worker (which writes nothing), closed, tried again."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.api.errors import NotFound
from stepwell.api.events import (
    EventAttributes,
    HistoryEvent,
    WorkflowTaskCompleted,
    WorkflowTaskFailed,
    WorkflowTaskScheduled,
)
from stepwell.api.failures import Failure
from stepwell.api.updates import DeliveredUpdate

from .. import history_limits, placement
from ..activity_item import ActivityItem
from ..apply import FIRST_REDISPATCH, event_size
from ..builder import TransitionBuilder
from ..deadlines import redispatch_after
from ..retry import kept
from ..state import ExecutionState, PendingUpdate, WorkflowTaskState
from ..task_tokens import PlacedBuffered, PlacedUpdate, WorkflowTaskToken
from ..tasks import DispatchWorkflowTask

PROMPT_ATTEMPTS = 3
"""Attempts up to this one follow at once; later ones with backoff (ER-07)."""

FIRST_BACKOFF = timedelta(seconds=5)
LONGEST_BACKOFF = timedelta(minutes=10)
_DOUBLINGS = 7  # 5 s x 2^7 is over ten minutes

_replace = msgspec.structs.replace


def attempt_backoff(attempt: int) -> timedelta:
    """Wait before this attempt: none up to the third, then 5 s, doubling, at most 10 minutes (ER-07)."""
    if attempt <= PROMPT_ATTEMPTS:
        return timedelta(0)
    return min(FIRST_BACKOFF * (1 << min(attempt - PROMPT_ATTEMPTS - 1, _DOUBLINGS)), LONGEST_BACKOFF)


def attempt_timeout(state: ExecutionState, attempt: int) -> timedelta:
    """How long a worker may take for this attempt: from the fourth on longer by as much as its backoff, so that code
    which is only slow gets through in the end (ER-07)."""
    return state.workflow_task_timeout + attempt_backoff(attempt)


# --- shown to a worker --------------------------------------------------------------------------------------------


def may_begin(state: ExecutionState, now: datetime) -> bool:
    """Whether a workflow task is outstanding and its backoff is over."""
    task = state.workflow_task
    return task is not None and (task.not_before is None or task.not_before <= now)


def begin(
    state: ExecutionState, now: datetime, finished: Iterable[ActivityItem] = (), *, refused_closes: int = 0
) -> tuple[WorkflowTaskToken, list[HistoryEvent]]:
    """What a worker that takes the outstanding task now is shown: the token, and the events not numbered yet.

    ``finished``: the finished items of pending item-held activities. The events end with WorkflowTaskStarted; the
    numbered ones before them are in the log. Raises NotFound when there is no task to take (now).
    """
    task = state.workflow_task
    if task is None or not may_begin(state, now):
        raise NotFound(f"workflow {state.workflow_id!r} has no workflow task to start now; drop the hint")
    items = list(finished)
    entries = placement.within_limits(placement.with_updates(state, placement.unplaced(state, now, items)))
    latest = max((entry.time for entry in entries), default=now)
    token = WorkflowTaskToken(
        namespace=state.namespace,
        workflow_id=state.workflow_id,
        run_id=state.run_id,
        base=state.seq,
        attempt=task.attempt,
        placed=tuple(entry.placed for entry in entries),
        started_time=max(now, latest, state.last_event_time),
        refused_closes=refused_closes,
    )
    return token, _laid_out(state, token, entries)[0]


def behind_completed(numbered: Sequence[HistoryEvent], *, shown_completed: bool) -> Sequence[HistoryEvent]:
    """Events from the last WorkflowTaskCompleted on, without that one unless the worker is to be shown it."""
    if shown_completed or not numbered or type(numbered[0].attributes) is not WorkflowTaskCompleted:
        return numbered
    return numbered[1:]


def placed_events(
    state: ExecutionState, token: WorkflowTaskToken, finished: Iterable[ActivityItem]
) -> list[HistoryEvent]:
    """The events that ``begin`` showed with this token, of a state in which it is still valid."""
    return _laid_out(state, token, placement.chosen(state, token.placed, finished))[0]


def delivered(
    state: ExecutionState, token: WorkflowTaskToken, finished: Iterable[ActivityItem]
) -> tuple[DeliveredUpdate, ...]:
    """The updates that ``begin`` showed with this token, of a state in which it is still valid."""
    if not any(isinstance(entry, PlacedUpdate) for entry in token.placed):
        return ()
    shown = _laid_out(state, token, placement.chosen(state, token.placed, finished))[1]
    return tuple(
        DeliveredUpdate(request=update.request, sequencing_event_id=event_id)
        for update, event_id in shown
        if update.request is not None
    )


def _laid_out(
    state: ExecutionState, token: WorkflowTaskToken, entries: Sequence[placement.Shown]
) -> tuple[list[HistoryEvent], list[tuple[PendingUpdate, int]]]:
    """The events with their numbers, and each update with the event that it comes behind."""
    events: list[HistoryEvent] = []
    updates: list[tuple[PendingUpdate, int]] = []
    first_event_id = state.next_event_id
    last_time = state.last_event_time
    size = state.history_size
    begun = placement.Begun(state)

    def add(attributes: EventAttributes, time: datetime) -> int:
        nonlocal last_time, size
        last_time = max(last_time, time)
        event_id = first_event_id + len(events)
        event = HistoryEvent(event_id=event_id, event_time=last_time, attributes=attributes)
        events.append(event)
        begun.note(event_id, attributes)
        size += event_size(event)
        return event_id

    task = _outstanding(state)
    scheduled_event_id = task.scheduled_event_id or add(_scheduled(state, task.attempt), task.scheduled_time)
    for entry in entries:
        if isinstance(entry, placement.ShownUpdate):
            # One that was taken over came behind its own event.
            updates.append((entry.update, entry.update.admitted_event_id or first_event_id + len(events) - 1))
            continue
        attributes = entry.attributes
        if entry.started is not None:
            attributes = _replace(attributes, started_event_id=add(entry.started, entry.time))
        add(begun.completed(attributes), entry.time)
    reasons = history_limits.suggestion(first_event_id + len(events) - 1, size, state.update_count)
    add(history_limits.started(scheduled_event_id, size, reasons), token.started_time)
    return events, updates


# --- in a transition ----------------------------------------------------------------------------------------------


def schedule(
    draft: TransitionBuilder,
    *,
    after: WorkflowTaskState | None = None,
    closing: bool = False,
    kept_alive: bool = False,
    dispatched: bool = True,
) -> None:
    """Schedules a workflow task and its dispatch. ``after``: the failed one, whose failure describe still shows."""
    state = draft.state
    draft.record(_scheduled(state, 1))
    task = state.workflow_task
    if task is not None and (after is not None or closing or kept_alive):
        state.workflow_task = _replace(
            task,
            closing=closing,
            kept_alive=kept_alive,
            last_failure=after.last_failure if after is not None else None,
            last_cause=after.last_cause if after is not None else None,
        )
    if dispatched:
        draft.tasks.append(DispatchWorkflowTask(task_queue=state.task_queue))


def schedule_for_updates(draft: TransitionBuilder, update_index: int) -> None:
    """One without a number, which leaves nothing in the history if all that it shows is rejected (MS-33)."""
    state = draft.state
    state.workflow_task = WorkflowTaskState(
        scheduled_event_id=0,
        scheduled_time=draft.now,
        next_dispatch=draft.now + FIRST_REDISPATCH,
        update_index=update_index,
    )
    draft.tasks.append(DispatchWorkflowTask(task_queue=state.task_queue))


def is_for_updates(task: WorkflowTaskState) -> bool:
    return not task.scheduled_event_id and task.attempt == 1


def drop(draft: TransitionBuilder) -> None:
    """The history is as it was before the task. Its token is worth nothing, also for a task like it that follows."""
    draft.state.workflow_task = None
    draft.state.numbered_seq = draft.state.seq


def record_scheduled(draft: TransitionBuilder) -> int:
    """Event id of the outstanding task's Scheduled event, which a transient one gets now."""
    task = _outstanding(draft.state)
    if task.scheduled_event_id:
        return task.scheduled_event_id
    return draft.record(_scheduled(draft.state, task.attempt), task.scheduled_time).event_id


def record_started(draft: TransitionBuilder, token: WorkflowTaskToken, finished: Iterable[ActivityItem]) -> int:
    """Records what the token's worker was shown, and takes it out of the buffer. Event id of WorkflowTaskStarted."""
    state = draft.state
    events, updates = _laid_out(state, token, placement.chosen(state, token.placed, finished))
    for event in events:
        draft.record_as_shown(event)
    draft.shown_updates = {update.update_id: event_id for update, event_id in updates}
    if state.buffered:
        seen = {entry.index for entry in token.placed if isinstance(entry, PlacedBuffered)}
        state.buffered = tuple(event for event in state.buffered if event.index not in seen)
    return events[-1].event_id


def fail_started(
    draft: TransitionBuilder,
    started_event_id: int,
    cause: WorkflowTaskFailedCause,
    failure: Failure | None,
    identity: str,
) -> None:
    """Closes the started task as failed; a transient attempt is outstanding behind it, with its dispatch."""
    record_failed(draft, started_event_id, cause, failure, identity)
    _back_off(draft, cause, failure)


def record_failed(
    draft: TransitionBuilder,
    started_event_id: int,
    cause: WorkflowTaskFailedCause,
    failure: Failure | None = None,
    identity: str = "",
) -> None:
    task = _outstanding(draft.state)
    draft.record(
        WorkflowTaskFailed(
            scheduled_event_id=task.scheduled_event_id,
            started_event_id=started_event_id,
            cause=cause,
            failure=failure,
            identity=identity,
        )
    )


def fail_transient(draft: TransitionBuilder, cause: WorkflowTaskFailedCause, failure: Failure | None) -> None:
    """A later attempt failed: no event, only the next attempt with its backoff (ER-07)."""
    task = _outstanding(draft.state)
    draft.state.workflow_task = _replace(task, attempt=task.attempt + 1, scheduled_time=draft.now, closing=False)
    _back_off(draft, cause, failure)


def _back_off(draft: TransitionBuilder, cause: WorkflowTaskFailedCause, failure: Failure | None) -> None:
    task = _outstanding(draft.state)
    delay = attempt_backoff(task.attempt)
    not_before = draft.now + delay if delay else None
    draft.state.workflow_task = _replace(
        task,
        not_before=not_before,
        next_dispatch=not_before if not_before is not None else draft.now + FIRST_REDISPATCH,
        dispatches=0 if not_before is not None else 1,
        last_cause=cause,
        last_failure=kept(failure) if failure is not None else None,
    )
    draft.tasks.append(
        DispatchWorkflowTask(task_queue=draft.state.task_queue, attempt=task.attempt, not_before=not_before)
    )


def dispatch_again(draft: TransitionBuilder) -> None:
    """Sends the outstanding task's dispatch again when that is due."""
    state = draft.state
    task = state.workflow_task
    if task is None or task.next_dispatch > draft.now or state.pause is not None:
        return
    dispatches = task.dispatches + 1
    state.workflow_task = _replace(task, dispatches=dispatches, next_dispatch=draft.now + redispatch_after(dispatches))
    draft.tasks.append(DispatchWorkflowTask(task_queue=state.task_queue, attempt=task.attempt))


def _outstanding(state: ExecutionState) -> WorkflowTaskState:
    if state.workflow_task is None:
        raise ValueError("no workflow task is outstanding")
    return state.workflow_task


def _scheduled(state: ExecutionState, attempt: int) -> WorkflowTaskScheduled:
    return WorkflowTaskScheduled(
        task_queue=state.task_queue, start_to_close_timeout=attempt_timeout(state, attempt), attempt=attempt
    )
