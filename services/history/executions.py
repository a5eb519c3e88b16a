"""Load, step, commit; again on Conflict. The one place where a request becomes a commit.

Theory of operation. A transition is computed on the newest state this process knows and written by put-if-absent of the
next seq; a stale guess costs a Conflict and another round, never a wrong write. A put whose answer was lost is told by
its nonce. Work that a commit owes is handed on right behind the write (``follow``); whatever is lost there, deadlines
repair.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import msgspec
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.errors import ApiError, NotFound, PayloadTooLarge, Unavailable

from ..common import metric_names as names
from ..common.background import Background
from ..common.clock import Clock, IdSource
from ..common.metrics import NO_METRICS, Metrics
from ..common.settings import EngineSettings
from .commit import Commit, ExecutionKey
from .firing_ahead import FiringAhead, FiringsAhead
from .head_cache import Entry, HeadCache
from .key_locks import KeyLocks
from .machines import archiving, too_long
from .ports import Conflict, ExecutionLog, SequenceGap, StateTooLarge, StoreUnavailable
from .requests import CompleteWorkflowTask, FailWorkflowTask, Request
from .state import ExecutionState
from .step import OPENING, step
from .transition import Transition

log = logging.getLogger(__name__)

Follow = Callable[[ExecutionKey, Commit, datetime | None], Awaitable[None]]
_LOOKS = (0.1, 0.5, 1.0, 5.0, 20.0)
"""Seconds between looks for a write whose answer was lost; after them, its deadline decides."""

_ANSWERS = (CompleteWorkflowTask, FailWorkflowTask)
Known = ExecutionState | None
"""Has a name for functions that are made in each call: a union that their annotations spell out would be as well."""

Prepare = Callable[[Known], Awaitable[Request]]


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """``commit`` is None when nothing had to change."""

    transition: Transition
    commit: Commit | None


def unavailable(error: StoreUnavailable) -> Unavailable:
    return Unavailable(
        f"the store cannot serve this now ({error}); nothing acknowledged is lost, call again in a moment"
    )


def _is_of(entry: Entry | None, commit: Commit | None) -> bool:
    """By seq and run: a log that was deleted may begin anew."""
    return (
        entry is not None
        and commit is not None
        and entry.state.seq == commit.seq
        and entry.state.run_id == commit.state.run_id
    )


def _landed_before(commit: Commit, refusal: Conflict | SequenceGap) -> bool:
    """Whether the commit is in the log already: the store's answer to an earlier put was lost."""
    if isinstance(refusal, Conflict):
        return refusal.existing.nonce == commit.nonce
    log.warning("The head that was known of %r is not the newest: %s", commit.key, refusal)
    return False


def never_archived(namespace: str) -> None:
    """Of an engine without an archive."""


class Executions:
    """The workflow executions of one store. ``follow`` is called behind each commit made here; ``archive_after`` says
    how long behind its close a run of the namespace is to be archived, None: not at all."""

    def __init__(
        self,
        log: ExecutionLog,
        clock: Clock,
        ids: IdSource,
        settings: EngineSettings,
        background: Background,
        follow: Follow,
        ahead: FiringsAhead,
        metrics: Metrics = NO_METRICS,
        retention: Callable[[str], timedelta] | None = None,
        archive_after: Callable[[str], timedelta | None] = never_archived,
    ) -> None:
        self._archive_after = archive_after
        self._retention = retention or (lambda namespace: settings.default_retention)
        self._metrics = metrics
        self._log = log
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._sole_owner = settings.sole_owner
        self._background = background
        self._follow = follow
        self._locks = KeyLocks()
        self.ahead = ahead
        self.cache = HeadCache(settings.cached_executions, settings.cached_bytes)

    async def _head(self, key: ExecutionKey) -> Entry | None:
        """Read from the store."""
        try:
            commit = await self._log.head(key)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        return None if commit is None else self.cache.loaded(commit)

    async def fresh(self, key: ExecutionKey) -> Entry | None:
        """The newest state, as a strong read gives it. What was known beside it (events) stays known if it is the
        state that was known."""
        if self._sole_owner:
            return self.cache.get(key) or await self._head(key)
        known = self.cache.peek(key)
        try:
            commit = await self._log.head(key)
        except StoreUnavailable as error:
            self.cache.drop(key)
            raise unavailable(error) from error
        if self.cache.peek(key) is known and not _is_of(known, commit):
            self.cache.drop(key)
        return None if commit is None else self.cache.loaded(commit)

    async def read(self, key: ExecutionKey) -> ExecutionState | None:
        entry = await self.fresh(key)
        return None if entry is None else entry.state

    async def written(self, key: ExecutionKey) -> None:
        """Waits for the write that is under way in this process, if any: its store shows it before the head does."""
        if not self._locks.try_take(key):
            await self._locks.take(key)
        self._locks.release(key)

    async def transact(self, key: ExecutionKey, request: Request | None, prepare: Prepare | None = None) -> Outcome:
        """Carries out one request, or the one that ``prepare`` makes for the state it meets.

        Raises what ``step`` refuses with, and Unavailable when the store cannot serve or others keep winning.
        """
        locks = self._locks
        if not locks.try_take(key):
            await locks.take(key)
        try:
            for attempt in range(self._settings.conflict_attempts):
                if attempt:
                    await asyncio.sleep(min(0.002 * 2**attempt, 0.25))
                trusted = self._sole_owner or self.cache.peek(key) is None
                outcome = await self._round(key, request, prepare, trusted)
                if outcome is not None:
                    return outcome
        finally:
            locks.release(key)
        raise Unavailable(
            f"workflow {key.workflow_id!r} is being changed by others too fast "
            f"({self._settings.conflict_attempts} attempts); call again in a moment"
        )

    async def _round(
        self, key: ExecutionKey, request: Request | None, prepare: Prepare | None, trusted: bool
    ) -> Outcome | None:
        """None when it has to be tried again. A commit proves that the state it followed was the newest; a refusal, or
        that nothing has to change, counts only from a state that is ``trusted`` to be the newest."""
        # As far as this process knows: good as the base of a transition, which checks itself.
        entry = self.cache.get(key) or await self._head(key)
        state = None if entry is None else entry.state
        planned = self.ahead.planned(key, state) if self.ahead.firings and state is not None else None
        if planned is not None:
            state = planned.state
        asked = await prepare(state) if prepare is not None else request
        assert asked is not None
        try:
            transition, now = self._step(key, state, asked)
            if transition.changed:
                return await self._write(key, state, asked, transition, now, planned)
            if trusted:
                return Outcome(transition, None)
        except Unavailable:
            raise
        except ApiError:
            if trusted:
                raise
        self.cache.drop(key)
        return None

    def _step(self, key: ExecutionKey, state: ExecutionState | None, request: Request) -> tuple[Transition, datetime]:
        """What the request makes of the state, and the time of it."""
        now = self._clock.now()
        if state is None:
            if type(request) not in OPENING:
                raise NotFound(
                    f"there is no such workflow as {key.workflow_id!r} in namespace {key.namespace!r}; "
                    "check both, or start it first"
                )
        elif state.last_event_time > now:
            now = state.last_event_time
        transition = step(state, request, now)
        if transition.closed is not None or transition.state.close_time is not None:
            transition = self._with_archive(key, state, transition, request, now)
        return transition, now

    def _with_archive(
        self, key: ExecutionKey, before: ExecutionState | None, transition: Transition, request: Request, now: datetime
    ) -> Transition:
        """With the debt for what it closes, where that is archived."""
        after = self._archive_after(key.namespace)
        return transition if after is None else archiving.owe(before, transition, request, now, after)

    async def _write(
        self,
        key: ExecutionKey,
        before: ExecutionState | None,
        request: Request,
        transition: Transition,
        now: datetime,
        planned: FiringAhead | None,
    ) -> Outcome | None:
        """None when somebody else took the seq."""
        if planned is not None:
            transition = planned.with_it(transition)
        commit = self._commit(key, request, transition, now)
        try:
            await self._log.append(commit, arm=transition.arm)
        except StateTooLarge as large:  # and nothing was written
            given_up = self._given_up(key, before, request, now, large)
            return await self._write(key, before, request, given_up, now, planned)
        except (Conflict, SequenceGap) as refusal:
            self._forget(key)
            if not _landed_before(commit, refusal):
                return None
        except StoreUnavailable as error:
            self._forget(key)
            self._background.spawn(self._look_again(commit, transition.arm))
            raise unavailable(error) from error
        except asyncio.CancelledError:
            # The write may land all the same: what it owes must be handed on then.
            self._forget(key)
            self._background.spawn(self._finish(commit, transition.arm))
            raise
        self.cache.committed(key, commit)
        if self.ahead.firings:
            self.ahead.committed(key, commit, planned)
        await self._follow(key, commit, transition.arm)
        if transition.refusal is not None:
            raise transition.refusal
        task = commit.state.workflow_task
        if task is not None and task.attempt > names.STUCK_AFTER:
            self._tell_stuck(before, task.attempt)
        return Outcome(transition, commit)

    def _given_up(
        self, key: ExecutionKey, before: ExecutionState | None, request: Request, now: datetime, large: StateTooLarge
    ) -> Transition:
        """What is written instead of a state that the store has no room for."""
        if before is None or before.close_time is not None:
            raise PayloadTooLarge(f"workflow {key.workflow_id!r} cannot be started so: {large}") from large
        return self._with_archive(key, before, too_long.give_up(before, request, now, str(large)), request, now)

    def _tell_stuck(self, before: ExecutionState | None, attempt: int) -> None:
        task = None if before is None else before.workflow_task
        if task is not None and task.attempt < attempt:
            self._metrics.count(names.STUCK)

    def plan_ahead(
        self, key: ExecutionKey, state: ExecutionState, fire_at: datetime, now: datetime
    ) -> FiringAhead | None:
        """Lets the next commit of ``key`` record the firing, if it is one of timers only and nothing is under way."""
        if not self._sole_owner or self._locks.is_taken(key):
            return None
        return self.ahead.plan(key, state, fire_at, now)

    def _forget(self, key: ExecutionKey) -> None:
        """What is known of the head may not be so."""
        self.cache.drop(key)
        self.ahead.drop(key)

    def _commit(self, key: ExecutionKey, request: Request, transition: Transition, now: datetime) -> Commit:
        state = transition.state
        over = state.status is not WorkflowExecutionStatus.RUNNING and not state.owed
        return Commit(
            namespace=key.namespace,
            workflow_id=key.workflow_id,
            seq=state.seq,
            run_id=state.run_id,
            kind=type(request).__name__,
            base=request.token.base if isinstance(request, _ANSWERS) else state.seq - 1,
            time=now,
            nonce=self._ids.nonce(),
            events=transition.events,
            state=state,
            tasks=transition.tasks,
            deadline=transition.deadline,
            owes=transition.owes,
            expires_at=(now if state.deleted else now + self._retention(key.namespace)) if over else None,
            closed=transition.closed,
            rejected=transition.rejected,
        )

    async def _finish(self, commit: Commit, arm: datetime | None) -> None:
        """Writes again a commit whose writer was cancelled; the nonce tells whether the first put landed."""
        try:
            await self._log.append(commit, arm=arm)
        except Conflict as conflict:
            if conflict.existing.nonce != commit.nonce:
                return
        except (SequenceGap, StoreUnavailable) as error:
            log.warning(
                "What became of commit %d of %r is not known (%s); its deadline decides", commit.seq, commit.key, error
            )
            return
        await self._landed(commit, arm)

    async def _look_again(self, commit: Commit, arm: datetime | None) -> None:
        """The store failed during a write that may have landed all the same; then what it owes is handed on."""
        for pause in _LOOKS:
            await asyncio.sleep(pause)
            try:
                written = await self._log.get(commit.key, commit.seq)
            except StoreUnavailable:
                continue
            if written is not None and written.nonce == commit.nonce:
                await self._landed(commit, arm)
            return

    async def _landed(self, commit: Commit, arm: datetime | None) -> None:
        key = commit.key
        entry = self.cache.peek(key)
        if entry is not None and entry.state.seq == commit.seq - 1:
            self.cache.committed(key, commit)
        await self._follow(key, commit, arm)
