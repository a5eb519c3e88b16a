"""Starts that are told apart by a key of the caller's own, across workflow ids (LC-48).

Theory of operation. A key is a record of the control store. A start first *claims* it, by a conditional write that
holds all of the start, then starts, then records what came of it. From the claim on it is decided: whoever meets a
claim that nobody has finished (another start, or the record's wake-up behind a crash) does the same start again, under
the same run and request id, and goes on from what came of it. So no two starts of one key ever begin a run, whichever
process dies or stands still where, and no claim stays that was never started. Who does it for another raises the
record's version before, so that a refusal which the first one was given counts only if nobody else has started it.

Whether a key is free is read from its workflow, not from the record: no news have to arrive. Records of what is over go
by wake-ups that look, and with their namespace.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import NamedTuple

import msgspec
from stepwell.api.enums import DeduplicationPolicy
from stepwell.api.errors import ApiError, PayloadTooLarge, Unavailable, WorkflowExecutionAlreadyStarted
from stepwell.api.limits import MAX_DEDUPLICATED_BYTES
from stepwell.api.requests import Deduplication, StartWorkflowRequest, StartWorkflowResponse

from ..common.clock import Clock, IdSource
from ..common.control import ControlConflict, ControlRecord, ControlStore
from . import start_key_records as records
from .commit import ExecutionKey
from .executions import unavailable
from .key_locks import KeyLocks
from .machines import start as starting
from .outside_runs import OutsideRuns
from .ports import StoreUnavailable
from .requests import Pace, Start
from .start_key_records import KIND, HeldKey

_TRIES = 12
_REASON = "another workflow was started with its deduplication key"


class _Stored(NamedTuple):
    record: ControlRecord
    held: HeldKey


class StartKeys:
    def __init__(self, store: ControlStore, runs: OutsideRuns, clock: Clock, ids: IdSource, pace: Pace) -> None:
        self._store = store
        self._runs = runs
        self._clock = clock
        self._ids = ids
        self._pace = pace
        self._locks = KeyLocks()

    async def start(self, request: StartWorkflowRequest, deduplication: Deduplication) -> StartWorkflowResponse:
        """Raises what a start is refused with, and WorkflowExecutionAlreadyStarted of the key's holder."""
        starting.check(request)
        run_id = self._ids.run_id()
        if not request.request_id:  # by which it knows its own claim when another process was faster with it
            request = msgspec.structs.replace(request, request_id=run_id)
        id = records.record_id(deduplication.key)
        async with self._alone(request.namespace, id):
            for attempt in range(_TRIES):
                if attempt:
                    await asyncio.sleep(min(0.002 * 2**attempt, 0.25))
                try:
                    return await self._start(request, deduplication, run_id, id)
                except ControlConflict:
                    continue  # of another process
                except StoreUnavailable as error:
                    raise unavailable(error) from error
        raise Unavailable(f"deduplication key {deduplication.key!r} is asked for too often; call again in a moment")

    async def _start(
        self, request: StartWorkflowRequest, deduplication: Deduplication, run_id: str, id: str
    ) -> StartWorkflowResponse:
        """Raises ControlConflict where somebody else was faster."""
        stored = await self._get(request.namespace, id)
        if stored is not None and stored.held.start is not None:
            stored = await self._finish(stored, request.request_id)
        now = self._clock.now()
        if stored is not None and stored.held.request_id == request.request_id:
            return _answer(stored.held, request)
        open_run = None if stored is None else await self._open_run(request.namespace, stored.held)
        if stored is None or open_run is None or not _holds(stored.held, open_run, now):
            return await self._claim(request, deduplication, run_id, id, stored, None)
        if deduplication.policy is DeduplicationPolicy.CANCEL_EXISTING:
            return await self._claim(request, deduplication, run_id, id, stored, stored.held)
        slid = records.slid(stored.held, deduplication, now)
        if slid is not None:
            await self._put(stored.record, slid)
        return _met(slid or stored.held, deduplication, request, open_run)

    async def woken(self, namespace: str, id: str, due_at: datetime) -> None:
        """A claim was not finished, the time of a key is over, or its workflow is to be looked at."""
        async with self._alone(namespace, id):
            for _ in range(_TRIES):
                try:
                    return await self._look(namespace, id, due_at)
                except ControlConflict:
                    continue
        raise Unavailable(f"the record of deduplication key {id!r} is changed by others all the time")

    async def _look(self, namespace: str, id: str, due_at: datetime) -> None:
        """Raises ControlConflict."""
        stored = await self._get(namespace, id)
        now = max(self._clock.now(), due_at)
        if stored is None or now < stored.held.wake_at:
            return
        if stored.held.start is not None:
            await self._finish(stored)
        elif _holds(stored.held, await self._open_run(namespace, stored.held), now):
            await self._put(stored.record, records.looked_at(stored.held, now))
        else:
            await self._store.delete(stored.record)

    # --- claims ---

    async def _claim(
        self,
        request: StartWorkflowRequest,
        deduplication: Deduplication,
        run_id: str,
        id: str,
        stored: _Stored | None,
        before: HeldKey | None,
    ) -> StartWorkflowResponse:
        claim = records.claimed(request, deduplication, run_id, before, self._clock.now())
        size = len(records.encode(claim))
        if size > MAX_DEDUPLICATED_BYTES:
            raise PayloadTooLarge(
                f"a start with a deduplication key has {size} bytes with its input, memo and headers, above the limit "
                f"of {MAX_DEDUPLICATED_BYTES}; store the data elsewhere and pass a reference",
                field="input",
            )
        record = ControlRecord(KIND, request.namespace, id, 0, b"") if stored is None else stored.record
        carried = await self._carry_out(await self._put(record, claim))
        if isinstance(carried, ApiError):
            raise carried
        return _answer(carried.held, request)

    async def _finish(self, stored: _Stored, asked_by: str = "") -> _Stored | None:
        """A claim of somebody who may be gone, or at it. Who has the key then; None: nobody. Raises what the start is
        refused with if its own caller, by the request id ``asked_by``, asks again."""
        claim = records.taken_over(stored.held, self._clock.now())
        carried = await self._carry_out(await self._put(stored.record, claim))
        if isinstance(carried, ApiError):
            if asked_by and asked_by == claim.request_id:
                raise carried
            return await self._get(stored.record.namespace, stored.record.id)
        return carried

    async def _carry_out(self, claim: _Stored) -> _Stored | ApiError:
        """The error: the start is refused, and the claim is gone. Raises Unavailable, which leaves the claim."""
        record, held = claim
        assert held.start is not None
        try:
            reply = await self._runs.start(
                Start(run_id=held.asked_run_id, start=held.start, pace=self._pace, principal=held.principal),
                known=True,
            )
        except Unavailable:
            raise
        except ApiError as refusal:
            if held.before is None:
                await self._store.delete(record)
            else:
                await self._put(record, held.before)
            return refusal
        before = held.before
        if before is not None and before.first_run_id != reply.first_run_id:
            key = ExecutionKey(record.namespace, before.workflow_id)
            await self._runs.cancel(key, before.first_run_id, _REASON, f"{held.asked_run_id}:deduplication")
        done = records.done(held, reply.run_id, reply.first_run_id, self._clock.now(), started=reply.started)
        return await self._put(record, done)

    # --- inside ---

    async def _open_run(self, namespace: str, held: HeldKey) -> str:
        """Of the holder's chain; empty when that has ended."""
        return await self._runs.open_run(ExecutionKey(namespace, held.workflow_id), held.first_run_id)

    async def _get(self, namespace: str, id: str) -> _Stored | None:
        record = await self._store.get(KIND, namespace, id)
        return None if record is None else _Stored(record, records.decode(record.value))

    async def _put(self, record: ControlRecord, held: HeldKey) -> _Stored:
        """Raises ControlConflict."""
        changed = record._replace(version=record.version + 1, value=records.encode(held))
        return _Stored(await self._store.put(changed, arm=held.wake_at), held)

    @asynccontextmanager
    async def _alone(self, namespace: str, id: str) -> AsyncIterator[None]:
        key = (namespace, id)
        if not self._locks.try_take(key):
            await self._locks.take(key)
        try:
            yield
        finally:
            self._locks.release(key)


def _holds(held: HeldKey, open_run: str, now: datetime) -> bool:
    return bool(open_run) if held.until is None else now < held.until


def _answer(held: HeldKey, request: StartWorkflowRequest) -> StartWorkflowResponse:
    return StartWorkflowResponse(
        run_id=held.run_id,
        started=held.started,
        first_execution_run_id=held.first_run_id,
        workflow_id="" if held.workflow_id == request.workflow_id else held.workflow_id,
    )


def _met(
    held: HeldKey, deduplication: Deduplication, request: StartWorkflowRequest, open_run: str
) -> StartWorkflowResponse:
    """Of a start whose key is held by another one."""
    run_id = open_run or held.run_id
    if deduplication.policy is DeduplicationPolicy.USE_EXISTING:
        return StartWorkflowResponse(
            run_id=run_id,
            started=False,
            first_execution_run_id=held.first_run_id,
            workflow_id="" if held.workflow_id == request.workflow_id else held.workflow_id,
        )
    until = "until that one ends" if held.until is None else f"until {held.until:%Y-%m-%d %H:%M:%S} UTC"
    raise WorkflowExecutionAlreadyStarted(
        f"deduplication key {deduplication.key!r} is held by workflow {held.workflow_id!r} (run {run_id}) {until}. Use "
        "another key, or the policy USE_EXISTING or CANCEL_EXISTING.",
        run_id=run_id,
        workflow_id=held.workflow_id,
    )
