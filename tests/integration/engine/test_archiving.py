"""Closed runs are archived behind their close and before retention may have them (OP-06)."""

from datetime import timedelta
from pathlib import Path

from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowIDConflictPolicy

from stepwell_server.history.commit import ExecutionKey
from tests.support.archived import LONG, SHOP, Shop, shop
from tests.support.cases import until

KEY = ExecutionKey(SHOP, "w")
HOUR = timedelta(hours=1)


async def test_what_is_archived_is_the_history_and_what_lists_showed() -> None:
    async with shop() as store:
        run_id = await store.start(memo={})
        await store.signal("a")
        await store.end()
        events = await store.pages(run_id)
        listed = await store.engine.list_workflows(r.ListWorkflowsRequest(namespace=SHOP))
        await store.paid()
        found = await store.archives.part(KEY, run_id, 0)
        assert found is not None and found[0] is not None
        run, archived = found
        assert archived == events and run.parts == 1
        assert len(store.blobs.puts) == 2 and store.blobs.puts[-1].startswith("i/")
        from stepwell_server.history.archive_objects import info_of

        assert [info_of(run)] == list(listed.executions)


async def test_a_run_is_kept_until_it_is_archived() -> None:
    """Its retention is over; the archive cannot be written for long."""
    async with shop(archive_after=HOUR) as store:
        run_id = await store.ended()
        store.clock.shift = LONG
        await store.sweep()
        assert await store.pages(run_id) and await store.owes()
        armed = (await store.backend.log.head(KEY)).state.armed  # type: ignore[union-attr]
        assert armed is not None
        store.blobs.failing = 1
        await store.engine.fire(KEY, armed)
        await store.paid()
        assert store.blobs.failing == 0
        await store.sweep()
        assert await store.backend.log.head(KEY) is None
        assert await store.archives.run(KEY, run_id) is not None


async def test_runs_of_a_chain_are_one_debt_and_each_is_archived() -> None:
    async with shop(archive_after=HOUR) as store:
        runs = []
        for _ in range(20):
            runs.append(await store.start(workflow_id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING))
        head = await store.backend.log.head(KEY)
        assert head is not None and len(head.state.owed) == 1 and head.state.armed is not None
        store.clock.shift = 2 * HOUR
        await store.engine.fire(KEY, head.state.armed)
        await store.paid()
        there = [await store.archives.run(KEY, run_id) is not None for run_id in runs]
        assert there == [True] * 19 + [False]
        store.clock.shift = LONG
        await store.sweep()
        assert await store.backend.log.find_run(KEY, runs[0]) is None
        assert await store.backend.log.find_run(KEY, runs[-1]) is not None


async def test_what_a_death_left_undone_is_done_by_the_deadline(tmp_path: Path) -> None:
    """Between the close and the archive, and between the archive and its record."""
    path = tmp_path / "shop.db"
    async with shop(path, archive_after=HOUR) as store:
        run_id = await store.ended()
    async with shop(path) as store:
        commit = await store.backend.log.head(KEY)
        assert commit is not None and await store.owes() and commit.state.armed is not None
        store.clock.shift = 2 * HOUR
        await store.engine.fire(KEY, commit.state.armed)
        await store.paid()
        first = await store.archives.part(KEY, run_id, 0)
        assert first is not None and first[1] == await store.pages(run_id)


async def test_a_namespace_that_is_not_archived_owes_nothing() -> None:
    async with shop(archival=False) as store:
        await store.ended()
        assert not await store.owes() and not store.blobs.puts
        await store.engine.namespaces.update(r.UpdateNamespaceRequest(namespace=SHOP, archival=True))
        later = await store.ended("later")
        await store.paid("later")
        assert await store.archives.run(ExecutionKey(SHOP, "later"), later) is not None


async def test_deleting_a_run_deletes_its_archive_or_does_without_one() -> None:
    async with shop(archive_after=HOUR) as store:
        waiting, archived = await store.ended("waiting"), await store.ended("archived")
        head = await store.backend.log.head(ExecutionKey(SHOP, "archived"))
        assert head is not None and head.state.armed is not None
        store.clock.shift = 2 * HOUR
        await store.engine.fire(head.key, head.state.armed)
        await store.paid("archived")
        assert await store.archives.run(head.key, archived) is not None
        for workflow_id, run_id in (("waiting", waiting), ("archived", archived)):
            await _delete(store, workflow_id, run_id)
            key = ExecutionKey(SHOP, workflow_id)

            async def gone(key: ExecutionKey = key) -> bool:
                return await store.backend.log.head(key) is None

            await until(gone)
            assert await store.archives.run(key, run_id) is None
        assert not (await store.archives.index(SHOP, "", 10)).names


async def _delete(store: Shop, workflow_id: str, run_id: str) -> None:
    execution = WorkflowExecution(workflow_id=workflow_id, run_id=run_id)
    await store.engine.delete_workflow(r.DeleteWorkflowRequest(namespace=SHOP, execution=execution))
