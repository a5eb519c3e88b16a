"""Signals of one run that arrive together are committed together: while one commit is under way, the next collect.

A log takes one commit after the other, each with its own fsync; without this, that would bound a burst of signals to
one workflow.

Whether a signal is a repeat is decided by the core where the state remembers it; what the state has lost is looked up
here, in the same turn as the commit: for a key of the sender's own behind its claim, else in the last minutes.
"""

import asyncio
from typing import NamedTuple

import msgspec
from stepwell.api.enums import WorkflowIDConflictPolicy
from stepwell.api.errors import Unavailable

from ..common.background import Background
from ..common.clock import Clock
from . import request_ids
from .claims import Claims, marker_name
from .commit import ExecutionKey
from .executions import Executions, Known, unavailable
from .ports import ExecutionLog, StoreUnavailable
from .recent_signals import RecentSignals
from .request_log import taken_in_before
from .requests import Request, Signal, Signals, SignalWithStart
from .state import ExecutionState
from .step import step
from .transition import SignalsReply, StartReply

MOST_TOGETHER = 50
"""Signals in one commit: half of the buffer's limit (MS-04), so that one commit cannot overrun a workflow task."""


class _Asked(NamedTuple):
    signal: Signal | SignalWithStart
    claim: int | None
    """Seq of the claim of the sender's own key."""


class _Waiting(NamedTuple):
    asked: _Asked
    done: asyncio.Future[StartReply | None]


class Signalling:
    """``record`` returns when the signal is durable. Raises what ``step`` refuses with, and Unavailable."""

    def __init__(
        self,
        log: ExecutionLog,
        executions: Executions,
        claims: Claims,
        recent: RecentSignals,
        clock: Clock,
        background: Background,
    ) -> None:
        self._log = log
        self._executions = executions
        self._claims = claims
        self._recent = recent
        self._clock = clock
        self._background = background
        self._waiting: dict[ExecutionKey, list[_Waiting]] = {}

    async def record(self, key: ExecutionKey, signal: Signal, idempotency_key: str = "") -> None:
        """With an ``idempotency_key`` it is recorded once for as long as claims hold, in whatever run of the id."""
        asked = _Asked(signal, None)
        if idempotency_key:
            signal = msgspec.structs.replace(signal, request_id=f"key:{idempotency_key}")
            asked = _Asked(signal, await self._claim(key, signal, idempotency_key))
        await self._record(key, asked)

    async def record_with_start(self, key: ExecutionKey, request: SignalWithStart) -> StartReply:
        """To the open run, or to the one that it starts. One that is to replace an open run commits alone, since no
        commit holds more than two runs."""
        replaces = request.start.start.workflow_id_conflict_policy is WorkflowIDConflictPolicy.TERMINATE_EXISTING
        asked = _Asked(request, None)
        started = await (self._alone(key, asked) if replaces else self._record(key, asked))
        if started is None:
            raise TypeError("a signal with start was answered as one without")
        return started

    async def _claim(self, key: ExecutionKey, signal: Signal, idempotency_key: str) -> int:
        """Seq of the claim that stands. What would be refused claims nothing."""
        name = marker_name(request_ids.SIGNAL, idempotency_key)
        try:
            claim = await self._claims.find(key, name)
            if claim is not None:
                return claim
            state = await self._executions.read(key)
            now = self._clock.now()
            step(state, signal, now if state is None else max(now, state.last_event_time))
            return await self._claims.take(key, name, 0 if state is None else state.seq)
        except StoreUnavailable as error:
            raise unavailable(error) from error

    async def _record(self, key: ExecutionKey, asked: _Asked) -> StartReply | None:
        waiting = self._waiting.get(key)
        if waiting is not None:
            mine = _Waiting(asked, asyncio.get_running_loop().create_future())
            waiting.append(mine)
            return await mine.done
        self._waiting[key] = []
        try:
            return await self._alone(key, asked)
        finally:
            if self._waiting[key]:
                self._background.spawn(self._drain(key))
            else:
                del self._waiting[key]

    async def _alone(self, key: ExecutionKey, asked: _Asked) -> StartReply | None:
        async def prepare(state: Known) -> Request:
            found = await self._looked_up(key, state, asked)
            return Signals(signals=(found,)) if isinstance(found, SignalWithStart) else found

        outcome = await self._executions.transact(key, None, prepare)
        reply = outcome.transition.reply
        if not isinstance(reply, SignalsReply):
            return None
        (refusal,), (started,) = reply.refusals, reply.starts
        if refusal is not None:
            raise refusal
        return started

    async def _looked_up(
        self, key: ExecutionKey, state: ExecutionState | None, asked: _Asked
    ) -> Signal | SignalWithStart:
        """The signal, marked if it is a repeat that the state may not remember."""
        message, claim = asked
        if state is None:
            return message
        if isinstance(message, SignalWithStart):
            signal = await self._marked(key, state, message.signal, claim)
            message = msgspec.structs.replace(message, signal=signal)
            taker = await self._taken_by(key, state, signal)
            return message if taker is None else _of_taker(message, taker)
        return await self._marked(key, state, message, claim)

    async def _taken_by(self, key: ExecutionKey, state: ExecutionState, signal: Signal) -> ExecutionState | None:
        """Of a repeat whose run is not the newest any more: that run, as it was then."""
        if not signal.repeat:
            return None
        try:
            return await taken_in_before(self._log, key, state, request_ids.SIGNAL, signal.request_id)
        except StoreUnavailable as error:
            raise unavailable(error) from error

    async def _marked(self, key: ExecutionKey, state: ExecutionState, signal: Signal, claim: int | None) -> Signal:
        try:
            if claim is None:
                repeat = await self._recent.is_repeat(key, state, signal.request_id)
            else:
                repeat = await self._claims.is_done(key, state, claim, request_ids.SIGNAL, signal.request_id)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        return msgspec.structs.replace(signal, repeat=True) if repeat else signal

    async def _drain(self, key: ExecutionKey) -> None:
        """Carries on with what has collected, until nothing does."""
        waiting = self._waiting[key]
        try:
            while waiting:
                await self._together(key, waiting)
        finally:
            del self._waiting[key]
            for left in waiting:  # the engine is stopping
                if not left.done.done():
                    left.done.set_exception(Unavailable("the engine is stopping; signal again in a moment"))

    async def _together(self, key: ExecutionKey, waiting: list[_Waiting]) -> None:
        batch: list[_Waiting] = []

        async def prepare(state: Known) -> Request:
            # Called when it is this commit's turn, so that whatever has come in until then is in it.
            count = MOST_TOGETHER - len(batch)
            batch.extend(waiting[:count])
            del waiting[:count]
            return Signals(signals=tuple([await self._looked_up(key, state, entry.asked) for entry in batch]))

        try:
            outcome = await self._executions.transact(key, None, prepare)
        except asyncio.CancelledError:
            waiting[:0] = batch
            raise
        except Exception as error:
            _fail(batch, error)
            return
        reply = outcome.transition.reply
        if not isinstance(reply, SignalsReply):
            raise TypeError(f"signals were answered with {type(reply).__name__}")
        for entry, refusal, started in zip(batch, reply.refusals, reply.starts, strict=True):
            if entry.done.done():
                continue  # its caller has gone; the signal is recorded all the same
            if refusal is None:
                entry.done.set_result(started)
            else:
                entry.done.set_exception(refusal)


def _of_taker(message: SignalWithStart, taker: ExecutionState) -> SignalWithStart:
    """A repeat, with what the first call was told: that its run was there, or that it had started it."""
    start = msgspec.structs.replace(message.start, earlier=request_ids.started(taker, message.signal.request_id))
    return msgspec.structs.replace(message, start=start, taken_by=(taker.run_id, taker.first_run_id))


def _fail(batch: list[_Waiting], error: Exception) -> None:
    for entry in batch:
        if not entry.done.done():
            entry.done.set_exception(error)
