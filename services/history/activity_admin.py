"""Pause, unpause, reset and other options of pending activities, one by its id or all of a type (AC-25, AC-26).

All of it lives in the activity items. An attempt that the log leased is left to its item first (``Detach``, one commit
for all of them), then each item is put once. A call that broke off in between is simply made again: what was reached is
as asked for already.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from stepwell.api import requests as r
from stepwell.api.errors import NotFound

from ..common.clock import Clock, IdSource
from . import activity_changes, activity_item
from .activities_by_id import ended, key_of, running, scheduled_event_id_of
from .activities_shell import ActivityShell
from .activity_item import ActivityItem, Pause, is_finished
from .commit import ExecutionKey
from .executions import Executions
from .state import ExecutionState, PendingActivity

_AT_ONCE = 100

Asked = r.PauseActivityRequest | r.UnpauseActivityRequest | r.ResetActivityRequest | r.UpdateActivityOptionsRequest
ItemChange = Callable[[ExecutionState, PendingActivity, ActivityItem, datetime], ActivityItem]


class ActivityAdmin:
    """Each method returns the ids of the activities that are as asked for now. Raises NotFound when there is none."""

    def __init__(self, executions: Executions, activities: ActivityShell, clock: Clock, ids: IdSource) -> None:
        self._executions = executions
        self._activities = activities
        self._clock = clock
        self._ids = ids

    async def pause(self, request: r.PauseActivityRequest) -> tuple[str, ...]:
        asked = Pause(time=self._clock.now(), identity=request.identity, reason=request.reason)
        return await self._change(request, lambda _state, _pending, item, _now: activity_changes.pause(item, asked))

    async def unpause(self, request: r.UnpauseActivityRequest) -> tuple[str, ...]:
        def change(state: ExecutionState, pending: PendingActivity, item: ActivityItem, now: datetime) -> ActivityItem:
            return activity_changes.unpause(
                item,
                self._start(now, request.jitter),
                reset_attempts=request.reset_attempts,
                reset_heartbeat=request.reset_heartbeat,
            )

        return await self._change(request, change)

    async def reset(self, request: r.ResetActivityRequest) -> tuple[str, ...]:
        def change(state: ExecutionState, pending: PendingActivity, item: ActivityItem, now: datetime) -> ActivityItem:
            if request.restore_original_options:
                item = activity_changes.original(pending, item)
            return activity_changes.reset(
                item,
                self._start(now, request.jitter),
                keep_paused=request.keep_paused,
                reset_heartbeat=request.reset_heartbeat,
            )

        return await self._change(request, change)

    async def update_options(self, request: r.UpdateActivityOptionsRequest) -> tuple[str, ...]:
        def change(state: ExecutionState, pending: PendingActivity, item: ActivityItem, now: datetime) -> ActivityItem:
            return activity_changes.with_options(state, pending, item, request.options, now)

        return await self._change(request, change)

    def _start(self, now: datetime, jitter: timedelta | None) -> datetime:
        return activity_changes.spread(now, jitter, self._ids.nonce())

    async def _change(self, request: Asked, change: ItemChange) -> tuple[str, ...]:
        key = key_of(request)
        state = running(await self._executions.read(key), key, request.execution.run_id)
        targets = _targets(state, request)
        leased = tuple([(target.scheduled_event_id, target.attempt) for target in targets if target.lease is not None])
        if leased:
            await self._activities.detach(key, state.run_id, leased)
        changed: list[str] = []
        for first in range(0, len(targets), _AT_ONCE):
            some = targets[first : first + _AT_ONCE]
            answers = await asyncio.gather(*(self._change_one(key, state.run_id, target, change) for target in some))
            changed += [target.activity_id for target, reached in zip(some, answers, strict=True) if reached]
        if not changed:
            raise ended(request.activity_id) if request.activity_id else _none_of_type(state, request.activity_type)
        return tuple(changed)

    async def _change_one(self, key: ExecutionKey, run_id: str, target: PendingActivity, change: ItemChange) -> bool:
        """False when it has ended meanwhile."""

        def changed(
            state: ExecutionState, pending: PendingActivity, item: ActivityItem | None, now: datetime
        ) -> ActivityItem:
            item = item if item is not None else activity_item.new_item(state, pending)
            if is_finished(item):
                raise ended(item.activity_id)
            return change(state, pending, item, now)

        try:
            await self._activities.update(key, run_id, target.scheduled_event_id, changed)
        except NotFound:
            return False
        return True


def _targets(state: ExecutionState, request: Asked) -> Sequence[PendingActivity]:
    if request.activity_id:
        return [state.activities[scheduled_event_id_of(state, request.activity_id)]]
    of_type = [pending for pending in state.activities.values() if pending.activity_type == request.activity_type]
    if not of_type:
        raise _none_of_type(state, request.activity_type)
    return of_type


def _none_of_type(state: ExecutionState, activity_type: str) -> NotFound:
    return NotFound(
        f"no activity of type {activity_type!r} is pending in workflow {state.workflow_id!r}; "
        "describe the workflow to see those that are",
        activity_type=activity_type,
    )
