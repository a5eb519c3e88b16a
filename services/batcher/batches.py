"""Batch operations on the control store: what callers ask of them, and what is done when a job's wake-up is due.

One batch runs at a time in a namespace: a record of its own says whose turn it is. A start writes the job first, which
does nothing yet, then the list, then takes the turn, and then lets the job begin; what a crash leaves in between, the
job's wake-up brings to an end. All writes are conditional, so of two that work on one job, one wins.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec
from stepwell.api import limits
from stepwell.api import requests as r
from stepwell.api.batches import BatchOperationInfo
from stepwell.api.enums import BatchOperationState
from stepwell.api.errors import ApiError, FailedPrecondition, InvalidArgument, NotFound, Unavailable

from ..common import principals
from ..common.clock import Clock
from ..common.control import ControlConflict, ControlRecord, ControlStore, is_another
from ..namespaces.registry import Namespaces
from . import records, step
from .actions import Workflows, act, found_next, named, narrowed, refusal
from .records import Done, Job, Page, Target

log = logging.getLogger(__name__)

KIND = "batch"
LIST_KIND = "batch-list"
TURN_KIND = "batch-turn"
_TURN = "turn"

_CALL_SECONDS = 5.0
"""How long one wake-up goes on; then the next one does."""

_BURST_SECONDS = 10.0
"""How long a burst goes on to the next workflow; what is left comes first in the next burst."""

_TRIES = 8
FAILED = BatchOperationState.FAILED
Sleep = Callable[[float], Awaitable[None]]


class _Over(Exception):
    """There is nothing to do here: somebody else works on the job, or it is gone."""


class Batches:
    """``workflows``: the engine, whose requests it makes."""

    def __init__(
        self,
        store: ControlStore,
        workflows: Workflows,
        namespaces: Namespaces,
        clock: Clock,
        *,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._store = store
        self._workflows = workflows
        self._namespaces = namespaces
        self._clock = clock
        self._sleep = sleep

    # --- operations ---

    async def start(self, request: r.StartBatchOperationRequest) -> r.StartBatchOperationResponse:
        """Raises FailedPrecondition, InvalidArgument, PayloadTooLarge before anything is changed."""
        now = self._clock.now()
        job = Job(
            namespace=request.namespace,
            id=request.job_id,
            operation=request.operation,
            reason=request.reason,
            identity=request.identity,
            rate=min(request.max_operations_per_second or limits.MAX_BATCH_RATE, limits.MAX_BATCH_RATE),
            query=narrowed(request.operation, request.query) if request.query else "",
            listed=len(request.executions),
            started=now,
            next_at=now,
            principal=principals.current(),
        )
        records.check_size(job)
        record = await self._get(job.namespace, job.id)
        if record is None:
            if request.query:
                await self._look_at_filter(job, request.query)
            holder = await self._holder(job.namespace)
            if holder is not None:
                raise _busy(job.namespace, holder)
            record = await self._put_new(job)
        there = records.decode(record.value)
        if not await self._is_same(record, job, request):
            raise FailedPrecondition(
                f"there is a batch operation {job.id!r} in namespace {job.namespace!r} already, another one; use "
                "another job_id"
            )
        if there.begun or there.closed is not None:
            return r.StartBatchOperationResponse()
        await self._put_list(record, there, request)
        await self._begin(record, there)
        return r.StartBatchOperationResponse()

    async def describe(self, request: r.DescribeBatchOperationRequest) -> r.DescribeBatchOperationResponse:
        _, job = await self._found(request.namespace, request.job_id)
        return r.DescribeBatchOperationResponse(
            info=records.info_of(job),
            query=job.query,
            reason=job.reason,
            identity=job.identity,
            max_operations_per_second=job.rate,
            close_reason=job.close_reason,
            failures=job.failures,
        )

    async def stop(self, request: r.StopBatchOperationRequest) -> r.StopBatchOperationResponse:
        for _ in range(_TRIES):
            record, job = await self._found(request.namespace, request.job_id)
            if job.closed is not None:
                return r.StopBatchOperationResponse()
            by = f" by {request.identity}" if request.identity else ""
            reason = f"stopped{by}: {request.reason}" if request.reason else f"stopped{by}"
            try:
                await self._put(record, step.closed(job, BatchOperationState.STOPPED, reason, self._clock.now()))
            except ControlConflict:
                continue
            return r.StopBatchOperationResponse()
        raise Unavailable(
            f"batch operation {request.job_id!r} was changed {_TRIES} times in a row meanwhile; call again in a moment"
        )

    async def page(self, namespace: str, after: str, limit: int) -> list[BatchOperationInfo]:
        """In the order of job ids."""
        found = await self._store.list(KIND, namespace, after=after, limit=limit)
        return [records.info_of(records.decode(record.value)) for record in found]

    # --- beginning ---

    async def _look_at_filter(self, job: Job, query: str) -> None:
        """Refuses one that nobody understands, by the places in it. Raises InvalidArgument."""
        await found_next(self._workflows, msgspec.structs.replace(job, query=query), 1)
        try:
            await found_next(self._workflows, job, 1)
        except InvalidArgument as bad:
            raise InvalidArgument(
                f"query cannot be narrowed to what the operation is for, which makes it {job.query!r} ({bad.message}); "
                "give a condition alone, without ORDER BY",
                field="query",
            ) from bad

    async def _is_same(self, record: ControlRecord, job: Job, request: r.StartBatchOperationRequest) -> bool:
        """Whether the job that is there is what is asked for now."""
        there = records.decode(record.value)
        asked = ("operation", "reason", "identity", "rate", "query", "listed")
        if any(getattr(there, name) != getattr(job, name) for name in asked):
            return False
        targets = _targets(request)
        for number in range(0, len(targets), records.PART):
            part = await self._part(record, number)
            if part is not None and records.decode_part(part.value) != targets[number : number + records.PART]:
                return False
        return True

    async def _put_new(self, job: Job) -> ControlRecord:
        record = ControlRecord(KIND, job.namespace, job.id, 1, records.encode(job))
        try:
            return await self._store.put(record, arm=step.wakes_at(job))
        except ControlConflict as conflict:
            if conflict.existing is None:
                raise
            return conflict.existing

    async def _put_list(self, record: ControlRecord, job: Job, request: r.StartBatchOperationRequest) -> None:
        targets = _targets(request)
        for number in range(0, len(targets), records.PART):
            value = records.encode_part(targets[number : number + records.PART])
            try:
                await self._store.put(ControlRecord(LIST_KIND, job.namespace, _part_id(record, number), 1, value))
            except ControlConflict:
                continue  # of an earlier call

    async def _begin(self, record: ControlRecord, job: Job) -> None:
        """Takes the turn and lets the job begin. Raises FailedPrecondition, and takes the job away."""
        if not await self._take_turn(job):
            with contextlib.suppress(ControlConflict):  # it was looked at meanwhile, and goes in a week
                await self._drop(record, job)
            raise _busy(job.namespace, await self._holder(job.namespace) or "another one")
        try:
            await self._put(record, step.begun(job, self._clock.now()))
        except ControlConflict as conflict:
            if conflict.existing is None or is_another(conflict.existing, record):
                raise Unavailable(
                    f"batch operation {job.id!r} was taken away while it began, and has done nothing; call again"
                ) from None
            return  # whoever was faster did the same, or stopped it

    async def _take_turn(self, job: Job) -> bool:
        """False while it is another's."""
        for _ in range(_TRIES):
            record = await self._store.get(TURN_KIND, job.namespace, _TURN)
            if record is not None:
                holder = record.value.decode()
                if holder == job.id:
                    return True
                if await self._is_open(job.namespace, holder):
                    return False
            known = record or ControlRecord(TURN_KIND, job.namespace, _TURN, version=0, value=b"")
            try:
                await self._store.put(known._replace(version=known.version + 1, value=job.id.encode()))
            except ControlConflict:
                continue
            return True
        return False

    async def _holder(self, namespace: str) -> str | None:
        """The job whose turn it is, while it is open."""
        record = await self._store.get(TURN_KIND, namespace, _TURN)
        holder = "" if record is None else record.value.decode()
        return holder if holder and await self._is_open(namespace, holder) else None

    async def _is_open(self, namespace: str, job_id: str) -> bool:
        record = await self._get(namespace, job_id)
        return record is not None and records.decode(record.value).closed is None

    # --- going on ---

    async def __call__(self, namespace: str, id: str, due_at: datetime) -> None:
        """A wake-up is due. Raises StoreUnavailable: fire it again."""
        ends = self._clock.monotonic() + _CALL_SECONDS
        try:
            while True:
                job = await self._look(namespace, id, due_at)
                pause = (step.wakes_at(job) - self._clock.now()).total_seconds()
                if job.closed is not None or self._clock.monotonic() + max(pause, 0.0) >= ends:
                    return  # it is armed
                await self._sleep(max(pause, 0.0))
                due_at = step.wakes_at(job)
        except (_Over, ControlConflict):
            return

    async def _look(self, namespace: str, id: str, due_at: datetime) -> Job:
        """Does what is due of the job, and one burst at most. Raises _Over, ControlConflict."""
        record = await self._get(namespace, id)
        if record is None:
            raise _Over
        job = records.decode(record.value)
        now = max(self._clock.now(), due_at)
        if now < step.wakes_at(job):
            raise _Over  # that is armed as well
        if job.closed is not None:
            await self._drop(record, job)
            raise _Over
        if not job.begun:
            return await self._begin_late(record, job, now)
        return await self._burst(record, job)

    async def _begin_late(self, record: ControlRecord, job: Job, now: datetime) -> Job:
        """Its start did not come to its end: the caller knows of nothing, or asks again."""
        if job.listed and await self._part(record, (job.listed - 1) // records.PART * records.PART) is None:
            reason = "its start broke off before its list was written; start it again with another job_id"
            return (await self._put(record, step.closed(job, FAILED, reason, now)))[1]
        if not await self._take_turn(job):
            reason = "another batch operation of the namespace was running; start it again with another job_id"
            return (await self._put(record, step.closed(job, FAILED, reason, now)))[1]
        return (await self._put(record, step.begun(job, now)))[1]

    async def _burst(self, record: ControlRecord, job: Job) -> Job:
        if reason := refusal(job, self._namespaces.limits(job.namespace)):
            return (await self._put(record, step.closed(job, FAILED, reason, self._clock.now())))[1]
        try:
            page = await self._page(record, job) if step.needs_page(job) else None
        except ApiError as error:
            now = self._clock.now()
            reason = f"its filter was refused: {error.message}"
            job = step.paused(job, now) if error.retryable else step.closed(job, FAILED, reason, now)
            return (await self._put(record, job))[1]
        targets, unknown = await self._with_runs(job, step.upcoming(job, page))
        record, job = await self._put(record, step.claimed(job, page, targets, self._clock.now()))
        if job.burst is None:
            return job
        outcomes, acted = await self._act(job, targets, unknown)
        return await self._record(record, job, outcomes, acted)

    async def _with_runs(self, job: Job, targets: tuple[Target, ...]) -> tuple[tuple[Target, ...], dict[Target, Done]]:
        """The targets by their runs, and what is to be said of those that have none now."""
        found = await asyncio.gather(*(named(self._workflows, job, target) for target in targets))
        unknown = {one.target: one for one in found if isinstance(one, Done)}
        return tuple([one.target if isinstance(one, Done) else one for one in found]), unknown

    async def _page(self, record: ControlRecord, job: Job) -> Page:
        """What comes next in list or filter. Raises ApiError."""
        size = step.burst_size(job)
        if job.listed:
            part = job.position // records.PART * records.PART
            stored = await self._part(record, part)
            listed = () if stored is None else records.decode_part(stored.value)
            targets = listed[job.position - part : job.position - part + size]
            return Page(targets=targets, exhausted=stored is None or job.position + len(targets) >= job.listed)
        found, token = await found_next(self._workflows, job, size)
        return Page(targets=tuple(found), page_token=token, exhausted=not token)

    async def _act(
        self, job: Job, targets: tuple[Target, ...], unknown: dict[Target, Done]
    ) -> tuple[list[Done], datetime]:
        """All of a burst, five at a time, each no sooner behind the one before than the rate has it; and when the last
        was begun."""
        room, turn = asyncio.Semaphore(limits.MAX_BATCH_CONCURRENCY), asyncio.Lock()
        clock, apart = self._clock, 1.0 / job.rate
        last, acted = clock.monotonic() - apart, clock.now()
        ends = clock.monotonic() + max(_BURST_SECONDS, len(targets) * apart)

        async def one(target: Target) -> Done:
            nonlocal last, acted
            if target in unknown:
                return unknown[target]
            async with room:
                async with turn:
                    while (early := last + apart - clock.monotonic()) > 0:
                        await self._sleep(early)
                    if clock.monotonic() > ends:
                        return Done(target=target, left=True)
                    last, acted = clock.monotonic(), clock.now()
                with principals.acting(job.principal):
                    return await act(self._workflows, job, target)

        return list(await asyncio.gather(*map(one, targets))), acted

    async def _record(self, record: ControlRecord, job: Job, outcomes: list[Done], acted: datetime) -> Job:
        """What became of the burst, also when the job was stopped meanwhile."""
        burst = job.burst
        while True:
            try:
                return (await self._put(record, step.finished(job, outcomes, acted, self._clock.now())))[1]
            except ControlConflict as conflict:
                if conflict.existing is None or is_another(conflict.existing, record):
                    raise
                record, job = conflict.existing, records.decode(conflict.existing.value)
                if job.closed is None or job.burst != burst:
                    raise  # somebody else took it over

    # --- records ---

    async def _get(self, namespace: str, job_id: str) -> ControlRecord | None:
        return await self._store.get(KIND, namespace, job_id)

    async def _found(self, namespace: str, job_id: str) -> tuple[ControlRecord, Job]:
        record = await self._get(namespace, job_id)
        if record is None:
            raise NotFound(
                f"there is no batch operation {job_id!r} in namespace {namespace!r}; check the id (those that are "
                f"over are kept for {step.KEPT.days} days)"
            )
        return record, records.decode(record.value)

    async def _put(self, record: ControlRecord, job: Job) -> tuple[ControlRecord, Job]:
        """Raises ControlConflict."""
        record = record._replace(version=record.version + 1, value=records.encode(job))
        return await self._store.put(record, arm=step.wakes_at(job)), job

    async def _part(self, record: ControlRecord, first: int) -> ControlRecord | None:
        """Of the list of this very job."""
        return await self._store.get(LIST_KIND, record.namespace, _part_id(record, first))

    async def _drop(self, record: ControlRecord, job: Job) -> None:
        """Raises ControlConflict."""
        for number in range(0, job.listed, records.PART):
            part = await self._part(record, number)
            if part is not None:
                await self._store.delete(part)
        await self._store.delete(record)


def _targets(request: r.StartBatchOperationRequest) -> tuple[Target, ...]:
    return tuple([Target(execution.workflow_id, execution.run_id) for execution in request.executions])


def _part_id(record: ControlRecord, first: int) -> str:
    """Not that of another job of the same id, which may be taken away late; with the longest id it is as long as a key
    of DynamoDB may be. Jobs of the first release have no incarnation."""
    job = f"{record.id}/{record.incarnation[:16]}" if record.incarnation else record.id
    return f"{job}/{first:05d}"


def _busy(namespace: str, holder: str) -> FailedPrecondition:
    return FailedPrecondition(
        f"batch operation {holder!r} is running in namespace {namespace!r}, where one runs at a time; wait for its "
        "end, or stop it",
        cause="BATCH_RUNNING",
        job_id=holder,
    )
