"""An engine whose namespace ``shop`` is archived, driven by requests."""

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.events import HistoryEvent

from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.common.blobs import BlobsPage, BlobStore
from stepwell_server.common.settings import EngineSettings
from stepwell_server.entrypoints.making import make_engine
from stepwell_server.history.archives import Archives
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.engine import Engine
from stepwell_server.history.machines import archiving
from stepwell_server.history.ports import StoreUnavailable
from tests.support.cases import until
from tests.support.engine import ShiftedClock, payload

SHOP = "shop"
AT_ONCE = timedelta(0)
LONG = timedelta(days=30)


class CountedBlobs:
    """Counts calls; ``failing`` of them fail first."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self.puts: list[str] = []
        self.gets: list[str] = []
        self.lists = 0
        self.failing = 0

    async def put(self, key: str, data: bytes) -> None:
        if self.failing:
            self.failing -= 1
            raise StoreUnavailable("the archive is away")
        await self._blobs.put(key, data)
        self.puts.append(key)

    async def get(self, key: str) -> bytes:
        self.gets.append(key)
        return await self._blobs.get(key)

    async def delete(self, keys: Any) -> None:
        await self._blobs.delete(keys)

    async def list(self, prefix: str, after: str = "", limit: int = 1_000) -> BlobsPage:
        self.lists += 1
        return await self._blobs.list(prefix, after, limit)


class Shop:
    """A client of the engine."""

    def __init__(self, engine: Engine, backend: Backend, blobs: CountedBlobs, clock: ShiftedClock) -> None:
        self.engine, self.backend, self.blobs, self.clock = engine, backend, blobs, clock
        self.archives = Archives(blobs)

    async def start(self, workflow_id: str = "w", **more: Any) -> str:
        values: dict[str, Any] = {"workflow_type": "order", "task_queue": "q", **more}
        request = r.StartWorkflowRequest(namespace=SHOP, workflow_id=workflow_id, **values)
        return (await self.engine.start_workflow(request)).run_id

    async def signal(self, text: str, workflow_id: str = "w") -> None:
        execution = WorkflowExecution(workflow_id=workflow_id)
        await self.engine.signal_workflow(
            r.SignalWorkflowRequest(namespace=SHOP, execution=execution, signal_name="s", input=payload(text))
        )

    async def end(self, workflow_id: str = "w") -> None:
        execution = WorkflowExecution(workflow_id=workflow_id)
        await self.engine.terminate_workflow(r.TerminateWorkflowRequest(namespace=SHOP, execution=execution))

    async def ended(self, workflow_id: str = "w", **more: Any) -> str:
        """A run that has ended."""
        run_id = await self.start(workflow_id, **more)
        await self.end(workflow_id)
        return run_id

    async def owes(self, workflow_id: str = "w") -> bool:
        head = await self.backend.log.head(ExecutionKey(SHOP, workflow_id))
        return head is not None and archiving.owed_archive(head.state) is not None

    async def paid(self, workflow_id: str = "w") -> None:
        async def none_owed() -> bool:
            return not await self.owes(workflow_id)

        await until(none_owed)

    async def sweep(self) -> None:
        now = self.clock.now()
        self.engine.forget(await self.backend.sweep(now))

    async def pages(self, run_id: str, workflow_id: str = "w", **more: Any) -> list[HistoryEvent]:
        """All of a history."""
        execution, events, token = WorkflowExecution(workflow_id=workflow_id, run_id=run_id), [], b""
        while True:
            request = r.GetHistoryRequest(namespace=SHOP, execution=execution, next_page_token=token, **more)
            page = await self.engine.get_history(request)
            events += page.events
            token = page.next_page_token
            if not token:
                return events


@asynccontextmanager
async def shop(
    path: str | Path = ":memory:", *, archive_after: timedelta = AT_ONCE, archival: bool = True
) -> AsyncIterator[Shop]:
    clock = ShiftedClock()
    backend = embedded_backend(path, clock=clock)
    assert backend.archive is not None
    blobs = CountedBlobs(backend.archive)
    engine = make_engine(dataclasses.replace(backend, archive=blobs), EngineSettings(archive_after=archive_after))
    await engine.start()
    try:
        if not engine.namespaces.is_registered(SHOP):
            await engine.namespaces.register(r.RegisterNamespaceRequest(namespace=SHOP, archival=archival))
        yield Shop(engine, backend, blobs, clock)
    finally:
        await engine.stop()
        await backend.close()
