"""A turn of a workflow that has local activities: their ends are fed to it one by one, and one completion sends it all.

When that takes long, what there is by then is recorded with a request for another workflow task, which comes with the
answer; so the task is kept alive, messages get in, and nothing overflows (AC-24). The run's lock is held throughout.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from ..api.enums import WorkflowTaskFailedCause
from ..api.failures import Failure
from ..api.limits import MAX_TRANSITION_BYTES
from ..api.payloads import size_of
from ..api.requests import ActivityOutcome, WorkflowTask
from ..converter.failure_size import failure_size
from ..replay.errors import WorkflowTaskError
from ..replay.machines.local_activity import LocalActivityEnd
from ..replay.run import TaskResult
from .activity_worker import ActivityWorker
from .attempt import Attempt
from .cached_run import CachedRun, RunCache
from .completion import CompletionSender
from .local_activities import LocalActivityRuns
from .slots import Slots
from .workflow_turns import WorkflowTurns

KEEP_ALIVE_AFTER = 0.8
"""Of the workflow task's timeout."""

STEP_LASTS = 0.1
"""Seconds. A fused step has no task that could be kept alive, and carries ends that are recorded nowhere yet (design
section 6): behind this it is sent as it is.
"""

MAX_KEPT_ALIVE = 30 * 60.0
"""Seconds (AC-24)."""

_MAX_BYTES = MAX_TRANSITION_BYTES // 4
_MAX_ENDS = 1_000

Ended = Sequence[tuple[int, ActivityOutcome]]
Failed = Callable[[CachedRun, bytes, WorkflowTaskError, Any], Awaitable[None]]


class _Turn:
    """What is to be sent for the workflow task at hand."""

    __slots__ = ("at", "bytes", "ended", "ends", "result", "task_token", "until")

    def __init__(self, task_token: bytes, result: TaskResult, until: float) -> None:
        self.task_token = task_token
        self.result = result
        self.until = until
        self.ended: Ended = ()
        self.at: datetime | None = None
        self.ends = 0
        self.bytes = 0

    def count(self, end: LocalActivityEnd) -> bool:
        """False when the completion has become so large that it had better be sent."""
        self.ends += 1
        self.bytes += size_of(end.result) + failure_size(end.failure)
        return self.ends < _MAX_ENDS and self.bytes < _MAX_BYTES


class LocalTurns:
    """One per worker."""

    def __init__(
        self,
        *,
        turns: WorkflowTurns,
        sender: CompletionSender,
        activities: ActivityWorker,
        slots: Slots,
        cache: RunCache,
        on_failed: Failed,
    ) -> None:
        self._turns = turns
        self._sender = sender
        self._activities = activities
        self._slots = slots
        self._cache = cache
        self._on_failed = on_failed
        self._loop = activities.loop

    def finish(
        self,
        cached: CachedRun,
        task_token: bytes,
        result: TaskResult,
        began: float | None = None,
        ended: Ended = (),
        at: datetime | None = None,
    ) -> Coroutine[Any, Any, Attempt | None]:
        """Complete the task once its local activities have ended. ``began``: when the task came, by the loop's clock;
        not given for a fused step, of which ``ended`` and ``at`` are. Returns an attempt that the caller has to run.
        Raises WorkflowTaskError when the task failed and nobody has been told."""
        if cached.local is None and not cached.run.local.waits:
            return self._sender.complete(cached, task_token, result, ended, at)
        if began is None:
            until = self._loop.time() + STEP_LASTS
        else:
            until = began + self._keep_alive_after(cached)
        turn = _Turn(task_token, result, until)
        turn.ended, turn.at = ended, at
        return self._finish(cached, turn)

    async def _finish(self, cached: CachedRun, turn: _Turn) -> Attempt | None:
        """A failure of the task is sent, with the token of the task that the turn has come to."""
        try:
            while self._begin(cached):
                if await self._feed(cached, turn) or not self._begin(cached):
                    continue
                if not await self._keep_alive(cached, turn):
                    return None
            return await self._sender.complete(cached, turn.task_token, turn.result, turn.ended, turn.at)
        except WorkflowTaskError as error:
            await self._on_failed(cached, turn.task_token, error, turn.ended)
            return None
        finally:
            if cached.local is not None:
                cached.local.askable.set()

    def _begin(self, cached: CachedRun) -> bool:
        """Start and stop what code asked for. True while there is something to wait for."""
        run = cached.run
        local = cached.local
        if not run.closed:
            stops, calls = run.local.take_stops(), run.local.take_calls()
            if local is None:
                if not calls:
                    return False
                local = cached.local = LocalActivityRuns(cached, self._activities, self._slots)
            for stop in stops:
                local.stop(stop)
            local.start(calls)
        return local is not None and (local.pending or local.shut_down) and not run.closed

    async def _feed(self, cached: CachedRun, turn: _Turn) -> bool:
        """Wait for ends, and run the code behind each. False when the task is to be sent as it is."""
        local = cached.local
        assert local is not None
        if turn.at is None and cached.ended:
            await self._report_ended(cached)
        cached.reports_ended = turn.at is None
        try:
            ends = await local.next_ends(max(turn.until - self._loop.time(), 0.0))
        finally:
            cached.reports_ended = False
        small = bool(ends)
        for end in ends:
            small = turn.count(end) and small
            if not cached.run.closed:
                turn.result = self._turns.guarded(cached, partial(cached.run.run_local, end))
        return cached.run.closed or (small and not local.shut_down and self._loop.time() < turn.until)

    async def _report_ended(self, cached: CachedRun) -> None:
        """Results of leased activities do not wait for this turn's end."""
        ended, cached.ended = cached.ended, []
        await self._activities.reporter.report(*(outcome for _, outcome in ended))

    async def _keep_alive(self, cached: CachedRun, turn: _Turn) -> bool:
        """Record what there is, and go on in the workflow task that follows. False when that is not here or now."""
        local = cached.local
        assert local is not None
        if cached.evicted:
            return False
        if local.pending_for > MAX_KEPT_ALIVE:
            raise _too_long()
        leave = local.shut_down
        following = await self._sender.complete(
            cached, turn.task_token, turn.result, turn.ended, turn.at, another="leave" if leave else "take"
        )
        if following is not None:
            self._activities.launch(following)
        task, cached.next_task = cached.next_task, None
        turn.ended = ()
        if leave:
            self._cache.evict(cached)
        if task is None or cached.evicted:
            return False
        await self._go_on(cached, turn, task)
        return True

    async def _go_on(self, cached: CachedRun, turn: _Turn, task: WorkflowTask) -> None:
        turn.task_token, turn.at = task.task_token, None
        turn.ends = turn.bytes = 0
        turn.until = self._loop.time() + self._keep_alive_after(cached)
        cached.set_time(task.started_time)
        turn.result = await self._turns.run_events(cached, task.events, task.updates)

    def _keep_alive_after(self, cached: CachedRun) -> float:
        return KEEP_ALIVE_AFTER * cached.run.task_timeout.total_seconds()


def _too_long() -> WorkflowTaskError:
    message = (
        f"local activities have kept the workflow task alive for {MAX_KEPT_ALIVE / 60:.0f} minutes, which is the "
        "limit; call what takes so long by workflow.execute_activity"
    )
    return WorkflowTaskError(WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE, Failure(message=message))
