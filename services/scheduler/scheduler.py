"""The shell of schedules: reads a record, steps, writes it, does what the step named, and tells it the outcome.

Theory of operation. Whatever comes (a wake-up, the news of a run's end, an order) is one step and one conditional
write. What the step wants started is in that write; then it is started, under ids that are made of what it is; then
a second write confirms it and arms the next wake-up. Whoever called comes again if this process dies in between: a
wake-up stays armed until its handler has returned, the news of an end stay owed. Behind an order nobody does, so its
write arms a wake-up for a moment later. Nothing is read or written while nothing happens.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import NamedTuple

from stepwell.api.errors import ApiError, ResourceExhausted, Unavailable, WorkflowExecutionAlreadyStarted

from ..common import metric_names as names
from ..common.clock import Clock
from ..common.control import ControlConflict, ControlRecord, ControlStore, ControlTooLarge
from ..common.metrics import NO_METRICS, Metrics
from ..history.answers import ChildClosed
from ..history.commit import ExecutionKey
from ..history.executions import unavailable
from ..history.key_locks import KeyLocks
from ..history.outside_runs import Chain, OutsideRuns
from ..history.ports import StoreUnavailable
from ..namespaces.registry import Namespaces
from . import action, measuring, state
from .requests import Attempted, Look, Outcome, Request, RunEnd, Step
from .start_rates import StartRates
from .state import KIND, Run, ScheduleRecord, Stop, counted
from .step import has_to_look, step

log = logging.getLogger(__name__)

_MOST_ROUNDS = 20
"""Of steps and starts behind one call; a wake-up goes on."""

_CONFLICT_ATTEMPTS = 10
_JUST_BEHIND = timedelta(milliseconds=1)
_REASON = "cancelled by the overlap policy of schedule {}"
_TERMINATED = "terminated by the overlap policy of schedule {}"


class Key(NamedTuple):
    namespace: str
    schedule_id: str


class _Decided(NamedTuple):
    step: Step
    fresh: frozenset[str]
    """Runs that this write brought: nobody has tried to start them."""


class Scheduler:
    """One for each process; any number of them serve one store. Raises ``stepwell.api.errors``."""

    def __init__(
        self,
        store: ControlStore,
        runs: OutsideRuns,
        namespaces: Namespaces,
        clock: Clock,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        self._metrics = metrics
        self._store = store
        self._runs = runs
        self._clock = clock
        self._locks = KeyLocks()
        self._rates = StartRates(namespaces, clock)

    # --- what comes by itself ---

    async def woken(self, namespace: str, id: str, due_at: datetime) -> None:
        """A wake-up is due. What it raises leaves it armed."""
        await self.work(Key(namespace, id), Look(), comes_again=True, looks=True, due_at=due_at)

    async def ended(self, namespace: str, id: str, ends: Sequence[ChildClosed]) -> None:
        """Chains of runs that this schedule waits for have ended. What it raises leaves the news owed."""
        for incarnation in {end.waiter.run_id for end in ends}:
            mine = tuple([action.run_end(end) for end in ends if end.waiter.run_id == incarnation])
            await self.work(Key(namespace, id), Look(ends=mine), comes_again=True, incarnation=incarnation)

    # --- one piece of work ---

    async def work(
        self,
        key: Key,
        request: Request,
        *,
        comes_again: bool = False,
        looks: bool = False,
        due_at: datetime | None = None,
        incarnation: str = "",
    ) -> ScheduleRecord | None:
        """The record as the request left it; None when there is no such schedule. ``comes_again``: whoever calls does
        so until this returns. ``looks``: what runs is asked whether it still does."""
        async with self.alone(key):
            return await self._work(key, request, comes_again, looks, due_at, incarnation)

    @asynccontextmanager
    async def alone(self, key: Key) -> AsyncIterator[None]:
        """Nothing is worked on in between: those of one process need not meet in conflicts."""
        if not self._locks.try_take(key):
            await self._locks.take(key)
        try:
            yield
        finally:
            self._locks.release(key)

    async def _work(
        self, key: Key, request: Request, comes_again: bool, looks: bool, due_at: datetime | None, incarnation: str
    ) -> ScheduleRecord | None:
        first: ScheduleRecord | None = None
        for left in range(_MOST_ROUNDS, 0, -1):
            try:
                decided = await self._decide(key, request, comes_again and left > 1, looks, due_at, incarnation)
                if decided is None:
                    break
                first = first or decided.step.record
                if not (decided.step.starts or decided.step.stops):
                    break
                done = await self._carry_out(decided)
            except Unavailable as error:
                if comes_again or first is None:
                    raise
                log.info("Schedule %r goes on later: %s", key.schedule_id, error)
                break
            # What became of this schedule's runs is no news to one that was made under its id meanwhile.
            request, looks, incarnation = done, False, decided.step.record.incarnation
        return first

    async def _decide(
        self, key: Key, request: Request, stays: bool, looks: bool, due_at: datetime | None, incarnation: str
    ) -> _Decided | None:
        for attempt in range(_CONFLICT_ATTEMPTS):
            if attempt:
                await asyncio.sleep(min(0.002 * 2**attempt, 0.25))
            stored = await self.read(key)
            if stored is None:
                return None
            before = state.decode(stored.value)
            if incarnation and before.incarnation != incarnation:
                return None
            now = self._now(due_at)
            decided = await self._step(before, request, looks, now)
            try:
                written = await self._write(stored, before, decided, now, stays)
            except ControlConflict:
                continue
            if not written:
                return None
            known = {run.run_id for run in before.runs}
            fresh = frozenset(run.run_id for run in decided.record.runs if run.run_id not in known)
            self._rates.spend(key.namespace, len(fresh), decided.starved)
            measuring.tell_counts(self._metrics, before, decided.record)
            return _Decided(decided, fresh)
        raise Unavailable(f"schedule {key.schedule_id!r} is being changed by others too fast; call again in a moment")

    async def _step(self, record: ScheduleRecord, request: Request, looks: bool, now: datetime) -> Step:
        allowance, pause = self._rates.allowance(record.namespace)
        ends = await self._look(record) if looks and has_to_look(record) else ()
        if isinstance(request, Look):
            return step(record, Look(ends=(*request.ends, *ends)), now, allowance, pause)
        if ends:
            looked = step(record, Look(ends=ends), now, allowance).record
            allowance -= len(looked.runs) + len(ends) - len(record.runs)
            record = looked
        return step(record, request, now, allowance, pause)

    async def _write(
        self, stored: ControlRecord, before: ScheduleRecord, decided: Step, now: datetime, stays: bool
    ) -> bool:
        """False when the schedule is over and deleted. Raises ControlConflict."""
        try:
            if decided.exhausted:
                await self._store.delete(stored)
                return False
            record = decided.record
            # Who comes again finds what is to be done, and arms what follows when it is done.
            waits = bool(decided.starts or decided.stops) and stays
            arm = None if waits else arm_at(before.armed, decided.wake_at, now)
            if arm is not None:
                record.armed = arm
            elif decided.wake_at is None and record.armed is not None and record.armed <= now:
                record.armed = None  # it is struck off; a clock that is behind must not count on it
            if arm is None and record == before:
                return True
            await self._store.put(
                stored._replace(version=stored.version + 1, value=state.encode(record)),
                arm=arm,
            )
        except StoreUnavailable as error:
            raise unavailable(error) from error
        except ControlTooLarge as large:
            raise ResourceExhausted(f"{large}; let fewer actions wait, or have less in the definition") from large
        return True

    async def read(self, key: Key) -> ControlRecord | None:
        try:
            return await self._store.get(KIND, *key)
        except StoreUnavailable as error:
            raise unavailable(error) from error

    def _now(self, due_at: datetime | None) -> datetime:
        """A clock that is behind the one that found the wake-up due does not make it come for nothing."""
        now = self._clock.now()
        return now if due_at is None else max(now, due_at)

    # --- what a step named ---

    async def _carry_out(self, decided: _Decided) -> Attempted:
        """Starts first, then stops. What cannot be done now is not named in the answer; raises Unavailable when that is
        all there is."""
        record, starts, stops = decided.step.record, decided.step.starts, decided.step.stops
        started = await asyncio.gather(
            *[self._start(record, run, known=run.run_id not in decided.fresh) for run in starts]
        )
        stopped = await asyncio.gather(*[self._stop(record, run) for run in stops])
        outcomes = [(run, _outcome_of(got)) for run, got in zip(starts, started, strict=True)]
        refusals = [got.message for got in started if isinstance(got, ApiError) and not got.retryable]
        told = zip(stops, stopped, strict=True)
        done = Attempted(
            starts=tuple([(run.run_id, outcome) for run, outcome in outcomes if outcome is not None]),
            stopped=tuple([run.run_id for run, got in told if not isinstance(got, ApiError)]),
            ends=tuple([got for got in stopped if isinstance(got, RunEnd)]),
            refusal=refusals[-1] if refusals else "",
        )
        if done == Attempted():
            later = next(got for got in (*started, *stopped) if isinstance(got, ApiError))
            raise later if isinstance(later, Unavailable) else Unavailable(later.message)
        return done

    async def _start(self, record: ScheduleRecord, run: Run, *, known: bool) -> Outcome | ApiError:
        """The error: later, if it is retryable."""
        start = action.start_of(record, run)
        last = record.last_result_of
        try:
            if last is not None and start.waiter is not None:
                end = await self._end_of(record, last.workflow_id, last.run_id)
                start = action.with_result(start, end.result if end is not None else ())
            await self._runs.start(start, known=known)
        except WorkflowExecutionAlreadyStarted as refusal:
            log.info("Schedule %r skips %s: %s", record.schedule_id, run.waiting.nominal, refusal)
            return Outcome.TAKEN
        except ApiError as error:
            if not error.retryable:
                log.warning(
                    "The action of schedule %r at %s is refused: %s", record.schedule_id, run.waiting.nominal, error
                )
            return error
        if run.timed and self._metrics is not NO_METRICS:
            self._metrics.record(names.SCHEDULE_DELAY, measuring.lateness(record, run, self._clock.now()))
        return Outcome.STARTED

    async def _stop(self, record: ScheduleRecord, run: Run) -> RunEnd | ApiError | None:
        key = ExecutionKey(record.namespace, run.workflow_id)
        try:
            if run.stop is Stop.TERMINATE:
                await self._runs.terminate(key, run.run_id, _TERMINATED.format(record.schedule_id))
                return await self._end_of(record, run.workflow_id, run.run_id)
            request_id = f"{record.incarnation}:{run.run_id}"
            await self._runs.cancel(key, run.run_id, _REASON.format(record.schedule_id), request_id)
        except ApiError as error:
            return error
        return None

    async def _look(self, record: ScheduleRecord) -> tuple[RunEnd, ...]:
        """Those of the runs that are thought to be open which are not."""
        runs = [run for run in counted(record) if run.started]
        ends = await asyncio.gather(*[self._end_of(record, run.workflow_id, run.run_id) for run in runs])
        return tuple([end for end in ends if end is not None])

    async def _end_of(self, record: ScheduleRecord, workflow_id: str, run_id: str) -> RunEnd | None:
        """None: it is open."""
        end = await self._runs.end_of(ExecutionKey(record.namespace, workflow_id), run_id, action.waiter_of(record))
        match end:
            case Chain.OPEN:
                return None
            case Chain.GONE:
                return RunEnd(run_id=run_id)
            case _:
                return action.run_end(end)


def _outcome_of(got: Outcome | ApiError) -> Outcome | None:
    """None: it is still to be started."""
    if isinstance(got, Outcome):
        return got
    return None if got.retryable else Outcome.REFUSED


def arm_at(armed: datetime | None, wake_at: datetime | None, now: datetime) -> datetime | None:
    """When to arm, if what is armed is not enough. What is past may be the very row that is being fired, which is
    struck off behind this: so it is never armed again."""
    if wake_at is None or (armed is not None and now < armed <= wake_at):
        return None
    return max(wake_at, now + _JUST_BEHIND)
