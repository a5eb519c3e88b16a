"""Deleting a namespace (MT-03): refused while it is used, hidden at once, emptied in the background through crashes,
and nothing of another namespace goes."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.batches import BatchTerminate
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import NamespaceState
from stepwell.api.errors import (
    FailedPrecondition,
    InvalidArgument,
    NamespaceAlreadyExists,
    NamespaceNotFound,
)
from stepwell.api.operations import Operation

from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.adapters.system import SystemClock
from stepwell_server.common.control import ControlRecord, wake_up_id
from stepwell_server.common.settings import EngineSettings
from stepwell_server.common.spaces import of_activities
from stepwell_server.entrypoints.making import make_engine
from stepwell_server.frontend.limiting import Limiter
from stepwell_server.frontend.routes import HANDLERS
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.requests import Start
from stepwell_server.namespaces import removal

MINUTE = timedelta(minutes=1)


class Installation:
    """One process on a file. A ``crash`` waits for nothing."""

    def __init__(self, path: Path, settings: EngineSettings | None = None) -> None:
        self.backend = embedded_backend(path)
        self.engine = make_engine(self.backend, settings or EngineSettings(stop_grace=timedelta(0)))
        assert self.engine.wake_ups is not None
        self.engine.wake_ups.register("thing", self._thing)
        self.limiter = Limiter(self.engine.namespaces)

    async def _thing(self, namespace: str, id: str, due_at: datetime) -> None:
        """What a control record of this kind does is of no interest here."""

    async def call(self, operation: Operation[Any, Any], **fields: Any) -> Any:
        handler = HANDLERS[operation.name]
        return await self.limiter.carry_out(handler, self.engine, operation, operation.request_type(**fields))

    async def fill(self, namespace: str, workflows: int, *, closed: bool) -> None:
        for number in range(workflows):
            workflow_id = f"w-{number}"
            await self.call(
                o.START_WORKFLOW, namespace=namespace, workflow_id=workflow_id, workflow_type="t", task_queue="q"
            )
            if closed:
                execution = WorkflowExecution(workflow_id=workflow_id)
                await self.call(o.TERMINATE_WORKFLOW, namespace=namespace, execution=execution)

    async def fill_alone(self, namespace: str, activity_id: str) -> None:
        """An activity without a workflow."""
        await self.call(
            o.START_ACTIVITY,
            namespace=namespace,
            activity_id=activity_id,
            activity_type="t",
            task_queue="q",
            start_to_close_timeout=MINUTE,
        )

    async def listed(self, namespace: str) -> list[str]:
        page = await self.engine.list_workflows(r.ListWorkflowsRequest(namespace=namespace, page_size=1_000))
        return [info.execution.workflow_id for info in page.executions]

    async def gone(self, name: str) -> bool:
        return await self.backend.control.get("namespace", "", name) is None

    async def stop(self) -> None:
        await self.engine.stop()
        await self.backend.close()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await condition():
            await asyncio.sleep(0.02)


@pytest.fixture
async def installation(tmp_path: Path) -> AsyncIterator[Installation]:
    made = Installation(tmp_path / "n.db")
    await made.engine.start()
    await made.call(o.REGISTER_NAMESPACE, namespace="shop")
    await made.call(o.REGISTER_NAMESPACE, namespace="other")
    yield made
    await made.stop()


async def test_what_is_used_is_refused_without_force(installation: Installation) -> None:
    await installation.fill("shop", 1, closed=False)
    with pytest.raises(FailedPrecondition, match=r"'shop' is active; deprecate it first .* or delete it with force"):
        await installation.call(o.DELETE_NAMESPACE, namespace="shop")
    await installation.call(o.DEPRECATE_NAMESPACE, namespace="shop")
    with pytest.raises(FailedPrecondition, match="workflows or activities run in namespace 'shop'; let them end"):
        await installation.call(o.DELETE_NAMESPACE, namespace="shop")
    for name, error, message in (
        ("default", FailedPrecondition, "cannot be deleted"),
        ("nobody's", NamespaceNotFound, "is not registered"),
    ):
        with pytest.raises(error, match=message):
            await installation.call(o.DELETE_NAMESPACE, namespace=name, force=True)
    with pytest.raises(InvalidArgument, match="delay is 31 days, above the limit of 30 days"):
        await installation.call(o.DELETE_NAMESPACE, namespace="shop", force=True, delay=timedelta(days=31))
    assert (await installation.call(o.DESCRIBE_NAMESPACE, namespace="shop")).info.state is NamespaceState.DEPRECATED
    assert await installation.listed("shop") == ["w-0"]


async def test_what_is_paused_is_used_too(installation: Installation) -> None:
    await installation.fill("shop", 1, closed=False)
    await installation.call(o.PAUSE_WORKFLOW, namespace="shop", execution=WorkflowExecution(workflow_id="w-0"))
    await installation.call(o.DEPRECATE_NAMESPACE, namespace="shop")
    with pytest.raises(FailedPrecondition, match="workflows or activities run in namespace 'shop'; let them end"):
        await installation.call(o.DELETE_NAMESPACE, namespace="shop")
    assert await installation.listed("shop") == ["w-0"]


async def test_standalone_activities_are_in_use_and_go_as_well(installation: Installation) -> None:
    for namespace in ("shop", "other"):
        await installation.fill_alone(namespace, "a")
    await installation.call(o.DEPRECATE_NAMESPACE, namespace="shop")
    with pytest.raises(FailedPrecondition, match="workflows or activities run in namespace 'shop'; let them end"):
        await installation.call(o.DELETE_NAMESPACE, namespace="shop")
    await installation.call(o.DELETE_NAMESPACE, namespace="shop", force=True)
    await until(lambda: installation.gone("shop"))
    heads = [await installation.backend.log.head(ExecutionKey(of_activities(name), "a")) for name in ("shop", "other")]
    assert heads[0] is None and heads[1] is not None


async def test_it_is_hidden_at_once_and_its_name_is_free_when_all_is_gone(installation: Installation) -> None:
    await installation.fill("shop", 3, closed=True)
    await installation.call(o.DEPRECATE_NAMESPACE, namespace="shop")
    await installation.call(o.DELETE_NAMESPACE, namespace="shop", delay=timedelta(seconds=1))
    await installation.call(o.DELETE_NAMESPACE, namespace="shop")
    names = [info.name for info in (await installation.call(o.LIST_NAMESPACES)).namespaces]
    assert names == ["default", "other"]
    for operation in (o.DESCRIBE_NAMESPACE, o.UPDATE_NAMESPACE, o.DEPRECATE_NAMESPACE):
        with pytest.raises(NamespaceNotFound, match="'shop' is deleted, and what was in it goes"):
            await installation.call(operation, namespace="shop")
    with pytest.raises(NamespaceNotFound, match="'shop' is deleted"):
        await installation.call(o.START_WORKFLOW, namespace="shop", workflow_id="w", workflow_type="t", task_queue="q")
    with pytest.raises(NamespaceAlreadyExists, match="is being deleted, and its name is free when"):
        await installation.call(o.REGISTER_NAMESPACE, namespace="shop")
    assert len(await installation.listed("shop")) == 3, "there was a delay"
    await until(lambda: installation.gone("shop"))
    assert await installation.listed("shop") == []
    await installation.call(o.REGISTER_NAMESPACE, namespace="shop")
    await installation.fill("shop", 1, closed=False)
    assert await installation.listed("shop") == ["w-0"]


async def test_by_force_what_runs_is_ended_and_goes_with_all_records(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "PAGE", 3)
    control = installation.backend.control
    for namespace in ("shop", "other"):
        await installation.fill(namespace, 10, closed=False)
        for number in range(7):
            await control.put(ControlRecord("thing", namespace, f"t-{number}", 1, b""))
    await installation.call(o.DELETE_NAMESPACE, namespace="shop", force=True)
    await until(lambda: installation.gone("shop"))
    assert await installation.listed("shop") == [] and await control.list("thing", "shop", limit=9) == []
    assert len(await installation.listed("other")) == 10 and len(await control.list("thing", "other", limit=9)) == 7
    key = ExecutionKey("shop", "w-0")

    async def erased() -> bool:
        return await installation.backend.log.head(key) is None

    await until(erased)


async def test_the_lists_of_its_batches_go_too(installation: Installation) -> None:
    """Else a batch of the same id, in the next namespace of the name, would find what the one before it was for."""
    await installation.fill("shop", 2, closed=False)
    for listed in (["w-0", "w-1"], ["w-1"]):
        request = r.StartBatchOperationRequest(
            namespace="shop",
            job_id="job",
            operation=BatchTerminate(),
            executions=tuple([WorkflowExecution(workflow_id=name) for name in listed]),
        )
        await HANDLERS["StartBatchOperation"](installation.engine, request)
        await installation.call(o.DELETE_NAMESPACE, namespace="shop", force=True)
        await until(lambda: installation.gone("shop"))
        for kind in ("batch", "batch-list", "batch-turn"):
            assert await installation.backend.control.list(kind, "shop", limit=9) == []
        await installation.call(o.REGISTER_NAMESPACE, namespace="shop")


@pytest.mark.parametrize("crashes", [1, 3])
async def test_a_removal_goes_on_behind_crashes(tmp_path: Path, crashes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "PAGE", 2)
    monkeypatch.setattr(removal, "AT_ONCE", 1)
    installation = Installation(tmp_path / "n.db")
    await installation.engine.start()
    await installation.call(o.REGISTER_NAMESPACE, namespace="shop")
    await installation.fill("shop", 12, closed=False)
    await installation.call(o.DELETE_NAMESPACE, namespace="shop", force=True)
    for crash in range(crashes):

        async def begun(left: int = 12 - crash, running: Installation = installation) -> bool:
            return len(await running.listed("shop")) < left

        await until(begun)
        await installation.stop()
        installation = Installation(tmp_path / "n.db")
        await installation.engine.start()
    await until(lambda: installation.gone("shop"))
    assert await installation.listed("shop") == []
    await installation.stop()


@pytest.mark.parametrize("alone", [False, True])
async def test_what_nobody_can_read_holds_up_nothing_and_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: bool
) -> None:
    """The newest come first, so that a whole page of them is before the rest."""
    monkeypatch.setattr(removal, "PAGE", 2)
    monkeypatch.setattr(removal, "WORK_SECONDS", 0.0)
    monkeypatch.setattr(removal, "IN_A_MOMENT", timedelta(milliseconds=1))
    installation = Installation(tmp_path / "n.db")
    await installation.engine.start()
    await installation.call(o.REGISTER_NAMESPACE, namespace="shop")
    await installation.fill("shop", 7, closed=True)
    for number in range(7 if alone else 0):
        await installation.fill_alone("shop", f"a-{number}")
        await installation.call(o.TERMINATE_ACTIVITY, namespace="shop", activity_id=f"a-{number}")
    await installation.stop()
    unreadable = [f"{'a' if alone else 'w'}-{number}" for number in (4, 5, 6)]
    newest = f"log IN (SELECT id FROM logs WHERE workflow_id IN {tuple(unreadable)})"
    with closing(sqlite3.connect(tmp_path / "n.db")) as file, file:
        whole = file.execute(f"SELECT head, log, seq FROM commits WHERE {newest}").fetchall()
        file.execute(f"UPDATE commits SET head = x'00' WHERE {newest}")
    installation = Installation(tmp_path / "n.db")
    await installation.engine.start()
    await installation.call(o.DELETE_NAMESPACE, namespace="shop", force=True)

    async def left() -> bool:
        there = await installation.listed("shop") + await installation.listed(of_activities("shop"))
        return sorted(there) == unreadable

    await until(left)

    async def told() -> bool:
        try:
            info = (await installation.call(o.DESCRIBE_NAMESPACE, namespace="shop")).info
        except NamespaceNotFound:
            return False
        assert info.state is NamespaceState.DELETED and all(failure.message for failure in info.removal_failures)
        names = sorted([failure.execution.workflow_id for failure in info.removal_failures])
        return info.unremoved == 3 and names == unreadable

    await until(told)
    assert [info.name for info in (await installation.call(o.LIST_NAMESPACES)).namespaces] == ["default"]
    await installation.stop()
    with closing(sqlite3.connect(tmp_path / "n.db")) as file, file:
        file.executemany("UPDATE commits SET head = ? WHERE log = ? AND seq = ?", whole)
    installation = Installation(tmp_path / "n.db")
    await installation.engine.start()
    await installation.call(o.DELETE_NAMESPACE, namespace="shop")  # tries again at once
    await until(lambda: installation.gone("shop"))
    await installation.stop()


class Clock(SystemClock):
    shift = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.shift


async def test_where_others_may_not_know_yet_nothing_must_be_found_for_a_while(tmp_path: Path) -> None:
    """What turns up meanwhile goes as well; early wake-ups and repeats end nothing."""
    clock = Clock()
    installation = Installation(tmp_path / "n.db")
    namespaces, control, engine = installation.engine.namespaces, installation.backend.control, installation.engine
    assert engine.wake_ups is not None
    clearing = removal.NamespaceRemoval(namespaces, control, engine.wake_ups, engine, clock, settle=10 * MINUTE)
    await installation.call(o.REGISTER_NAMESPACE, namespace="shop")
    await installation.call(o.DELETE_NAMESPACE, namespace="shop", force=True, delay=MINUTE)

    async def wake(at: timedelta) -> ControlRecord | None:
        """What is armed then is later."""
        clock.shift = at
        await clearing.woken("", "shop", clock.now())
        record = await control.get("namespace", "", "shop")
        if record is not None:
            newest = max(time for time, _ in await installation.backend.timers.due(clock.now() + 99 * MINUTE, 99))
            assert newest > clock.now(), "nothing is armed"
        return record

    await wake(timedelta(0))
    await wake(2 * MINUTE)
    late = r.StartWorkflowRequest(namespace="shop", workflow_id="late", workflow_type="t", task_queue="q")
    await engine.start_workflow(late)
    await wake(11 * MINUTE)
    assert await wake(13 * MINUTE) is not None, "the ten minutes begin anew"
    assert await wake(14 * MINUTE) is not None
    assert await wake(24 * MINUTE) is None and not namespaces.known.get("shop")
    await wake(25 * MINUTE)
    assert wake_up_id("namespace", "shop") == "\x01namespace/shop"
    await installation.stop()


async def test_schedules_start_nothing_in_a_deprecated_namespace(installation: Installation) -> None:
    """What is started for a schedule passes no handler."""
    start = r.StartWorkflowRequest(namespace="shop", workflow_id="w", workflow_type="t", task_queue="q")
    await installation.call(o.DEPRECATE_NAMESPACE, namespace="shop")
    with pytest.raises(FailedPrecondition, match="'shop' is deprecated: nothing is started"):
        await installation.engine.outside_runs.start(Start(run_id="run", start=start), known=False)
    assert await installation.listed("shop") == []
