"""A deadline fired: ends what is due in activity items, then lets the core act on the rest and record the re-arm.

Where only timers are due, and a worker polls, the workflow task goes first and its completion is the one commit
(``firing_ahead``).
"""

from collections.abc import Callable, Mapping
from datetime import datetime

from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.errors import NotFound

from ..common import metric_names as names
from ..common.clock import Clock, IdSource
from ..common.metrics import NO_METRICS, Metrics
from .activities_shell import ActivityShell
from .activity_item import ActivityItem, with_detached
from .commit import UNKNOWN, Awaited, ExecutionKey
from .deadlines import deadline
from .executions import Executions
from .items import ActivityItems
from .next_runs import next_run
from .ports import Dispatcher, ExecutionLog, WorkflowTaskRef
from .requests import NO_NEXT_RUN, FireDeadline, Request
from .state import ExecutionState
from .tasks import CancelActivity
from .waiting import longest_wait

_WAIT_FOR_WORKER = 1.0
"""Seconds until a firing that a worker was given ahead is written all the same; the task goes on behind it."""


class Firing:
    """``polled(namespace, task_queue)``: whether a worker asks for workflow tasks there now. ``fire_once``: what fired
    is struck off behind the commit; elsewhere it may fire again."""

    def __init__(
        self,
        log: ExecutionLog,
        executions: Executions,
        items: ActivityItems,
        activities: ActivityShell,
        ids: IdSource,
        dispatcher: Dispatcher,
        clock: Clock,
        polled: Callable[[str, str], bool],
        *,
        fire_once: bool = True,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        self._metrics = metrics
        self._log = log
        self._ids = ids
        self._dispatcher = dispatcher
        self._clock = clock
        self._polled = polled
        self._fire_once = fire_once
        self._executions = executions
        self._items = items
        self._activities = activities

    async def fire(self, key: ExecutionKey, fire_at: datetime, awaited: Awaited = UNKNOWN) -> bool:
        """Handles one armed deadline; firing it twice is harmless. Raises what leaves it armed, such as Unavailable.
        False: the write that it was armed for is not there, and may still come."""
        state = await self._executions.read(key)
        if state is None:
            return False
        if state.status is not WorkflowExecutionStatus.RUNNING and not state.owed:
            return bool(awaited.version) or 0 < awaited.seq <= state.seq
        landed = True
        items: Mapping[int, ActivityItem] = {}
        if state.activities:
            items = await self._fire_items(key, state)
            landed = _has_landed(state, items, awaited)
        elif self._is_repeated(state, fire_at):
            return True
        elif await self._fire_ahead(key, state, fire_at):
            return True
        self._tell_waiting(state, items)
        try:
            await self._executions.transact(key, None, lambda newest: self._request(key, newest, fire_at))
        except NotFound:
            return True  # retention was faster
        # A commit that was awaited is there, or its seq is taken now.
        return landed

    def _tell_waiting(self, state: ExecutionState, items: Mapping[int, ActivityItem]) -> None:
        """Where no worker is left, deadlines are all that tells of the tasks that wait."""
        if self._metrics is not NO_METRICS:
            waited = longest_wait(state, items, self._clock.now())
            if waited is not None:
                self._metrics.record(names.BACKLOG_AGE, waited.total_seconds())

    def _is_repeated(self, state: ExecutionState, fire_at: datetime) -> bool:
        """Whether a commit has the firing already, where deadlines fire more than once: a later one is armed, and
        nothing is due. Activities may have more due than their run knows."""
        if self._fire_once or state.armed is None or state.activities:
            return False
        now = self._clock.now()
        due = deadline(state, now)
        return fire_at < state.armed and now < state.armed and due is not None and now < due

    async def _fire_ahead(self, key: ExecutionKey, state: ExecutionState, fire_at: datetime) -> bool:
        """Whether a commit has the firing by now."""
        if state.workflow_task is not None or not self._polled(key.namespace, state.task_queue):
            return False
        planned = self._executions.plan_ahead(key, state, fire_at, self._clock.now())
        if planned is None:
            return False
        ref = WorkflowTaskRef(key, state.run_id, planned.task.attempt)
        await self._dispatcher.offer_workflow_task(
            state.task_queue, ref, state.last_worker_key, priority=state.priority
        )
        await self._executions.ahead.settled(planned, _WAIT_FOR_WORKER)
        return bool(planned.written_seq)

    async def _fire_items(self, key: ExecutionKey, state: ExecutionState) -> Mapping[int, ActivityItem]:
        """The items as they were before what was due in them ended."""
        items = await self._held(state)
        unasked = [
            CancelActivity(scheduled_event_id=scheduled_event_id, task_queue=pending.task_queue)
            for scheduled_event_id, pending in state.activities.items()
            if pending.lease is None
            and pending.cancel_requested_event_id
            and ((item := items.get(scheduled_event_id)) is None or not item.cancel_requested)
        ]
        if unasked:
            # The commit that asked could not tell the items any more.
            await self._activities.cancel(key, state.run_id, unasked)
            items = await self._held(state)
        await self._activities.time_out(key, state, items)
        return items

    async def _request(self, key: ExecutionKey, state: ExecutionState | None, fire_at: datetime) -> Request:
        held = {} if state is None or not state.activities else await self._held(state)
        following = NO_NEXT_RUN
        if state is not None:
            following = await next_run(self._log, key, state, state.run_id, self._ids.run_id)
        return FireDeadline(fire_at=fire_at, items=tuple(held.values()), next_run=following)

    async def _held(self, state: ExecutionState) -> dict[int, ActivityItem]:
        """The items of the activities that the log leaves to them."""
        held = [scheduled_event_id for scheduled_event_id, pending in state.activities.items() if pending.lease is None]
        if not held:
            return {}
        key = ExecutionKey(state.namespace, state.workflow_id)
        found = await self._items.read(key, state.run_id, held)
        return with_detached(state, {item.scheduled_event_id: item for item in found})


def _has_landed(state: ExecutionState, items: Mapping[int, ActivityItem], awaited: Awaited) -> bool:
    """Whether a write to an item is there, or can matter no more."""
    if not awaited.version or state.run_id != awaited.run_id or awaited.scheduled_event_id not in state.activities:
        return True
    item = items.get(awaited.scheduled_event_id)
    return item is not None and item.version >= awaited.version
