"""Reads of stand-alone activities (AC-28): what they are, and how they ended.

Each is a run in the space of its namespace's activities (``common.spaces``); its history is short and shown to nobody.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import FailedPrecondition, NotFound, WorkflowExecutionClosed
from stepwell.api.events import (
    ActivityTaskFailed,
    ActivityTaskScheduled,
    ActivityTaskTimedOut,
    HistoryEvent,
    WorkflowExecutionCanceled,
    WorkflowExecutionCancelRequested,
    WorkflowExecutionCompleted,
    WorkflowExecutionTerminated,
)
from stepwell.api.failures import CanceledFailureInfo, Failure, TerminatedFailureInfo
from stepwell.api.requests import ActivityExecutionInfo, ActivityResult

from ..common import spaces
from .activity_item import ActivityItem
from .commit import ExecutionKey
from .describing import pending_activity
from .items import ActivityItems
from .reading import HistoryReader
from .state import ExecutionState, PendingActivity

MAX_EVENTS = 100
"""More than such a run ever has: its start, an activity, a request to cancel, and its end."""


def key_of(namespace: str, activity_id: str) -> ExecutionKey:
    return ExecutionKey(spaces.of_activities(namespace), activity_id)


@contextmanager
def spoken_of(key: ExecutionKey) -> Iterator[None]:
    """What the engine says of a workflow is said of the activity."""
    try:
        yield
    except WorkflowExecutionClosed as closed:
        raise FailedPrecondition(
            f"activity {key.workflow_id!r} has ended ({closed.details.get('status', 'closed')}); nothing was changed"
        ) from None
    except NotFound:
        raise NotFound(
            f"there is no stand-alone activity {key.workflow_id!r} with that run in namespace "
            f"{spaces.namespace_of(key.namespace)!r}; check activity_id, run_id and namespace. One that a workflow "
            "runs is named with its workflow"
        ) from None


class StandaloneActivities:
    """Raises NotFound, Unavailable."""

    def __init__(self, reader: HistoryReader, items: ActivityItems) -> None:
        self._reader = reader
        self._items = items

    async def poll(self, request: r.PollActivityRequest) -> r.PollActivityResponse:
        """Waits for the end."""
        key = key_of(request.namespace, request.activity_id)
        with spoken_of(key):
            execution = WorkflowExecution(workflow_id=key.workflow_id, run_id=request.run_id)
            asked = r.GetHistoryRequest(
                namespace=key.namespace,
                execution=execution,
                close_event_only=True,
                wait_new_event=True,
                timeout=request.timeout,
            )
            answer = await self._reader.get_history(asked)
            if not answer.events:
                return r.PollActivityResponse(run_id=answer.run_id)
            state = await self._reader.state_of(key, answer.run_id)
            events = await self._events(key, answer.run_id)
        return r.PollActivityResponse(run_id=answer.run_id, outcome=outcome_of(state, events))

    async def describe(self, request: r.DescribeActivityRequest) -> r.DescribeActivityResponse:
        key = key_of(request.namespace, request.activity_id)
        with spoken_of(key):
            state = await self._reader.state_of(key, request.run_id)
            events = await self._events(key, state.run_id)
        scheduled = next(event for event in events if isinstance(event.attributes, ActivityTaskScheduled))
        item = await self._items.get(key, state.run_id, scheduled.event_id)
        cancel = [each.attributes for each in events if isinstance(each.attributes, WorkflowExecutionCancelRequested)]
        return r.DescribeActivityResponse(
            info=_info(state),
            cancel_requested=bool(cancel),
            cancel_reason=cancel[0].cause if cancel else "",
            outcome=outcome_of(state, events) if state.close_time is not None else None,
            state_transition_count=max(state.seq - state.first_seq + 1, 1) + (0 if item is None else item.version),
            **_of_event(scheduled),
            **_of_attempts(state, scheduled, item),
        )

    async def _events(self, key: ExecutionKey, run_id: str) -> Sequence[HistoryEvent]:
        execution = WorkflowExecution(workflow_id=key.workflow_id, run_id=run_id)
        asked = r.GetHistoryRequest(namespace=key.namespace, execution=execution, maximum_page_size=MAX_EVENTS)
        return (await self._reader.get_history(asked)).events


def listed(info: r.WorkflowExecutionInfo) -> ActivityExecutionInfo:
    """What a list found in the space of activities."""
    return ActivityExecutionInfo(
        activity_id=info.execution.workflow_id,
        run_id=info.execution.run_id,
        activity_type=info.workflow_type,
        task_queue=info.task_queue,
        status=info.status,
        schedule_time=info.start_time,
        close_time=info.close_time,
        memo=info.memo,
        search_attributes=info.search_attributes,
    )


def outcome_of(state: ExecutionState, events: Sequence[HistoryEvent]) -> ActivityResult:
    """How a closed one ended."""
    end = events[-1].attributes
    if isinstance(end, WorkflowExecutionCompleted):
        return ActivityResult(status=state.status, result=end.result)
    return ActivityResult(status=state.status, failure=_failure(end, events))


def _failure(end: Any, events: Sequence[HistoryEvent]) -> Failure:
    match end:
        case WorkflowExecutionCanceled():
            return Failure(message="the activity was cancelled", info=CanceledFailureInfo(details=end.details))
        case WorkflowExecutionTerminated():
            message = f"the activity was terminated: {end.reason}" if end.reason else "the activity was terminated"
            return Failure(message=message, info=TerminatedFailureInfo())
    for event in reversed(events):
        if isinstance(event.attributes, ActivityTaskFailed | ActivityTaskTimedOut):
            return event.attributes.failure
    raise TypeError(f"{type(end).__name__} is no end of a stand-alone activity")


def _info(state: ExecutionState) -> ActivityExecutionInfo:
    return ActivityExecutionInfo(
        activity_id=state.workflow_id,
        run_id=state.run_id,
        activity_type=state.workflow_type,
        task_queue=state.task_queue,
        status=state.status,
        schedule_time=state.start_time,
        close_time=state.close_time,
        memo=state.memo,
        search_attributes=state.search_attributes,
    )


def _of_event(scheduled: HistoryEvent) -> dict[str, Any]:
    attributes = scheduled.attributes
    assert isinstance(attributes, ActivityTaskScheduled)
    return {
        "priority": attributes.priority,
        "headers": attributes.headers,
        "input": attributes.input,
        "user_metadata": scheduled.user_metadata,
    }


def _of_attempts(state: ExecutionState, scheduled: HistoryEvent, item: ActivityItem | None) -> dict[str, Any]:
    attributes = scheduled.attributes
    assert isinstance(attributes, ActivityTaskScheduled)
    pending = state.activities.get(scheduled.event_id) or _ended(
        scheduled.event_id, scheduled.event_time if item is None else item.scheduled_time, attributes, state
    )
    shown = pending_activity(pending, item)
    is_open = state.close_time is None
    same = (
        "attempt last_started_time last_heartbeat_time heartbeat_details last_failure last_worker_identity paused_time "
        "paused_by pause_reason schedule_to_close_timeout schedule_to_start_timeout start_to_close_timeout "
        "heartbeat_timeout retry_policy expiration_time"
    ).split()
    return {
        **{name: getattr(shown, name) for name in same},
        "execution_time": shown.scheduled_time,
        "run_state": shown.state if is_open else None,
        "next_attempt_schedule_time": shown.next_attempt_schedule_time if is_open else None,
    }


def _ended(
    scheduled_event_id: int, time: datetime, attributes: ActivityTaskScheduled, state: ExecutionState
) -> PendingActivity:
    """What the state of a closed run has no more."""
    return PendingActivity(
        scheduled_event_id=scheduled_event_id,
        scheduled_seq=state.first_seq,
        activity_id=attributes.activity_id,
        activity_type=attributes.activity_type,
        task_queue=attributes.task_queue,
        scheduled_time=time,
        schedule_to_close_timeout=attributes.schedule_to_close_timeout,
        schedule_to_start_timeout=attributes.schedule_to_start_timeout,
        start_to_close_timeout=attributes.start_to_close_timeout,
        heartbeat_timeout=attributes.heartbeat_timeout,
        retry_policy=attributes.retry_policy,
    )
