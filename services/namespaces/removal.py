"""Removes what is in a deleted namespace, in the background and by wake-ups of its record (MT-03).

Deleting hides the namespace at once and arms the first wake-up. Each one works for a while (records of the control
store first, so that no schedule starts anything more; then workflow after workflow, by the engine's own deletion) and
arms the next. All of it looks for what is still there, so it may die anywhere, be called twice, and go on elsewhere.
Nothing is found for ``settle``: then the record goes last, and with it the name is free. Data is kept by name, so the
name stays taken until then.
"""

import asyncio
import contextlib
import logging
from datetime import datetime, timedelta
from typing import Protocol

import msgspec
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import NamespaceState
from stepwell.api.errors import NotFound, WorkflowExecutionClosing

from ..common.clock import Clock
from ..common.control import ControlConflict, ControlRecord, ControlStore, ControlWakeUps
from . import records
from .records import KIND, NamespaceConfig
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

IDENTITY = "namespace-removal"


class Workflows(Protocol):
    """What it asks of the engine."""

    async def list_workflows(self, request: r.ListWorkflowsRequest) -> r.ListWorkflowsResponse: ...

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
        elif await self._remove_some(id):
            await self._go_on(record, _replaced(config, empty_since=None), self._clock.now() + IN_A_MOMENT)
        elif not self._settle:
            await self._finish(record)
        else:
            now = self._clock.now()
            empty_since = config.empty_since or now
            if now < empty_since + self._settle:
                await self._go_on(record, _replaced(config, empty_since=empty_since), empty_since + self._settle)
            else:
                await self._finish(record)

    async def _go_on(self, record: ControlRecord, config: NamespaceConfig, at: datetime) -> None:
        """With the next wake-up, whatever this one was for: it may be an early one, or a repeat."""
        value = records.encode(config)
        try:
            await self._store.put(record._replace(version=record.version + 1, value=value), arm=at)
        except ControlConflict:
            log.info("Another process removes namespace %r as well", record.id)  # and has armed its next wake-up

    async def _finish(self, record: ControlRecord) -> None:
        try:
            await self._store.delete(record)
        except ControlConflict:
            return
        self._namespaces.forget(record.id)
        log.info("Namespace %r is deleted, with all that was in it", record.id)

    async def _remove_some(self, name: str) -> bool:
        """Whether anything was there: then it is to be looked at again."""
        ends = self._clock.monotonic() + WORK_SECONDS
        if await self._remove_records(name):
            return True
        found, token = False, b""
        while True:
            began = self._clock.monotonic()
            request = r.ListWorkflowsRequest(namespace=name, page_size=PAGE, next_page_token=token)
            page = await self._workflows.list_workflows(request)
            found |= bool(page.executions)
            await self._remove_workflows(name, [info.execution for info in page.executions])
            token, now = page.next_page_token, self._clock.monotonic()
            if not token or now >= ends:
                return found
            await asyncio.sleep(max(0.0, PAGE_SECONDS - (now - began)))

    async def _remove_records(self, name: str) -> bool:
        found: list[ControlRecord] = []
        for kind in self._wake_ups.kinds:
            if kind != KIND:
                found += await self._store.list(kind, name, limit=PAGE)
        for record in found:
            try:
                await self._store.delete(record)
            except ControlConflict:
                continue  # it was changed meanwhile; the next round has it as it is then
        return bool(found)

    async def _remove_workflows(self, name: str, executions: list[WorkflowExecution]) -> None:
        room = asyncio.Semaphore(AT_ONCE)

        async def remove(execution: WorkflowExecution) -> None:
            request = r.DeleteWorkflowRequest(namespace=name, execution=execution, identity=IDENTITY)
            async with room:
                with contextlib.suppress(NotFound, WorkflowExecutionClosing):  # it goes already, or in a moment
                    await self._workflows.delete_workflow(request)

        await asyncio.gather(*map(remove, executions))


def _replaced(config: NamespaceConfig, **changes: object) -> NamespaceConfig:
    return msgspec.structs.replace(config, **changes)
