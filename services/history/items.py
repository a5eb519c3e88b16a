"""Activity items as the shell sees them: the store behind a view in memory, so that a fan-out reads each item once.

Where this process is the store's only writer, what it wrote or read is what is there. Where it is not, every read goes
to the store. Results make items large, so the view is bounded by bytes; a run that falls out is read again.
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.payloads import size_of

from ..common.clock import IdSource
from .activity_item import FINISHED, ActivityItem
from .commit import ExecutionKey
from .executions import unavailable
from .ports import ExecutionLog, StoreUnavailable, VersionConflict
from .state import ExecutionState

_ITEM_BYTES = 1_200
_ABSENT_BYTES = 100


class _RunView:
    """``items`` by scheduled event id; None is known to have no item."""

    __slots__ = ("bytes", "items", "run_id")

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.items: dict[int, ActivityItem | None] = {}
        self.bytes = 0


class ActivityItems:
    """Reads and puts activity items. Raises VersionConflict as the store does, and Unavailable when it cannot serve."""

    def __init__(self, log: ExecutionLog, ids: IdSource, *, sole_owner: bool, maximum_bytes: int) -> None:
        self._log = log
        self._ids = ids
        self._sole_owner = sole_owner
        self._maximum_bytes = maximum_bytes
        self._views: dict[ExecutionKey, _RunView] = {}
        self._bytes = 0
        self._forgotten = 0
        """How often a view was dropped; what was read across a drop may be out of date and is not learnt."""

    async def get(self, key: ExecutionKey, run_id: str, scheduled_event_id: int) -> ActivityItem | None:
        items = await self.read(key, run_id, (scheduled_event_id,))
        return items[0] if items else None

    async def read(self, key: ExecutionKey, run_id: str, scheduled_event_ids: Iterable[int]) -> list[ActivityItem]:
        """The items that exist among the given ones."""
        view = self._views.get(key) if self._sole_owner else None
        known = view.items if view is not None and view.run_id == run_id else {}
        wanted = list(scheduled_event_ids)
        missing = [scheduled_event_id for scheduled_event_id in wanted if scheduled_event_id not in known]
        if not missing:
            return [item for scheduled_event_id in wanted if (item := known[scheduled_event_id]) is not None]
        forgotten = self._forgotten
        try:
            found = await self._log.activities(key, run_id, missing)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        by_id = {item.scheduled_event_id: item for item in found}
        if self._sole_owner and forgotten == self._forgotten:
            for scheduled_event_id in missing:
                self._learn(key, run_id, scheduled_event_id, by_id.get(scheduled_event_id))
        for scheduled_event_id in wanted:
            item = known.get(scheduled_event_id)
            if item is not None:
                by_id.setdefault(scheduled_event_id, item)
        return [by_id[scheduled_event_id] for scheduled_event_id in wanted if scheduled_event_id in by_id]

    async def finished(self, state: ExecutionState) -> list[ActivityItem]:
        """The finished items of the activities that the log still holds as pending."""
        held = [scheduled_event_id for scheduled_event_id, pending in state.activities.items() if pending.lease is None]
        if not held:
            return []
        items = await self.read(ExecutionKey(state.namespace, state.workflow_id), state.run_id, held)
        return [item for item in items if item.state in FINISHED]

    async def put(self, item: ActivityItem, arm: datetime | None) -> None:
        """Puts conditionally on the version before; arms first."""
        key = ExecutionKey(item.namespace, item.workflow_id)
        item = msgspec.structs.replace(item, nonce=self._ids.nonce())
        try:
            await self._log.put_activity(item, arm=arm)
        except VersionConflict as conflict:
            self._forget(key)
            if conflict.existing is None or conflict.existing.nonce != item.nonce:
                raise
        except StoreUnavailable as error:
            self._forget(key)
            raise unavailable(error) from error
        except BaseException:
            self._forget(key)
            raise
        if self._sole_owner:
            self._learn(key, item.run_id, item.scheduled_event_id, item)

    def scheduled(self, key: ExecutionKey, run_id: str, scheduled_event_id: int) -> None:
        """The activity was scheduled just now, so it has no item yet."""
        if self._sole_owner:
            self._learn(key, run_id, scheduled_event_id, None)

    def committed(self, key: ExecutionKey, state: ExecutionState) -> None:
        """Forgets the items of activities that the history has the ends of."""
        view = self._views.get(key)
        if view is None:
            return
        if view.run_id != state.run_id or state.status is not WorkflowExecutionStatus.RUNNING or not state.activities:
            self._forget(key)
        elif len(view.items) > len(state.activities):
            for scheduled_event_id in [known for known in view.items if known not in state.activities]:
                self._account(view, -_cost(view.items.pop(scheduled_event_id)))

    def may_be_finished(self, key: ExecutionKey, state: ExecutionState) -> bool:
        """Whether a look for finished items that no workflow task will find is due (design section 4, lost wake-up)."""
        if state.workflow_task is not None or not state.activities:
            return False
        if state.status is not WorkflowExecutionStatus.RUNNING:
            return False
        view = self._views.get(key) if self._sole_owner else None
        known: dict[int, ActivityItem | None] = view.items if view is not None and view.run_id == state.run_id else {}
        for scheduled_event_id, pending in state.activities.items():
            if pending.lease is not None:
                continue
            if scheduled_event_id not in known:
                if pending.scheduled_seq == state.seq and not state.prefix_tail_seq:
                    continue  # scheduled just now: who ends it sees this commit, and wakes the run
                return True
            item = known[scheduled_event_id]
            if item is not None and item.state in FINISHED:
                return True
        return False

    def _learn(self, key: ExecutionKey, run_id: str, scheduled_event_id: int, item: ActivityItem | None) -> None:
        view = self._views.pop(key, None)
        if view is None or view.run_id != run_id:
            if view is not None:
                self._bytes -= view.bytes
            view = _RunView(run_id)
        self._views[key] = view
        if scheduled_event_id in view.items:
            before = view.items[scheduled_event_id]
            if item is None or (before is not None and before.version >= item.version):
                return
            self._account(view, -_cost(before))
        view.items[scheduled_event_id] = item
        self._account(view, _cost(item))
        while self._bytes > self._maximum_bytes and len(self._views) > 1:
            self._forget(next(iter(self._views)))

    def _account(self, view: _RunView, cost: int) -> None:
        view.bytes += cost
        self._bytes += cost

    def _forget(self, key: ExecutionKey) -> None:
        self._forgotten += 1
        view = self._views.pop(key, None)
        if view is not None:
            self._bytes -= view.bytes


def _cost(item: ActivityItem | None) -> int:
    if item is None:
        return _ABSENT_BYTES
    return _ITEM_BYTES + size_of(item.result) + size_of(item.heartbeat_details)
