"""Exports on the control store: what callers ask of them, and what is done when a job's wake-up is due.

All writes of a job are conditional, so of two that work on one, one wins; objects are the same whoever writes them.
"""

import asyncio
import hashlib
import logging
from datetime import datetime, timedelta
from typing import Protocol

import msgspec
from stepwell.api import limits
from stepwell.api import requests as r
from stepwell.api.enums import ExportState
from stepwell.api.errors import ApiError, FailedPrecondition, Internal, NotFound, PayloadTooLarge, Unavailable
from stepwell.api.exports import ExportFailure, ExportInfo

from ..common.clock import Clock
from ..common.control import ControlConflict, ControlRecord, ControlStore, is_another
from ..common.objects import ObjectStore
from ..history.ports import StoreRefused, StoreUnavailable
from . import objects, records, step
from .records import Done, Job, Target

log = logging.getLogger(__name__)

KIND = "export"
_CALL_SECONDS = 5.0
"""How long one wake-up goes on; then the next one does."""

_BURST_SECONDS = 10.0
"""How long a burst goes on to the next run; what is left comes first in the next burst."""

_TRIES = 8
_SAME = ("destination", "format", "query", "closed_after")


class Workflows(Protocol):
    """The engine. Raises ``ApiError``."""

    async def list_workflows(self, request: r.ListWorkflowsRequest) -> r.ListWorkflowsResponse: ...
    async def get_history(self, request: r.GetHistoryRequest) -> r.GetHistoryResponse: ...


class _Over(Exception):
    """There is nothing to do here: somebody else works on the job, or it is gone."""


class Exports:
    """``target``: None where there is no place for objects. ``settle``: how late lists may show a run that closed.
    ``interval``: how often one that goes on looks for what has closed."""

    def __init__(
        self,
        store: ControlStore,
        workflows: Workflows,
        target: ObjectStore | None,
        clock: Clock,
        *,
        settle: timedelta,
        interval: timedelta,
    ) -> None:
        self._store = store
        self._workflows = workflows
        self._target = target
        self._clock = clock
        self._settle = settle
        self._interval = interval

    # --- operations ---

    async def start(self, request: r.StartExportRequest) -> r.StartExportResponse:
        """Raises FailedPrecondition, InvalidArgument, PayloadTooLarge before anything is changed."""
        target, now = self._objects(), self._clock.now()
        job = Job(
            namespace=request.namespace,
            id=request.job_id,
            destination=request.destination,
            format=request.format,
            query=request.query,
            closed_after=request.closed_after,
            closed_before=None if request.continuous else request.closed_before or now,
            identity=request.identity,
            started=now,
            next_at=now,
        )
        _check_size(job)
        there = await self._get(job)
        if there is None:
            await self._check_query(job)
            await self._check_room(job.namespace)
            there = await self._put_new(job)
        known = records.decode(there.value)
        same = all(getattr(known, name) == getattr(job, name) for name in _SAME)
        window = job.closed_before if request.closed_before or request.continuous else known.closed_before
        if not same or known.closed_before != window or (known.closed_before is None) != request.continuous:
            raise FailedPrecondition(
                f"there is an export {job.id!r} in namespace {job.namespace!r} already, another one; use another job_id"
            )
        return r.StartExportResponse(location=target.location(objects.prefix_of(known)))

    async def describe(self, request: r.DescribeExportRequest) -> r.DescribeExportResponse:
        _, job = await self._found(request.namespace, request.job_id)
        return r.DescribeExportResponse(
            info=self._info(job),
            destination=job.destination,
            query=job.query,
            closed_after=job.closed_after,
            closed_before=job.closed_before,
            continuous=job.closed_before is None,
            format=job.format,
            identity=job.identity,
            close_reason=job.close_reason,
            trouble=job.trouble,
            failures=job.failures,
        )

    async def stop(self, request: r.StopExportRequest) -> r.StopExportResponse:
        for _ in range(_TRIES):
            record, job = await self._found(request.namespace, request.job_id)
            if job.closed is not None:
                return r.StopExportResponse()
            by = f" by {request.identity}" if request.identity else ""
            reason = f"stopped{by}: {request.reason}" if request.reason else f"stopped{by}"
            try:
                await self._put(record, step.closed(job, ExportState.STOPPED, reason, self._clock.now()))
            except ControlConflict:
                continue
            return r.StopExportResponse()
        raise Unavailable(
            f"export {request.job_id!r} was changed {_TRIES} times in a row meanwhile; call again in a moment"
        )

    async def page(self, namespace: str, after: str, limit: int) -> list[ExportInfo]:
        """In the order of job ids."""
        found = await self._store.list(KIND, namespace, after=after, limit=limit)
        return [self._info(records.decode(record.value)) for record in found]

    # --- beginning ---

    def _objects(self) -> ObjectStore:
        if self._target is None:
            raise FailedPrecondition(
                "this installation has no place for exports: its data is in memory only; use a file "
                "(`stepwell dev --db FILE`), beside which there is a folder for them"
            )
        return self._target

    def _info(self, job: Job) -> ExportInfo:
        return records.info_of(job, "" if self._target is None else self._target.location(objects.prefix_of(job)))

    async def _check_query(self, job: Job) -> None:
        """Refuses a filter that nobody understands, by the places in it, and one that cannot be narrowed."""
        if job.query:
            request = r.ListWorkflowsRequest(namespace=job.namespace, query=job.query, page_size=1)
            await self._workflows.list_workflows(request)
        try:
            await self._list(msgspec.structs.replace(job, slice_end=job.started), 1)
        except ApiError as bad:
            if bad.retryable:
                raise
            raise type(bad)(
                f"query cannot be narrowed to runs by their close ({bad.message}); give a condition alone, without "
                "ORDER BY",
                field="query",
            ) from bad

    async def _check_room(self, namespace: str) -> None:
        after, running = "", 0
        while found := await self._store.list(KIND, namespace, after=after, limit=100):
            running += sum(records.decode(record.value).closed is None for record in found)
            after = found[-1].id
        if running >= limits.MAX_EXPORTS:
            raise FailedPrecondition(
                f"{running} exports are running in namespace {namespace!r}, the most that may; stop one, or wait for "
                "its end"
            )

    async def _put_new(self, job: Job) -> ControlRecord:
        record = ControlRecord(KIND, job.namespace, job.id, 1, records.encode(job))
        try:
            return await self._store.put(record, arm=step.wakes_at(job))
        except ControlConflict as conflict:
            if conflict.existing is None:
                raise
            return conflict.existing

    # --- going on ---

    async def __call__(self, namespace: str, id: str, due_at: datetime) -> None:
        """A wake-up is due. Raises StoreUnavailable: fire it again."""
        ends = self._clock.monotonic() + _CALL_SECONDS
        try:
            while True:
                job = await self._look(namespace, id, due_at)
                if job.closed is not None or step.wakes_at(job) > self._clock.now():
                    return  # it is armed
                if self._clock.monotonic() >= ends:
                    return
                due_at = step.wakes_at(job)
        except (_Over, ControlConflict):
            return

    async def _look(self, namespace: str, id: str, due_at: datetime) -> Job:
        """Does what is due of the job, and one burst at most. Raises _Over, ControlConflict."""
        record = await self._store.get(KIND, namespace, id)
        if record is None:
            raise _Over
        job = records.decode(record.value)
        now = max(self._clock.now(), due_at)
        if now < step.wakes_at(job):
            raise _Over  # that is armed as well
        if job.closed is not None:
            await self._store.delete(record)
            raise _Over
        if self._target is None:
            reason = "the installation has no place for exports any more"
            return (await self._put(record, step.closed(job, ExportState.FAILED, reason, now)))[1]
        try:
            return await self._go_on(record, job, self._target)
        except (StoreUnavailable, StoreRefused) as error:
            return await self._pause(record.namespace, record.id, record, str(error))

    async def _pause(self, namespace: str, id: str, known: ControlRecord, trouble: str) -> Job:
        """Nothing could be written, here or there. The job may have been claimed meanwhile, by this call."""
        record = await self._store.get(KIND, namespace, id)
        if record is None or is_another(record, known):
            raise _Over
        job = records.decode(record.value)
        if job.closed is not None:
            return job
        log.warning("Export %r of namespace %r does not get on: %s", id, namespace, trouble)
        return (await self._put(record, step.paused(job, trouble, self._clock.now())))[1]

    async def _go_on(self, record: ControlRecord, job: Job, target: ObjectStore) -> Job:
        now = self._clock.now()
        if step.is_complete(job):
            # Written before the job says so: whoever dies in between writes it again.
            await target.put(f"{objects.list_prefix(job)}manifest.json", objects.manifest_of(job))
            return (await self._put(record, step.closed(job, ExportState.COMPLETED, "", now)))[1]
        if job.slice_end is None:
            job = step.with_slice(job, now, self._settle, self._interval)
            if job.slice_end is None:
                return (await self._put(record, job))[1]
        targets = job.again if job.burst is None else job.burst.targets
        if not targets and not job.exhausted:
            try:
                page = await self._list(job, limits.EXPORT_PAGE)
            except ApiError as error:
                reason = f"its filter was refused: {error.message}"
                over = step.closed(job, ExportState.FAILED, reason, now)
                return (await self._put(record, step.paused(job, reason, now) if error.retryable else over))[1]
            token = page.next_page_token
            job = msgspec.structs.replace(job, page_token=token, exhausted=not token)
            targets = tuple([_target(info) for info in page.executions])
        if not targets:
            job = step.slice_done(job, now) if job.exhausted else msgspec.structs.replace(job, next_at=now)
            return (await self._put(record, job))[1]
        record, job = await self._put(record, step.claimed(job, targets, now))
        outcomes = await self._write(job, targets, target)
        return await self._record(record, job, outcomes, target)

    async def _list(self, job: Job, size: int) -> r.ListWorkflowsResponse:
        request = r.ListWorkflowsRequest(
            namespace=job.namespace, query=step.query_of(job), page_size=size, next_page_token=job.page_token
        )
        return await self._workflows.list_workflows(request)

    async def _record(self, record: ControlRecord, job: Job, outcomes: list[Done], target: ObjectStore) -> Job:
        """What became of the burst, also when the job was stopped meanwhile."""
        settled = step.settled(job, outcomes)
        if settled:
            await target.put(objects.list_prefix(job) + objects.part_name(record.version), objects.lines_of(settled))
        burst = job.burst
        while True:
            try:
                return (await self._put(record, step.finished(job, outcomes, self._clock.now())))[1]
            except ControlConflict as conflict:
                if conflict.existing is None or is_another(conflict.existing, record):
                    raise
                record, job = conflict.existing, records.decode(conflict.existing.value)
                if job.closed is None or job.burst != burst:
                    raise  # somebody else took it over

    # --- writing ---

    async def _write(self, job: Job, targets: tuple[Target, ...], target: ObjectStore) -> list[Done]:
        """All of a burst, a few at a time. Raises StoreUnavailable when one cannot be written, behind the others."""
        room = asyncio.Semaphore(limits.MAX_EXPORT_CONCURRENCY)
        ends = self._clock.monotonic() + _BURST_SECONDS

        async def one(run: Target) -> Done:
            async with room:
                if self._clock.monotonic() > ends:
                    return Done(target=run, left=True)
                return await self._write_one(job, run, target)

        outcomes = await asyncio.gather(*map(one, targets), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return [outcome for outcome in outcomes if isinstance(outcome, Done)]

    async def _write_one(self, job: Job, run: Target, target: ObjectStore) -> Done:
        try:
            content = await self._content(job, run)
        except ApiError as error:
            failure = ExportFailure(execution=run.execution, code=error.code, message=error.message)
            return Done(target=run, failure=failure, later=error.retryable)
        except StoreUnavailable:
            raise
        except Exception as error:
            # One run that cannot be read holds up no other; it is tried again, as what is unavailable is.
            log.error("Export %r fails at workflow %r", job.id, run.workflow_id, exc_info=error)
            said = f"the engine failed inside ({type(error).__name__}); its log has the details"
            return Done(
                target=run, failure=ExportFailure(execution=run.execution, code=Internal.code, message=said), later=True
            )
        name, data = objects.history_name(job, run), content.end()
        await target.put(objects.prefix_of(job) + name, data)
        digest = hashlib.sha256(data).hexdigest()
        return Done(target=run, object=name, events=content.events, size=len(data), sha256=digest)

    async def _content(self, job: Job, run: Target) -> objects.Content:
        content, token = objects.Content(job.format, run.workflow_id), b""
        while True:
            request = r.GetHistoryRequest(namespace=job.namespace, execution=run.execution, next_page_token=token)
            page = await self._workflows.get_history(request)
            content.add(page.events)
            token = page.next_page_token
            if not token:
                return content

    # --- records ---

    async def _get(self, job: Job) -> ControlRecord | None:
        return await self._store.get(KIND, job.namespace, job.id)

    async def _found(self, namespace: str, job_id: str) -> tuple[ControlRecord, Job]:
        record = await self._store.get(KIND, namespace, job_id)
        if record is None:
            raise NotFound(
                f"there is no export {job_id!r} in namespace {namespace!r}; check the id (those that are over are kept "
                f"for {step.KEPT.days} days)"
            )
        return record, records.decode(record.value)

    async def _put(self, record: ControlRecord, job: Job) -> tuple[ControlRecord, Job]:
        """Raises ControlConflict."""
        record = record._replace(version=record.version + 1, value=records.encode(job))
        return await self._store.put(record, arm=step.wakes_at(job)), job


def _target(info: r.WorkflowExecutionInfo) -> Target:
    return Target(
        info.execution.workflow_id,
        info.execution.run_id,
        info.workflow_type,
        info.status.value,
        info.start_time,
        info.close_time,
    )


def _check_size(job: Job) -> None:
    size = len(records.encode(job))
    if size > limits.MAX_EXPORT_BYTES:
        raise PayloadTooLarge(
            f"the export would have {size} bytes, above the limit of {limits.MAX_EXPORT_BYTES}; use a shorter query",
            field="query",
        )
