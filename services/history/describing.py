"""Describe: what a run is, what it waits for, and whether anybody serves the task queues it waits on."""

from datetime import datetime, timedelta
from typing import Any

from stepwell.api.callbacks import CallbackInfo
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import CallbackState, PendingActivityState, TaskQueueKind, WorkflowUpdateStage
from stepwell.api.requests import (
    DescribeTaskQueueRequest,
    DescribeTaskQueueResponse,
    DescribeWorkflowRequest,
    DescribeWorkflowResponse,
    PendingActivityInfo,
    PendingChildInfo,
    PendingExternalInfo,
    PendingTimerInfo,
    PendingUpdateInfo,
    PendingWorkflowTaskInfo,
    WorkflowExecutionInfo,
)

from ..common.spaces import namespace_of
from ..matching.service import Matching, QueueName
from .activity_item import ActivityItem, ItemState, is_finished, queue_of, with_detached
from .commit import ExecutionKey
from .items import ActivityItems
from .machines import cancellation
from .machines.closing import shown_status
from .machines.options import callbacks_of
from .pollers import Pollers
from .reading import HistoryReader
from .state import ExecutionState, PendingActivity, PendingExternalCancel, PendingExternalSignal, PendingUpdate


class Describer:
    def __init__(self, reader: HistoryReader, items: ActivityItems, matching: Matching, pollers: Pollers) -> None:
        self._reader = reader
        self._items = items
        self._matching = matching
        self._pollers = pollers

    async def workflow(self, request: DescribeWorkflowRequest) -> DescribeWorkflowResponse:
        key = ExecutionKey(request.namespace, request.execution.workflow_id)
        state = await self._reader.state_of(key, request.execution.run_id)
        items: dict[int, ActivityItem] = {}
        if any(pending.lease is None for pending in state.activities.values()):
            found = await self._items.read(key, state.run_id, state.activities)
            items = with_detached(state, {item.scheduled_event_id: item for item in found})
        pollers = await self._pollers.of(QueueName(key.namespace, state.task_queue, TaskQueueKind.WORKFLOW))
        pending = {
            scheduled_event_id: activity
            for scheduled_event_id, activity in state.activities.items()
            if (item := items.get(scheduled_event_id)) is None or not is_finished(item)
        }
        started = await self._reader.started_event(key, state)
        return DescribeWorkflowResponse(
            user_metadata=None if started is None else started.user_metadata,
            info=_info(state),
            workflow_execution_timeout=state.workflow_execution_timeout or _since_start(state.execution_expires, state),
            workflow_run_timeout=state.workflow_run_timeout or _since_start(state.run_expires, state),
            workflow_task_timeout=state.workflow_task_timeout,
            **_pause(state),
            pending_activities=tuple(
                pending_activity(activity, items.get(scheduled_event_id))
                for scheduled_event_id, activity in pending.items()
            ),
            pending_timers=tuple(
                PendingTimerInfo(
                    timer_id=timer.timer_id, started_event_id=timer.started_event_id, fire_time=timer.fire_time
                )
                for timer in state.timers.values()
            ),
            pending_workflow_task=_workflow_task(state),
            buffered_events=len(state.buffered),
            pending_updates=tuple(map(_update, state.updates.values())),
            cancel_requested=cancellation.is_requested(state),
            workflow_task_pollers=pollers,
            unpolled_task_queues=await self._unpolled(state, pending, items),
            pending_children=_children(state),
            pending_external_signals=tuple(map(_external, state.external_signals.values())),
            pending_external_cancels=tuple(map(_external, state.external_cancels.values())),
            attempt=state.attempt,
            cron_schedule=state.cron_schedule,
            first_workflow_task_time=state.first_task_at,
            continued_execution_run_id=state.continued_execution_run_id,
            new_execution_run_id=state.new_execution_run_id,
            callbacks=tuple(
                [CallbackInfo(url=one.url, state=CallbackState.STANDBY, form=one.form) for one in callbacks_of(state)]
            ),
        )

    async def _unpolled(
        self, state: ExecutionState, pending: dict[int, PendingActivity], items: dict[int, ActivityItem]
    ) -> tuple[str, ...]:
        waits: dict[QueueName, None] = {}
        if state.workflow_task is not None:
            waits[QueueName(state.namespace, state.task_queue, TaskQueueKind.WORKFLOW)] = None
        for scheduled_event_id, activity in pending.items():
            item = items.get(scheduled_event_id)
            waiting = item is None or (item.state is ItemState.SCHEDULED and item.pause is None)
            if activity.lease is None and waiting:
                waits[QueueName(namespace_of(state.namespace), queue_of(activity, item), TaskQueueKind.ACTIVITY)] = None
        unpolled = [name for name in waits if not await self._pollers.serve(name)]
        return tuple(f"{name.task_queue} ({name.kind.value.lower()})" for name in unpolled)

    async def task_queue(self, request: DescribeTaskQueueRequest) -> DescribeTaskQueueResponse:
        name = QueueName(request.namespace, request.task_queue, request.kind)
        return DescribeTaskQueueResponse(
            pollers=await self._pollers.of(name), backlog_count=self._matching.backlog(name)
        )


def _pause(state: ExecutionState) -> dict[str, Any]:
    pause = state.pause
    if pause is None or state.close_time is not None:
        return {}
    return {"paused_time": pause.time, "paused_by": pause.identity, "pause_reason": pause.reason}


def _info(state: ExecutionState) -> WorkflowExecutionInfo:
    parent = state.parent
    return WorkflowExecutionInfo(
        execution=WorkflowExecution(workflow_id=state.workflow_id, run_id=state.run_id),
        workflow_type=state.workflow_type,
        task_queue=state.task_queue,
        status=shown_status(state),
        start_time=state.start_time,
        close_time=state.close_time,
        history_length=state.next_event_id - 1,
        history_size_bytes=state.history_size,
        first_run_id=state.first_run_id,
        memo=state.memo,
        search_attributes=state.search_attributes,
        parent_namespace=parent.namespace if parent is not None else "",
        parent_execution=None
        if parent is None
        else WorkflowExecution(workflow_id=parent.workflow_id, run_id=parent.run_id),
        root_execution=state.root,
    )


def _children(state: ExecutionState) -> tuple[PendingChildInfo, ...]:
    return tuple(
        PendingChildInfo(
            workflow_id=child.workflow_id,
            run_id=child.run_id,
            workflow_type=child.workflow_type,
            initiated_event_id=child.initiated_event_id,
            parent_close_policy=child.parent_close_policy,
            watched=child.attached,
        )
        for child in state.children.values()
    )


def _external(pending: PendingExternalSignal | PendingExternalCancel) -> PendingExternalInfo:
    return PendingExternalInfo(
        workflow_id=pending.workflow_id,
        run_id=pending.run_id,
        initiated_event_id=pending.initiated_event_id,
        attempt=pending.dispatches,
        next_attempt_time=pending.next_dispatch,
    )


def _update(update: PendingUpdate) -> PendingUpdateInfo:
    accepted = update.accepted_event_id
    return PendingUpdateInfo(
        update_id=update.update_id,
        update_name=update.request.input.name if update.request is not None else "",
        stage=WorkflowUpdateStage.ACCEPTED if accepted else WorkflowUpdateStage.ADMITTED,
        admitted_time=update.admitted_time,
        accepted_event_id=accepted,
    )


def _workflow_task(state: ExecutionState) -> PendingWorkflowTaskInfo | None:
    task = state.workflow_task
    if task is None:
        return None
    return PendingWorkflowTaskInfo(
        scheduled_time=task.scheduled_time,
        attempt=task.attempt,
        next_attempt_time=task.not_before,
        last_failure=task.last_failure,
        last_cause=task.last_cause,
    )


def pending_activity(pending: PendingActivity, item: ActivityItem | None) -> PendingActivityInfo:
    """An item knows better than the log, once there is one."""
    started = pending.lease is not None or (item is not None and item.state is ItemState.STARTED)
    shown = PendingActivityState.STARTED if started else PendingActivityState.SCHEDULED
    pause = item.pause if item is not None else None
    if pause is not None:
        shown = PendingActivityState.PAUSE_REQUESTED if started else PendingActivityState.PAUSED
    if pending.cancel_requested_event_id:
        shown = PendingActivityState.CANCEL_REQUESTED
    options = pending if item is None else item
    expiration = None
    if options.schedule_to_close_timeout is not None:
        expiration = pending.scheduled_time + options.schedule_to_close_timeout
    return PendingActivityInfo(
        activity_id=pending.activity_id,
        activity_type=pending.activity_type,
        scheduled_event_id=pending.scheduled_event_id,
        state=shown,
        attempt=pending.attempt if item is None else item.attempt,
        maximum_attempts=options.retry_policy.maximum_attempts,
        scheduled_time=pending.scheduled_time,
        last_started_time=_last_started(pending, item),
        last_heartbeat_time=None if item is None else item.heartbeat_time,
        heartbeat_details=pending.heartbeat_details if item is None else item.heartbeat_details,
        next_attempt_schedule_time=pending.next_attempt_time if item is None else item.next_attempt_time,
        expiration_time=expiration,
        last_failure=pending.last_failure if item is None else item.last_failure,
        last_worker_identity=_last_worker(pending, item),
        paused_time=pause.time if pause is not None else None,
        paused_by=pause.identity if pause is not None else "",
        pause_reason=pause.reason if pause is not None else "",
        task_queue=queue_of(pending, item),
        schedule_to_close_timeout=options.schedule_to_close_timeout,
        schedule_to_start_timeout=options.schedule_to_start_timeout,
        start_to_close_timeout=options.start_to_close_timeout,
        heartbeat_timeout=options.heartbeat_timeout,
        retry_policy=options.retry_policy,
    )


def _last_started(pending: PendingActivity, item: ActivityItem | None) -> datetime | None:
    if item is not None:
        return item.started_time
    if pending.lease is not None:
        return pending.lease.started_time
    # A first attempt that the log leased began with the commit that scheduled it.
    return pending.scheduled_time if pending.attempt > 1 else None


def _last_worker(pending: PendingActivity, item: ActivityItem | None) -> str:
    if item is not None:
        return item.identity
    return pending.lease.identity if pending.lease is not None else pending.last_worker_identity


def _since_start(end: datetime | None, state: ExecutionState) -> timedelta | None:
    return None if end is None else end - state.start_time
