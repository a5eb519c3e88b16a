"""The fold: what each history event does to the state. Deciding and rebuilding share this one path.

``apply`` changes the state that it is given; a transition gives it its own copy (``TransitionBuilder``). What an event
does here may depend on the event and the state alone, so that ``rebuild(history) == state`` less what is transient
(``durable_part``).
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import assert_never

import msgspec
from stepwell.api.common import Memo
from stepwell.api.enums import WorkflowExecutionStatus, WorkflowTaskFailedCause
from stepwell.api.events import (
    ActivityTaskCanceled,
    ActivityTaskCancelRequested,
    ActivityTaskCompleted,
    ActivityTaskFailed,
    ActivityTaskScheduled,
    ActivityTaskStarted,
    ActivityTaskTimedOut,
    ChildWorkflowExecutionCanceled,
    ChildWorkflowExecutionCompleted,
    ChildWorkflowExecutionFailed,
    ChildWorkflowExecutionStarted,
    ChildWorkflowExecutionTerminated,
    ChildWorkflowExecutionTimedOut,
    ExternalWorkflowExecutionCancelRequested,
    ExternalWorkflowExecutionSignaled,
    HistoryEvent,
    MarkerRecorded,
    RequestCancelExternalWorkflowExecutionFailed,
    RequestCancelExternalWorkflowExecutionInitiated,
    SignalExternalWorkflowExecutionFailed,
    SignalExternalWorkflowExecutionInitiated,
    StartChildWorkflowExecutionFailed,
    StartChildWorkflowExecutionInitiated,
    TimerCanceled,
    TimerFired,
    TimerStarted,
    UpsertWorkflowSearchAttributes,
    WorkflowExecutionCanceled,
    WorkflowExecutionCancelRequested,
    WorkflowExecutionCompleted,
    WorkflowExecutionContinuedAsNew,
    WorkflowExecutionFailed,
    WorkflowExecutionOptionsUpdated,
    WorkflowExecutionPaused,
    WorkflowExecutionSignaled,
    WorkflowExecutionStarted,
    WorkflowExecutionTerminated,
    WorkflowExecutionTimedOut,
    WorkflowExecutionUnpaused,
    WorkflowExecutionUpdateAccepted,
    WorkflowExecutionUpdateAdmitted,
    WorkflowExecutionUpdateCompleted,
    WorkflowPropertiesModified,
    WorkflowTaskCompleted,
    WorkflowTaskFailed,
    WorkflowTaskScheduled,
    WorkflowTaskStarted,
    WorkflowTaskTimedOut,
)
from stepwell.api.payloads import ENCODING, ENCODING_JSON, ENCODING_NULL

from . import apply_pending
from .apply_pending import FIRST_REDISPATCH as FIRST_REDISPATCH
from .state import ExecutionState, ParentLink, PendingActivity, PendingTimer, WorkflowTaskState

_NO_TIME = timedelta(0)
_replace = msgspec.structs.replace
_encode = msgspec.json.Encoder().encode


def event_size(event: HistoryEvent) -> int:
    """Bytes that the event adds to the history's size: its JSON."""
    return len(_encode(event))


def opened(
    event: HistoryEvent, attributes: WorkflowExecutionStarted, namespace: str, run_id: str = ""
) -> ExecutionState:
    """The state that a run's first event makes. ``run_id`` is that of a run that began as a reset: the event is of the
    run that it was made from."""
    start_time = event.event_time
    original_run_id = attributes.original_execution_run_id
    backoff = attributes.first_workflow_task_backoff
    execution_expires = attributes.workflow_execution_expiration_time
    run_expires = execution_expires
    if attributes.workflow_run_timeout is not None:
        run_expires = start_time + (backoff or _NO_TIME) + attributes.workflow_run_timeout
        if execution_expires is not None and execution_expires < run_expires:
            run_expires = execution_expires
    return ExecutionState(
        namespace=namespace,
        workflow_id=attributes.workflow_id,
        run_id=run_id or original_run_id,
        first_run_id=attributes.first_execution_run_id,
        workflow_type=attributes.workflow_type,
        task_queue=attributes.task_queue,
        start_time=start_time,
        last_event_time=start_time,
        workflow_task_timeout=attributes.workflow_task_timeout,
        execution_expires=execution_expires,
        run_expires=run_expires,
        memo=attributes.memo,
        search_attributes=attributes.search_attributes,
        start_request_id=attributes.request_id,
        next_event_id=event.event_id + 1,
        history_size=event_size(event),
        parent=_parent(attributes),
        root=attributes.root_workflow_execution,
        original_run_id="" if run_id in ("", original_run_id) else original_run_id,
        attempt=attributes.attempt,
        retry_policy=attributes.retry_policy,
        cron_schedule=attributes.cron_schedule,
        workflow_execution_timeout=attributes.workflow_execution_timeout,
        workflow_run_timeout=attributes.workflow_run_timeout,
        first_task_at=start_time + backoff if backoff else None,
        continued_execution_run_id=attributes.continued_execution_run_id,
        priority=attributes.priority,
        callbacks=attributes.completion_callbacks,
        execution_time=start_time + backoff if backoff else None,
    )


def _parent(attributes: WorkflowExecutionStarted) -> ParentLink | None:
    parent = attributes.parent_workflow_execution
    if parent is None:
        return None
    return ParentLink(
        namespace=attributes.parent_workflow_namespace,
        workflow_id=parent.workflow_id,
        run_id=parent.run_id,
        initiated_event_id=attributes.parent_initiated_event_id,
        original_run_id=attributes.parent_original_execution_run_id,
    )


def apply(state: ExecutionState, event: HistoryEvent) -> ExecutionState:  # noqa: C901, PLR0912, PLR0915 - a table
    """Applies an event of an open run, in place, and returns the same state."""
    state.next_event_id = event.event_id + 1
    state.last_event_time = event.event_time
    state.history_size += len(_encode(event))
    attributes = event.attributes
    match attributes:
        case ActivityTaskScheduled():
            _schedule_activity(state, event, attributes)
        case ActivityTaskStarted() | WorkflowTaskStarted() | MarkerRecorded():
            pass
        case ActivityTaskCompleted() | ActivityTaskFailed() | ActivityTaskTimedOut() | ActivityTaskCanceled():
            pending = state.activities.pop(attributes.scheduled_event_id)
            del state.activity_ids[pending.activity_id]
        case WorkflowTaskScheduled():
            _schedule_workflow_task(state, event, attributes)
        case WorkflowTaskCompleted():
            state.workflow_task = None
            state.previous_started_event_id = attributes.started_event_id
        case WorkflowExecutionSignaled():
            state.signal_count += 1
        case TimerStarted(timer_id=timer_id):
            fire_time = event.event_time + attributes.start_to_fire_timeout
            state.timers[timer_id] = PendingTimer(
                timer_id=timer_id, started_event_id=event.event_id, fire_time=fire_time
            )
        case TimerFired() | TimerCanceled():
            del state.timers[attributes.timer_id]
        case ActivityTaskCancelRequested(scheduled_event_id=scheduled_event_id):
            state.activities[scheduled_event_id] = _replace(
                state.activities[scheduled_event_id], cancel_requested_event_id=event.event_id
            )
        case WorkflowTaskFailed(cause=WorkflowTaskFailedCause.RESET_WORKFLOW):
            _begin_again(state, event, attributes.base_run_id)
        case WorkflowTaskFailed() | WorkflowTaskTimedOut():
            _next_workflow_task_attempt(state, event)
        case WorkflowExecutionCancelRequested():
            state.cancel_requested = True
        case StartChildWorkflowExecutionInitiated():
            apply_pending.initiate_child(state, event, attributes)
        case ChildWorkflowExecutionStarted():
            apply_pending.child_started(state, event, attributes)
        case (
            StartChildWorkflowExecutionFailed()
            | ChildWorkflowExecutionCompleted()
            | ChildWorkflowExecutionFailed()
            | ChildWorkflowExecutionCanceled()
            | ChildWorkflowExecutionTimedOut()
            | ChildWorkflowExecutionTerminated()
        ):
            del state.children[attributes.initiated_event_id]
        case SignalExternalWorkflowExecutionInitiated():
            apply_pending.initiate_signal(state, event, attributes)
        case ExternalWorkflowExecutionSignaled() | SignalExternalWorkflowExecutionFailed():
            del state.external_signals[attributes.initiated_event_id]
        case RequestCancelExternalWorkflowExecutionInitiated():
            apply_pending.initiate_cancel(state, event, attributes)
        case ExternalWorkflowExecutionCancelRequested() | RequestCancelExternalWorkflowExecutionFailed():
            del state.external_cancels[attributes.initiated_event_id]
        case WorkflowExecutionUpdateAdmitted():
            apply_pending.admit_update(state, event, attributes)
        case WorkflowExecutionUpdateAccepted():
            apply_pending.accept_update(state, event, attributes)
        case WorkflowExecutionUpdateCompleted():
            apply_pending.complete_update(state, event, attributes)
        case UpsertWorkflowSearchAttributes():
            state.search_attributes = merged(state.search_attributes, attributes.search_attributes)
        case WorkflowPropertiesModified():
            state.memo = merged(state.memo, attributes.upserted_memo)
        case WorkflowExecutionOptionsUpdated(priority=priority, attached_completion_callbacks=attached):
            state.priority = priority or state.priority
            state.callbacks += attached
        case WorkflowExecutionPaused() | WorkflowExecutionUnpaused():
            pass  # it took effect when it came in, whatever waited for its number
        case WorkflowExecutionCompleted():
            _close(state, event, WorkflowExecutionStatus.COMPLETED, attributes.new_execution_run_id)
        case WorkflowExecutionFailed():
            _close(state, event, WorkflowExecutionStatus.FAILED, attributes.new_execution_run_id)
        case WorkflowExecutionContinuedAsNew():
            _close(state, event, WorkflowExecutionStatus.CONTINUED_AS_NEW, attributes.new_execution_run_id)
        case WorkflowExecutionCanceled():
            _close(state, event, WorkflowExecutionStatus.CANCELED)
        case WorkflowExecutionTerminated():
            _close(state, event, WorkflowExecutionStatus.TERMINATED, attributes.new_execution_run_id)
        case WorkflowExecutionTimedOut():
            _close(state, event, WorkflowExecutionStatus.TIMED_OUT, attributes.new_execution_run_id)
        case WorkflowExecutionStarted():
            raise ValueError(f"event {event.event_id}: WorkflowExecutionStarted is only ever a run's first event")
        case _:
            assert_never(attributes)
    return state


def rebuild(events: Iterable[HistoryEvent], namespace: str, run_id: str = "") -> ExecutionState:
    """The state of a run from its whole history; transient fields have their defaults. ``run_id`` as for ``opened``.

    Raises ValueError when the history does not begin with WorkflowExecutionStarted.
    """
    iterator = iter(events)
    first = next(iterator, None)
    if first is None or not isinstance(first.attributes, WorkflowExecutionStarted):
        raise ValueError("a history begins with WorkflowExecutionStarted")
    state = opened(first, first.attributes, namespace, run_id)
    for event in iterator:
        apply(state, event)
    return state


def durable_part(state: ExecutionState) -> ExecutionState:
    """The state without what its history cannot tell, for comparing with ``rebuild``."""
    task = state.workflow_task
    if task is not None:
        task = _durable_task(task)
    activities = {
        scheduled_event_id: _replace(
            pending,
            scheduled_seq=0,
            lease=None,
            detached=None,
            attempt=1,
            next_attempt_time=None,
            last_failure=None,
            last_worker_identity="",
            heartbeat_details=(),
            next_dispatch=None,
            dispatches=0,
        )
        for scheduled_event_id, pending in state.activities.items()
    }
    return _replace(
        state,
        workflow_task=task,
        activities=activities,
        children=apply_pending.durable(state.children),
        external_signals=apply_pending.durable(state.external_signals),
        external_cancels=apply_pending.durable(state.external_cancels),
        updates=apply_pending.durable_updates(state.updates),
        ended_updates=tuple(_replace(ended, seq=0) for ended in state.ended_updates),
        seq=0,
        first_seq=1,
        prefix_tail_seq=0,
        numbered_seq=0,
        buffered=(),
        next_buffer_index=1,
        armed=None,
        request_ids=(),
        completion=None,
        owed=(),
        last_worker_key="",
        waiters=(),
    )


def _durable_task(task: WorkflowTaskState) -> WorkflowTaskState | None:
    """Of a transient task the history tells only that there is one, and nothing of one that is there for updates
    alone."""
    if not task.scheduled_event_id and task.attempt == 1:
        return None
    attempt, scheduled_time = (
        (task.attempt, task.scheduled_time) if task.scheduled_event_id else (2, task.scheduled_time.min)
    )
    return WorkflowTaskState(
        scheduled_event_id=task.scheduled_event_id,
        scheduled_time=scheduled_time,
        attempt=attempt,
        next_dispatch=task.scheduled_time.min,
    )


def _schedule_activity(state: ExecutionState, event: HistoryEvent, attributes: ActivityTaskScheduled) -> None:
    event_id = event.event_id
    state.activities[event_id] = PendingActivity(
        scheduled_event_id=event_id,
        scheduled_seq=state.seq,
        activity_id=attributes.activity_id,
        activity_type=attributes.activity_type,
        task_queue=attributes.task_queue,
        scheduled_time=event.event_time,
        schedule_to_close_timeout=attributes.schedule_to_close_timeout,
        schedule_to_start_timeout=attributes.schedule_to_start_timeout,
        start_to_close_timeout=attributes.start_to_close_timeout,
        heartbeat_timeout=attributes.heartbeat_timeout,
        retry_policy=attributes.retry_policy,
        next_dispatch=event.event_time + FIRST_REDISPATCH,
        dispatches=1,
        priority=attributes.priority,
    )
    state.activity_ids[attributes.activity_id] = event_id


def merged(values: Memo, upserted: Memo) -> Memo:
    """``upserted`` over ``values``; a null or an empty list takes a name away, as in the field."""
    result = {**values, **upserted}
    for name, value in upserted.items():
        encoding = value.metadata.get(ENCODING)
        if encoding == ENCODING_NULL or (encoding == ENCODING_JSON and value.data in (b"null", b"[]")):
            del result[name]
    return result


def _schedule_workflow_task(state: ExecutionState, event: HistoryEvent, attributes: WorkflowTaskScheduled) -> None:
    state.first_task_at = None
    state.workflow_task = WorkflowTaskState(
        scheduled_event_id=event.event_id,
        scheduled_time=event.event_time,
        attempt=attributes.attempt,
        next_dispatch=event.event_time + FIRST_REDISPATCH,
    )


def _next_workflow_task_attempt(state: ExecutionState, event: HistoryEvent) -> None:
    """The next attempt is transient: it gets its number when it is completed (ER-07)."""
    task = state.workflow_task
    state.workflow_task = WorkflowTaskState(
        scheduled_event_id=0,
        scheduled_time=event.event_time,
        attempt=task.attempt + 1 if task is not None else 2,
        next_dispatch=event.event_time + FIRST_REDISPATCH,
    )


def _begin_again(state: ExecutionState, event: HistoryEvent, base_run_id: str) -> None:
    """A reset: from here on this is another run. Its timeouts and those of activities count from now, since what was
    too late for the run before need not be for this one; timers fire when they would have."""
    now = event.event_time
    state.workflow_task = None
    state.start_time = now
    if state.workflow_execution_timeout is not None:
        state.execution_expires = now + state.workflow_execution_timeout
    state.run_expires = state.execution_expires
    if state.workflow_run_timeout is not None:
        state.run_expires = now + state.workflow_run_timeout
        if state.execution_expires is not None and state.execution_expires < state.run_expires:
            state.run_expires = state.execution_expires
    for scheduled_event_id, pending in state.activities.items():
        state.activities[scheduled_event_id] = _replace(
            pending, scheduled_time=now, next_dispatch=now + FIRST_REDISPATCH, dispatches=1
        )
    apply_pending.ask_again(state, base_run_id)


def _close(state: ExecutionState, event: HistoryEvent, status: WorkflowExecutionStatus, new_run_id: str = "") -> None:
    """A closed run has nothing pending, whatever was."""
    state.status = status
    state.new_execution_run_id = new_run_id
    state.close_time = event.event_time
    state.workflow_task = None
    state.activities = {}
    state.activity_ids = {}
    state.timers = {}
    state.children = {}
    state.external_signals = {}
    state.external_cancels = {}
    apply_pending.end_updates(state)
    state.first_task_at = None
