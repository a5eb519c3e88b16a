"""After a restart: queues are rebuilt from the newest states, and attempts of processes that are gone are ended.

Runs before anything is served. What it does per execution is idempotent, and what it cannot do now, deadlines do later.
"""

import asyncio
import logging
from collections.abc import Callable

from stepwell.api.common import ProcessIdentity
from stepwell.api.enums import WorkflowExecutionStatus

from .activities_shell import ActivityShell
from .activity_item import ActivityItem, ItemState, is_finished, queue_of, with_detached
from .commit import ExecutionKey
from .crossing import Crossing
from .deleting import Deleting
from .executions import Executions
from .holders import Holders
from .items import ActivityItems
from .liveness import Liveness
from .ports import ActivityTaskRef, Dispatcher, VisibilityStore, WorkflowTaskRef
from .requests import EndLeases
from .state import ExecutionState

log = logging.getLogger(__name__)

_PAGE = 500
_REASON = "the process that ran this attempt is gone"

Gone = Callable[[ProcessIdentity | None], bool]


class Recovery:
    def __init__(
        self,
        visibility: VisibilityStore,
        executions: Executions,
        items: ActivityItems,
        activities: ActivityShell,
        holders: Holders,
        dispatcher: Dispatcher,
        liveness: Liveness,
        crossing: Crossing,
        deleting: Deleting,
        concurrency: int,
    ) -> None:
        self._visibility = visibility
        self._executions = executions
        self._items = items
        self._activities = activities
        self._holders = holders
        self._dispatcher = dispatcher
        self._liveness = liveness
        self._crossing = crossing
        self._deleting = deleting
        self._concurrency = concurrency

    async def run(self) -> int:
        """Recovers every execution that owes something; the number of them. Raises StoreUnavailable, Unavailable."""
        count = 0
        after: ExecutionKey | None = None
        while keys := await self._visibility.owing(after, _PAGE):
            for first in range(0, len(keys), self._concurrency):
                await asyncio.gather(*(self._recover(key) for key in keys[first : first + self._concurrency]))
            count += len(keys)
            after = keys[-1]
        return count

    async def end_attempts(self, key: ExecutionKey, process: ProcessIdentity) -> None:
        """Ends what ``process``, which is gone, holds of the execution."""
        state = await self._executions.read(key)
        if state is not None and state.status is WorkflowExecutionStatus.RUNNING:
            items = await self._items_of(key, state)
            await self._end_gone(key, state, items, lambda holder: holder == process)

    async def _recover(self, key: ExecutionKey) -> None:
        state = await self._executions.read(key)
        if state is None:
            return
        self._crossing.resume(key, state)
        self._deleting.resume(key, state)
        task = state.workflow_task
        if task is not None:
            ref = WorkflowTaskRef(key, state.run_id, task.attempt)
            await self._dispatcher.offer_workflow_task(
                state.task_queue, ref, state.last_worker_key, task.not_before, state.priority
            )
        if state.activities:
            items = await self._items_of(key, state)
            await self._offer_waiting(key, state, items)
            await self._end_gone(key, state, items, self._liveness.is_gone)
            await self._activities.wake_up(key, state.run_id)

    async def _items_of(self, key: ExecutionKey, state: ExecutionState) -> dict[int, ActivityItem]:
        held = [scheduled_event_id for scheduled_event_id, pending in state.activities.items() if pending.lease is None]
        if not held:
            return {}
        found = await self._items.read(key, state.run_id, held)
        return with_detached(state, {item.scheduled_event_id: item for item in found})

    async def _offer_waiting(self, key: ExecutionKey, state: ExecutionState, items: dict[int, ActivityItem]) -> None:
        for scheduled_event_id, pending in state.activities.items():
            item = items.get(scheduled_event_id)
            if pending.lease is not None:
                self._holders.note(pending.lease.holder, key)
            elif item is not None and item.pause is not None and item.state is ItemState.SCHEDULED:
                continue
            elif item is None or item.state is ItemState.SCHEDULED:
                attempt, not_before = (
                    (pending.attempt, pending.next_attempt_time)
                    if item is None
                    else (item.attempt, item.next_attempt_time)
                )
                ref = ActivityTaskRef(key, state.run_id, scheduled_event_id, attempt)
                await self._dispatcher.offer_activity_task(queue_of(pending, item), ref, not_before, pending.priority)
            elif not is_finished(item):
                self._holders.note(item.holder, key)

    async def _end_gone(
        self, key: ExecutionKey, state: ExecutionState, items: dict[int, ActivityItem], gone: Gone
    ) -> None:
        leases = tuple(
            scheduled_event_id
            for scheduled_event_id, pending in state.activities.items()
            if pending.lease is not None and gone(pending.lease.holder)
        )
        if leases:
            ended = EndLeases(run_id=state.run_id, scheduled_event_ids=leases, reason=_REASON)
            await self._executions.transact(key, ended)
        started = [item for item in items.values() if item.state is ItemState.STARTED and gone(item.holder)]
        if started:
            await self._activities.end_attempts(key, state.run_id, started, _REASON)
