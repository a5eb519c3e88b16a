"""Archival where the table deletes by itself: nothing of a run is marked for that before its archive is recorded, and
then all of it is, also while the next run of its id is open (OP-06)."""

from datetime import timedelta
from typing import Any

from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowIDConflictPolicy

from stepwell_server.adapters.aws.backend import aws_backend
from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.common.settings import EngineSettings, ProcessKind
from stepwell_server.history.archives import Archives
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.engine import Engine
from stepwell_server.history.queue_dispatching import QueueDispatcher
from tests.integration.aws.conftest import Store
from tests.support.aws.cells import Cell, Provisioning
from tests.support.aws.functions import ShiftedClock

KEY = ExecutionKey("shop", "w")
HOUR = timedelta(hours=1)


class Shop:
    """Functions: one for calls, one for deadlines; the feed is called by hand."""

    def __init__(self, cell: Cell, provisioning: Provisioning) -> None:
        self.cell, self.provisioning, self.clock = cell, provisioning, ShiftedClock()
        self.clients = AwsClients()

    async def open(self) -> None:
        settings = AwsSettings(self.cell.names.cell, self.cell.bucket)
        self.backend = await aws_backend(settings, clients=self.clients, clock=self.clock)
        self.backend.namespaces.can_archive = True
        self.calls, self.timers = self._engine(hands_on=False), self._engine(hands_on=True)
        assert self.backend.archive is not None
        self.archives = Archives(self.backend.archive)
        await self.backend.namespaces.register(r.RegisterNamespaceRequest(namespace="shop", archival=True))
        self.store = Store(self.backend, self.clock, None, self.cell, self.provisioning.dynamodb, self.clients)  # type: ignore[arg-type]

    def _engine(self, **settings: Any) -> Engine:
        return Engine(
            log=self.backend.log,
            timers=self.backend.timers,
            visibility=self.backend.visibility,
            clock=self.clock,
            ids=self.backend.ids,
            token_key=self.backend.token_key,
            namespaces=self.backend.namespaces,
            archive=self.backend.archive,
            settings=EngineSettings(process=ProcessKind.ONE_CALL, sweeps=False, poll_timeout=timedelta(0), **settings),
            make_dispatcher=lambda matching: QueueDispatcher(_NoQueues(), self.clock),  # type: ignore[arg-type]
        )

    async def start(self) -> str:
        request = r.StartWorkflowRequest(
            namespace="shop",
            workflow_id="w",
            workflow_type="order",
            task_queue="q",
            workflow_id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING,
        )
        return (await self.calls.start_workflow(request)).run_id

    async def terminate(self) -> None:
        execution = WorkflowExecution(workflow_id="w")
        await self.calls.terminate_workflow(r.TerminateWorkflowRequest(namespace="shop", execution=execution))

    async def head(self) -> Commit:
        head = await self.backend.log.head(KEY)
        assert head is not None
        return head

    async def archive(self) -> None:
        """Its deadline is due, and the feed sees what comes of it."""
        await self.feed()
        assert self.marked() <= self.marked_before
        armed = (await self.head()).state.armed
        assert armed is not None
        self.clock.shift += HOUR
        await self.timers.fire(KEY, armed)
        assert await self.timers.settle(20.0)
        assert (await self.head()).kind == "RecordArchived"
        await self.feed()

    async def feed(self) -> None:
        assert self.backend.retention is not None
        await self.backend.retention.expire(await self.head())

    marked_before: set[str] = set()

    def marked(self) -> set[str]:
        return {item["sk"]["S"] for item in self.store.items() if "x" in item or "cx" in item}


class _NoQueues:
    async def send(self, *message: Any) -> None:
        return None


async def test_runs_expire_only_when_their_archive_is_recorded(cell: Cell, provisioning: Provisioning) -> None:
    shop = Shop(cell, provisioning)
    await shop.open()
    first = await shop.start()
    second = await shop.start()  # in one commit with the end of the first
    await shop.archive()
    shop.marked_before = marked = shop.marked()
    assert marked == {"C#000000000001", "C#000000000002"}, "the first run alone"
    assert (await shop.archives.run(KEY, first)) is not None and await shop.archives.run(KEY, second) is None
    await shop.terminate()
    events = (await shop.backend.log.read_events(KEY, second, 1, 1_000)).events
    await shop.archive()
    assert len(shop.marked()) == (await shop.head()).seq
    archived = await shop.archives.part(KEY, second, 0)
    assert archived is not None and tuple(archived[1]) == events
    shop.clock.shift += timedelta(days=30)
    shop.store.delete_expired()
    assert shop.store.sort_keys() == []
    found = await shop.calls.list_archived_workflows(r.ListArchivedWorkflowsRequest(namespace="shop"))
    assert [info.execution.run_id for info in found.executions] == [second, first] and found.scanned_count == 2
    execution = WorkflowExecution(workflow_id="w", run_id=second)
    page = await shop.calls.get_history(r.GetHistoryRequest(namespace="shop", execution=execution))
    assert page.events == events and not page.next_page_token
    await shop.calls.delete_workflow(r.DeleteWorkflowRequest(namespace="shop", execution=execution))
    found = await shop.calls.list_archived_workflows(r.ListArchivedWorkflowsRequest(namespace="shop"))
    assert [info.execution.run_id for info in found.executions] == [first]
    await shop.backend.close()
