"""Removes what is in a deleted namespace, in the background and by wake-ups of its record (MT-03).

Deleting hides the namespace at once and arms the first wake-up. Each one works for a while (records of the control
store first, so that no schedule starts anything more; then workflow after workflow, and then the activities without
one, by the engine's own deletion) and arms the next. All of it looks for what is still there, so it may die anywhere,
be called twice, and go on elsewhere. Nothing is found for ``settle``: then the record goes last, and with it the name
is free. Data is kept by name, so the name stays taken until then.

A workflow that cannot be deleted, such as one that nobody can read, holds up no other: the round goes on behind it, and
the record says which it was and why. What is left of such is tried again, ever more seldom, and at once when somebody
deletes the namespace again.
"""

import asyncio
import logging
from datetime import datetime, timedelta
from typing import Protocol

import msgspec
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import NamespaceState
from stepwell.api.errors import ApiError, InvalidArgument, NotFound, WorkflowExecutionClosing
from stepwell.api.limits import MAX_REMOVAL_FAILURES
from stepwell.api.namespaces import RemovalFailure

from ..common.clock import Clock
from ..common.control import ControlConflict, ControlRecord, ControlStore, ControlWakeUps
from ..common.spaces import of_activities
from . import records
from .records import KIND, NamespaceConfig, Removal
from .registry import Namespaces

log = logging.getLogger(__name__)

WORK_SECONDS = 20.0
"""Of one wake-up; then others may go first."""

AT_ONCE = 4
PAGE = 100
PAGE_SECONDS = 0.25
"""Together 400 a second at most, so that nobody else is kept waiting (MT-03: four at a hundred a second each)."""

IN_A_MOMENT = timedelta(seconds=1)
"""Until it looks again: what it has found is being deleted."""

LONGEST_PAUSE = timedelta(minutes=5)
"""Until what could not be deleted is tried again."""

_MESSAGE_BYTES = 300

IDENTITY = "namespace-removal"


class Workflows(Protocol):
    """What it asks of the engine."""

    async def scan_workflows(self, request: r.ScanWorkflowsRequest) -> r.ScanWorkflowsResponse: ...

    async def erase_archive(self, namespace: str) -> bool: ...

    async def delete_workflow(self, request: r.DeleteWorkflowRequest) -> r.DeleteWorkflowResponse: ...


class NamespaceRemoval:
    """``settle``: how long nothing must be found, where other processes may still start something (they know of the
    deletion later), or lists come late."""

    def __init__(
        self,
        namespaces: Namespaces,
        store: ControlStore,
        wake_ups: ControlWakeUps,
        workflows: Workflows,
        clock: Clock,
        *,
        settle: timedelta,
    ) -> None:
        self._namespaces = namespaces
        self._store = store
        self._wake_ups = wake_ups
        self._workflows = workflows
        self._clock = clock
        self._settle = settle

    async def woken(self, namespace: str, id: str, due_at: datetime) -> None:
        """Of the record ``id``, which is the name."""
        record = await self._store.get(KIND, "", id)
        config = None if record is None else records.decode(record.value)
        if record is None or config is None or config.state is not NamespaceState.DELETED:
            return
        now = self._clock.now()
        begins = config.delete_after or now
        if now < begins:
            await self._go_on(record, config, begins)
        else:
            removal, pause = await self._remove_some(record, config.removal)
            config = _replaced(config, removal=removal)
            if pause is not None:
                await self._go_on(record, _replaced(config, empty_since=None), self._clock.now() + pause)
            else:
                await self._settled(record, config)

    async def _settled(self, record: ControlRecord, config: NamespaceConfig) -> None:
        """Nothing was found."""
        now = self._clock.now()
        empty_since = config.empty_since or now
        if now < empty_since + self._settle:
            await self._go_on(record, _replaced(config, empty_since=empty_since), empty_since + self._settle)
        else:
            await self._finish(record, config)

    async def _go_on(self, record: ControlRecord, config: NamespaceConfig, at: datetime) -> None:
        """With the next wake-up, whatever this one was for: it may be an early one, or a repeat."""
        value = records.encode(config)
        try:
            await self._store.put(record._replace(version=record.version + 1, value=value), arm=at)
        except ControlConflict:
            log.info("Another process removes namespace %r as well", record.id)  # and has armed its next wake-up

    async def _finish(self, record: ControlRecord, config: NamespaceConfig) -> None:
        try:
            await self._store.delete(record)
        except ControlConflict:
            return
        self._namespaces.forget(config)
        log.info("Namespace %r is deleted, with all that was in it", record.id)

    async def _remove_some(self, record: ControlRecord, removal: Removal) -> tuple[Removal, timedelta | None]:
        """How far it is then, and when to go on; None: a whole round found nothing.

        Another process may finish the removal while this one stands still, and the name may be in use again. So what
        was listed is deleted only if the record is still there behind the list, and by run id and incarnation: then it
        is of the old namespace, however late its deletion comes."""
        name, ends = record.id, self._clock.monotonic() + WORK_SECONDS
        if await self._remove_records(record):
            return removal, IN_A_MOMENT
        while True:
            began = self._clock.monotonic()
            space = of_activities(name) if removal.alone else name
            page = await self._page(space, removal.token)
            if page.executions and not await self._is_there(record):
                return removal, IN_A_MOMENT
            failures = await self._remove_workflows(space, [info.execution for info in page.executions])
            removal = _with_page(removal, page, failures)
            if not page.next_page_token and not removal.alone:
                removal = msgspec.structs.replace(removal, alone=True)
            elif not page.next_page_token:
                ended, pause = self._end_round(name, removal)
                if pause is None and await self._remove_archive(record, ends):
                    return ended, IN_A_MOMENT
                return ended, pause
            now = self._clock.monotonic()
            if now >= ends:
                return removal, IN_A_MOMENT
            await asyncio.sleep(max(0.0, PAGE_SECONDS - (now - began)))

    async def _remove_archive(self, record: ControlRecord, ends: float) -> bool:
        """Whether there is some of it left: the name may be somebody else's next."""
        while await self._is_there(record) and await self._workflows.erase_archive(record.id):
            if self._clock.monotonic() >= ends:
                return True
        return False

    async def _page(self, name: str, token: bytes) -> r.ScanWorkflowsResponse:
        request = r.ScanWorkflowsRequest(namespace=name, page_size=PAGE, next_page_token=token)
        try:
            return await self._workflows.scan_workflows(request)
        except InvalidArgument:
            if not token:
                raise
            return await self._page(name, b"")  # of another release, say

    def _end_round(self, name: str, removal: Removal) -> tuple[Removal, timedelta | None]:
        if not removal.removed and not removal.failed:
            return Removal(), None
        idle = 0 if removal.removed else removal.idle + 1
        if removal.failed:
            first = removal.failures[0]
            log.warning(
                "%d runs of the deleted namespace %r cannot be deleted and are tried again; the first is of %r: %s",
                removal.failed,
                name,
                first.execution.workflow_id,
                first.message,
            )
        over = Removal(idle=idle, left=removal.failed, left_failures=removal.failures)
        return over, min(IN_A_MOMENT * 2 ** min(idle, 20), LONGEST_PAUSE)

    async def _remove_records(self, record: ControlRecord) -> bool:
        found: list[ControlRecord] = []
        for kind in self._wake_ups.kinds:
            if kind != KIND:
                found += await self._store.list(kind, record.id, limit=PAGE)
        if found and await self._is_there(record):
            for one in found:
                try:
                    await self._store.delete(one)
                except ControlConflict:
                    continue  # it was changed meanwhile; the next round has it as it is then
        return bool(found)

    async def _is_there(self, record: ControlRecord) -> bool:
        """Whether the name is still that of the namespace that is being removed."""
        newest = await self._store.get(KIND, "", record.id)
        return newest is not None and newest.incarnation == record.incarnation

    async def _remove_workflows(self, name: str, executions: list[WorkflowExecution]) -> list[RemovalFailure]:
        """Those that cannot be deleted."""
        room = asyncio.Semaphore(AT_ONCE)

        async def remove(execution: WorkflowExecution) -> RemovalFailure | None:
            request = r.DeleteWorkflowRequest(namespace=name, execution=execution, identity=IDENTITY)
            async with room:
                try:
                    await self._workflows.delete_workflow(request)
                except (NotFound, WorkflowExecutionClosing):
                    return None  # it goes already, or in a moment
                except ApiError as error:
                    return _failure(execution, error.message)
                except Exception as error:
                    log.debug("Workflow %r cannot be deleted", execution.workflow_id, exc_info=error)
                    return _failure(execution, f"{type(error).__name__}: {error}")
            return None

        failures = await asyncio.gather(*map(remove, executions))
        return [failure for failure in failures if failure is not None]


def _with_page(removal: Removal, page: r.ScanWorkflowsResponse, failures: list[RemovalFailure]) -> Removal:
    return msgspec.structs.replace(
        removal,
        token=page.next_page_token,
        removed=removal.removed + len(page.executions) - len(failures),
        failed=removal.failed + len(failures),
        failures=(*removal.failures, *failures)[:MAX_REMOVAL_FAILURES],
    )


def _failure(execution: WorkflowExecution, message: str) -> RemovalFailure:
    cut = message.encode(errors="replace")[:_MESSAGE_BYTES].decode(errors="ignore")
    return RemovalFailure(execution=execution, message=cut)


def _replaced(config: NamespaceConfig, **changes: object) -> NamespaceConfig:
    return msgspec.structs.replace(config, **changes)
