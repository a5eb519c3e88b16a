"""Activity attempts that items hold: start, end, heartbeat, cancellation; and the wake-up behind each end.

Beware the lost wake-up (design section 4): an end is put into its item first, *then* the head is read and a workflow
task is scheduled if none is outstanding; whoever completes a workflow task commits, *then* looks for finished items
again.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import msgspec
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.errors import ApiError, NotFound, Unavailable
from stepwell.api.events import ActivityTaskScheduled
from stepwell.api.payloads import Payloads
from stepwell.api.requests import (
    ActivityCanceled,
    ActivityCompleted,
    ActivityFailed,
    ActivityOutcome,
    ActivityOutcomeReply,
    RecordActivityHeartbeatResponse,
    WorkerInfo,
)

from ..common.clock import Clock
from . import activity_attempts, activity_item, attempt_ends
from .activity_item import ActivityItem, ItemState, is_finished
from .armed_times import ArmedTimes
from .commit import ExecutionKey
from .executions import Executions
from .holders import Holders
from .items import ActivityItems
from .ports import ActivityTaskRef, Dispatcher, VersionConflict
from .requests import Detach, FinishedActivity, LeasedHeartbeat, RecordFinishedActivities, Request
from .scheduled_events import ScheduledEvents
from .state import ExecutionState, PendingActivity
from .task_tokens import ActivityToken
from .tasks import CancelActivity
from .transition import OutcomesReply

_PUT_ATTEMPTS = 8


class Started(NamedTuple):
    """An attempt that was given to a worker, and the item as it was before, to put back if nobody got it."""

    ref: ActivityTaskRef
    state: ExecutionState
    pending: PendingActivity
    before: ActivityItem
    item: ActivityItem
    scheduled: ActivityTaskScheduled


class ActivityShell:
    def __init__(
        self,
        executions: Executions,
        items: ActivityItems,
        scheduled_events: ScheduledEvents,
        dispatcher: Dispatcher,
        holders: Holders,
        armed: ArmedTimes,
        clock: Clock,
    ) -> None:
        self._executions = executions
        self._items = items
        self._scheduled_events = scheduled_events
        self._dispatcher = dispatcher
        self._holders = holders
        self._armed = armed
        self._clock = clock

    # --- start ---

    async def start(self, ref: ActivityTaskRef, worker: WorkerInfo, task_queue: str) -> Started | None:
        """Gives the attempt to ``worker``, which polls ``task_queue``; None when the hint is out of date. Raises
        Unavailable."""
        for _ in range(_PUT_ATTEMPTS):
            state = await self._executions.read(ref.key)
            pending = attempt_ends.pending_in(state, ref.run_id, ref.scheduled_event_id)
            if state is None or pending is None or pending.lease is not None or state.pause is not None:
                return None
            before = await self._items.get(ref.key, ref.run_id, ref.scheduled_event_id)
            before = before or activity_item.new_item(state, pending)
            if task_queue != activity_item.queue_of(pending, before):
                return None
            now = self._clock.now()
            if (
                before.attempt == ref.attempt
                and before.next_attempt_time is not None
                and now < before.next_attempt_time
            ):
                await self._offer_next_attempt(ref.key, pending, before)
                return None
            scheduled = await self._scheduled_events.get(ref.key, ref.run_id, pending)
            try:
                item = activity_attempts.start(
                    state,
                    pending,
                    before if before.version else None,
                    attempt=ref.attempt,
                    identity=worker.identity,
                    worker_key=worker.worker_key,
                    holder=worker.process,
                    now=now,
                )
                await self._put(ref.key, state, item)
            except NotFound:
                return None
            except VersionConflict:
                continue
            self._holders.note(worker.process, ref.key)
            return Started(ref, state, pending, before, item, scheduled)
        raise Unavailable(f"activity {ref.scheduled_event_id} of {ref.key.workflow_id!r} is being changed by others")

    async def take_back(self, started: Started) -> None:
        """Nobody received the attempt: it is as it was, and offered again (WC-32)."""

        def as_before(
            state: ExecutionState, pending: PendingActivity, item: ActivityItem | None, now: datetime
        ) -> ActivityItem:
            if item is None or item.version != started.item.version:
                return activity_attempts.not_received(item, started.item.attempt, started.item.stamp)
            return msgspec.structs.replace(started.before, version=item.version + 1)

        await self._give_back(started.ref, as_before)

    async def _give_back(self, ref: ActivityTaskRef, change: attempt_ends.Change) -> None:
        try:
            await self.update(ref.key, ref.run_id, ref.scheduled_event_id, change)
        except NotFound:
            return  # it has ended meanwhile

    async def give_back(self, key: ExecutionKey, token: ActivityToken) -> None:
        """The answer that carried this attempt could not be sent; it is offered again."""

        def waiting(
            state: ExecutionState, pending: PendingActivity, item: ActivityItem | None, now: datetime
        ) -> ActivityItem:
            return activity_attempts.not_received(item, token.attempt, token.stamp)

        await self._give_back(ActivityTaskRef(key, token.run_id, token.scheduled_event_id, token.attempt), waiting)

    # --- ends ---

    async def respond(
        self, token: ActivityToken, outcome: ActivityOutcome, worker_key: str = "", *, by_id: str | None = None
    ) -> ActivityOutcomeReply:
        """Ends an item-held attempt, or puts it back. The caller redoes the wake-up (``wake_up``), also when the
        outcome is a repeat. ``by_id``: who says so without holding the attempt, and may complete one that waits."""

        def end(
            state: ExecutionState, pending: PendingActivity, item: ActivityItem | None, now: datetime
        ) -> ActivityItem:
            if by_id is not None and isinstance(outcome, ActivityCompleted):
                item = activity_attempts.begun_elsewhere(item or activity_item.new_item(state, pending), by_id, now)
            if item is None:
                raise attempt_ends.not_current(token)
            if isinstance(outcome, ActivityCanceled) and pending.cancel_requested_event_id:
                item = activity_attempts.asked_to_cancel(item, token.attempt)
            if isinstance(outcome, ActivityFailed) and not outcome.begun:
                return activity_attempts.put_back(item, token.attempt, worker_key, now)
            return attempt_ends.ended(item, token.attempt, outcome, now)

        try:
            try:
                await self.update(_key(token), token.run_id, token.scheduled_event_id, end, token)
            except NotFound:
                if not await self._counted(token, outcome):
                    raise
        except Unavailable:
            raise
        except ApiError as error:
            return ActivityOutcomeReply(error_code=error.code, message=error.message)
        return ActivityOutcomeReply()

    async def _counted(self, token: ActivityToken, outcome: ActivityOutcome) -> bool:
        """Whether the outcome is the repeat of one that the history has already."""
        item = await self._items.get(_key(token), token.run_id, token.scheduled_event_id)
        return (
            item is not None
            and is_finished(item)
            and item.stamp == token.stamp
            and attempt_ends.ended(item, token.attempt, outcome, self._clock.now()) is item
        )

    async def wake_up(self, key: ExecutionKey, run_id: str) -> None:
        """Schedules a workflow task for finished items, if none is outstanding. Repeating it is harmless."""
        state = await self._executions.read(key)
        if state is None or not _wants_wake_up(state, run_id):
            return
        found = await self._items.finished(state)
        if not found:
            return
        seen = state

        async def record(newest: ExecutionState | None) -> Request:
            """What finishes behind the look is found by whoever ends it, or by the workflow task of this commit."""
            finished: list[ActivityItem] = []
            if newest is not None and _wants_wake_up(newest, run_id):
                finished = found if newest.seq == seen.seq else await self._items.finished(newest)
            return RecordFinishedActivities(
                run_id=run_id, finished=tuple([FinishedActivity(item) for item in finished])
            )

        await self._executions.transact(key, None, record)

    # --- attempts that go on after their lease ---

    async def detach(
        self, key: ExecutionKey, run_id: str, attempts: tuple[tuple[int, int], ...], *, released: bool = False
    ) -> tuple[ActivityOutcomeReply, ...]:
        """Leaves leased attempts, by scheduled event id and number, to their items: one commit for all of a run."""
        outcome = await self._executions.transact(key, Detach(run_id=run_id, attempts=attempts, released=released))
        reply = outcome.transition.reply
        if not isinstance(reply, OutcomesReply):
            raise TypeError(f"a request to detach was answered with {type(reply).__name__}")
        return reply.outcome_replies

    async def detached(self, key: ExecutionKey, run_id: str) -> frozenset[int]:
        """Scheduled event ids of the pending activities that were leased and have an item as their authority now."""
        state = await self._executions.read(key)
        if state is None or state.run_id != run_id:
            return frozenset()
        return frozenset(
            scheduled_event_id
            for scheduled_event_id, pending in state.activities.items()
            if pending.detached is not None
        )

    # --- heartbeat, cancellation, timeouts, lost workers ---

    async def heartbeat(self, token: ActivityToken, details: Payloads) -> RecordActivityHeartbeatResponse:
        """What was asked of the attempt meanwhile (AC-19). Raises NotFound for another attempt (AC-22)."""
        if token.leased and await self._is_leased(token):
            return await self._leased_heartbeat(token, details)

        def beat(
            state: ExecutionState, pending: PendingActivity, item: ActivityItem | None, now: datetime
        ) -> ActivityItem:
            if item is None:
                raise attempt_ends.not_current(token)
            return activity_attempts.heartbeat(item, token.attempt, details, now)

        pending, item = await self.update(_key(token), token.run_id, token.scheduled_event_id, beat, token)
        return RecordActivityHeartbeatResponse(
            cancel_requested=item.cancel_requested or pending.cancel_requested_event_id != 0,
            paused=item.pause is not None or await self._is_paused(token),
            reset=item.reset_requested,
        )

    async def _is_paused(self, token: ActivityToken) -> bool:
        """Whether the workflow is; its running attempts are told, and come back when it goes on."""
        state = await self._executions.read(_key(token))
        return state is not None and state.pause is not None

    async def _is_leased(self, token: ActivityToken) -> bool:
        """False once an item is the authority on the attempt, whose token is the same."""
        pending = attempt_ends.pending_in(
            await self._executions.read(_key(token)), token.run_id, token.scheduled_event_id
        )
        return pending is None or pending.lease is not None

    async def _leased_heartbeat(self, token: ActivityToken, details: Payloads) -> RecordActivityHeartbeatResponse:
        """A sign of life alone writes nothing, since there is no heartbeat timeout; progress is kept."""
        state = await self._executions.read(_key(token))
        pending = attempt_ends.pending_in(state, token.run_id, token.scheduled_event_id)
        if pending is None:
            raise attempt_ends.not_pending(state, token.run_id, token.scheduled_event_id)
        if pending.lease is None or pending.attempt != token.attempt:
            raise attempt_ends.not_current(token)
        if details and details != pending.heartbeat_details:
            progress = LeasedHeartbeat(
                run_id=token.run_id,
                scheduled_event_id=token.scheduled_event_id,
                attempt=token.attempt,
                details=details,
            )
            await self._executions.transact(_key(token), progress)
        return RecordActivityHeartbeatResponse(cancel_requested=pending.cancel_requested_event_id != 0)

    async def cancel(self, key: ExecutionKey, run_id: str, tasks: Iterable[CancelActivity]) -> None:
        """Tells the items that the workflow asked for cancellation, and the workers that run their attempts; those that
        had not started are over at once."""
        for task in tasks:
            item: ActivityItem | None = None
            try:
                _, item = await self.update(key, run_id, task.scheduled_event_id, activity_attempts.request_cancel)
            except NotFound:
                # It has ended, is leased, or the run has closed: its worker is told all the same.
                if not task.leased_to:
                    item = await self._items.get(key, run_id, task.scheduled_event_id)
            await self._push_cancel(key, run_id, task, item)
        await self.wake_up(key, run_id)

    async def _push_cancel(
        self, key: ExecutionKey, run_id: str, task: CancelActivity, item: ActivityItem | None
    ) -> None:
        if item is not None and item.state is ItemState.STARTED and item.worker_key:
            token = attempt_ends.token_of(item)
            self._dispatcher.push_cancel(item.task_queue or task.task_queue, item.worker_key, token)
        elif task.leased_to:
            state = await self._executions.read(key)
            if state is None or task.leased_to != state.last_worker_key:  # which tells its own activities by itself
                token = attempt_ends.token_of_lease(key, run_id, task)
                self._dispatcher.push_cancel(task.task_queue, task.leased_to, token)

    async def end_attempts(self, key: ExecutionKey, run_id: str, ended: Iterable[ActivityItem], reason: str) -> None:
        """The workers of these started items are provably gone."""
        for seen in ended:
            try:
                await self.update(key, run_id, seen.scheduled_event_id, attempt_ends.end_attempt(seen.attempt, reason))
            except NotFound:
                continue  # it has ended
        await self.wake_up(key, run_id)

    async def time_out(self, key: ExecutionKey, state: ExecutionState, items: dict[int, ActivityItem]) -> None:
        """Puts every item of ``state`` that has a timeout due. No arm: the firing that asked commits the re-arm."""
        for item in activity_attempts.overdue(state, items, self._clock.now()):
            try:
                await self._items.put(item, None)
            except VersionConflict:
                continue  # its attempt ended just now, and that counts
            await self._offer_next_attempt(key, state.activities[item.scheduled_event_id], item)

    # --- one change of one item ---

    async def update(
        self,
        key: ExecutionKey,
        run_id: str,
        scheduled_event_id: int,
        change: attempt_ends.Change,
        token: ActivityToken | None = None,
    ) -> tuple[PendingActivity, ActivityItem]:
        """Puts what ``change`` makes of the item, again when somebody else was faster.

        Raises NotFound when the activity has ended, ``change`` says so, or ``token`` is of an attempt from before a
        reset or a pause; Unavailable when nothing came of it.
        """
        for _ in range(_PUT_ATTEMPTS):
            state = await self._executions.read(key)
            pending = attempt_ends.pending_in(state, run_id, scheduled_event_id)
            if state is None or pending is None:
                raise attempt_ends.not_pending(state, run_id, scheduled_event_id)
            if pending.lease is not None:
                raise NotFound(f"the activity {pending.activity_id!r} runs under a lease of the log")
            item = await self._items.get(key, run_id, scheduled_event_id)
            if item is None and pending.detached is not None:
                item = activity_item.new_item(state, pending)
            if token is not None and token.stamp != (0 if item is None else item.stamp):
                raise attempt_ends.not_current(token)
            after = change(state, pending, item, self._clock.now())
            if after is item or not after.version:  # also of one that has no item yet, nothing was changed
                return pending, after
            try:
                await self._put(key, state, after)
            except VersionConflict:
                continue
            await self._offer_next_attempt(key, pending, after)
            return pending, after
        raise Unavailable(
            f"activity {scheduled_event_id} of workflow {key.workflow_id!r} is being changed by others; call again"
        )

    async def _put(self, key: ExecutionKey, state: ExecutionState, item: ActivityItem) -> None:
        arm = self._armed.needed(key, state, activity_item.arm_time(item), self._clock.now())
        await self._items.put(item, arm)
        self._armed.armed(key, arm)

    async def _offer_next_attempt(self, key: ExecutionKey, pending: PendingActivity, item: ActivityItem) -> None:
        if item.state is ItemState.SCHEDULED and item.pause is None:
            ref = ActivityTaskRef(key, item.run_id, item.scheduled_event_id, item.attempt)
            queue = activity_item.queue_of(pending, item)
            await self._dispatcher.offer_activity_task(queue, ref, item.next_attempt_time, pending.priority)


def _key(token: ActivityToken) -> ExecutionKey:
    return ExecutionKey(token.namespace, token.workflow_id)


def _wants_wake_up(state: ExecutionState, run_id: str) -> bool:
    """With a workflow task outstanding, whoever starts or completes it looks for finished items."""
    return (
        state.run_id == run_id
        and state.status is WorkflowExecutionStatus.RUNNING
        and state.workflow_task is None
        and bool(state.activities)
    )
