"""What is deleted and made anew under its id (a schedule, a namespace) while a process stands still between its read
and its write: the write changes nothing of the new one, which is at the very version that the late one waits for."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.enums import NamespaceState
from stepwell.api.enums import ScheduleOverlapPolicy as Overlap
from stepwell.api.enums import WorkflowExecutionStatus as Status
from stepwell.api.errors import ConflictTokenMismatch

from stepwell_server.adapters.system import SystemIds
from stepwell_server.common.control import ControlRecord, ControlWakeUps
from stepwell_server.common.settings import EngineSettings
from stepwell_server.common.spaces import has_activities
from stepwell_server.entrypoints.making import make_engine
from stepwell_server.frontend.routes import HANDLERS
from stepwell_server.namespaces import records
from stepwell_server.namespaces.records import Removal
from stepwell_server.namespaces.registry import Namespaces
from stepwell_server.namespaces.removal import NamespaceRemoval
from tests.support.scheduled import HOUR, T0, FaultyControl, Scheduled, schedule, scheduled

FIRST = "report-2026-11-30T13:00:00Z"
SECOND = "report-2026-11-30T14:00:00Z"


class Elsewhere:
    """Another process on the same store."""

    def __init__(self, s: Scheduled) -> None:
        self.engine = make_engine(s.backend, EngineSettings(sweeps=False))

    async def make_anew(self, **policies: Any) -> None:
        await HANDLERS["DeleteSchedule"](self.engine, r.DeleteScheduleRequest(schedule_id="s"))
        made = r.CreateScheduleRequest(schedule_id="s", schedule=schedule(2 * HOUR, **policies))
        await HANDLERS["CreateSchedule"](self.engine, made)


async def test_a_late_firing_does_not_write_a_deleted_schedule_over_the_next_one() -> None:
    async with scheduled() as s:
        await s.create()
        s.control.conflicts.append(Elsewhere(s).make_anew)
        await s.at(T0 + HOUR)
        there = await s.describe()
        assert there.schedule.spec.intervals[0].every == 2 * HOUR and there.info.action_count == 0
        assert await s.started() == [], "what was to start was not written"
        await s.at(T0 + 2 * HOUR)
        assert await s.started() == [SECOND] and (await s.describe()).info.action_count == 1


async def test_a_late_delete_leaves_the_next_one() -> None:
    async with scheduled() as s:
        await s.create()
        s.control.conflicts.append(Elsewhere(s).make_anew)
        await s.call("DeleteSchedule", r.DeleteScheduleRequest(schedule_id="s"))
        assert (await s.describe()).schedule.spec.intervals[0].every == 2 * HOUR
        await s.at(T0 + 2 * HOUR)
        assert await s.started() == [SECOND]


async def test_an_order_that_stood_still_is_for_the_one_that_is_there_then() -> None:
    async with scheduled() as s:
        await s.create()
        s.control.conflicts.append(Elsewhere(s).make_anew)
        await s.patch(pause="enough")
        there = (await s.describe()).schedule
        assert there.state.note == "enough" and there.spec.intervals[0].every == 2 * HOUR


async def test_a_conflict_token_is_of_one_incarnation() -> None:
    async with scheduled() as s:
        token = (await s.create()).conflict_token
        update = r.UpdateScheduleRequest(schedule_id="s", schedule=schedule(), conflict_token=token)
        s.control.conflicts.append(Elsewhere(s).make_anew)
        with pytest.raises(ConflictTokenMismatch):
            await s.call("UpdateSchedule", update)
        with pytest.raises(ConflictTokenMismatch):
            await s.call("UpdateSchedule", update)
        assert (await s.describe()).schedule.spec.intervals[0].every == 2 * HOUR


async def test_what_became_of_the_runs_of_one_is_not_told_to_the_next_one() -> None:
    """A run fails while it is being terminated for the next one: nobody's failure but that schedule's."""
    async with scheduled() as s:
        await s.create(schedule=schedule(policy=Overlap.TERMINATE_OTHER, pause_on_failure=True))
        await s.at(T0 + HOUR)

        async def deaf(namespace: str, id: str, ends: Any) -> None:
            return None

        async def nothing() -> None:
            return None

        async def fails() -> None:
            await s.finish(fails="no paper")

        async def made_anew() -> None:
            await Elsewhere(s).make_anew(pause_on_failure=True)

        s.engine.outside_waiters.register("schedule", deaf)
        s.control.conflicts.append(fails)
        s.control.before_reads += [nothing, made_anew]
        await s.at(T0 + 2 * HOUR)
        assert (await s.driver.describe(FIRST)).info.status is Status.FAILED
        there = await s.describe()
        assert there.schedule.spec.intervals[0].every == 2 * HOUR and not there.schedule.state.paused


class Registry:
    """A process with namespaces on the store of another one. ``control``: where it stands still."""

    def __init__(self, s: Scheduled, control: FaultyControl) -> None:
        self.control = control
        self.namespaces = Namespaces(control, s.clock, SystemIds())
        self.removal = NamespaceRemoval(
            self.namespaces, control, ControlWakeUps(control), s.engine, s.clock, settle=timedelta(0)
        )

    async def register(self) -> str:
        return (await self.namespaces.register(r.RegisterNamespaceRequest(namespace="shop"))).id

    async def delete(self) -> None:
        async def is_used(namespace: str) -> bool:
            return False

        await self.namespaces.delete(r.DeleteNamespaceRequest(namespace="shop", force=True), is_used)

    async def remove(self) -> None:
        await self.removal.woken("", "shop", self.namespaces.clock.now())

    async def make_anew(self) -> str:
        await self.delete()
        await self.remove()
        return await self.register()


async def test_a_late_change_of_a_namespace_is_made_to_the_one_that_is_there_then() -> None:
    async with scheduled() as s:
        late, elsewhere = Registry(s, FaultyControl(s.backend.control)), Registry(s, FaultyControl(s.backend.control))
        first = await late.register()
        made: list[str] = []

        async def made_anew() -> None:
            made.append(await elsewhere.make_anew())

        late.control.conflicts.append(made_anew)
        await late.namespaces.update(r.UpdateNamespaceRequest(namespace="shop", description="of books"))
        found = (await elsewhere.namespaces.describe(r.DescribeNamespaceRequest(namespace="shop"))).info
        assert [found.id] == made != [first] and found.description == "of books"


@pytest.mark.parametrize("write", ["put", "delete"])
async def test_a_late_removal_leaves_the_next_namespace_of_the_name(write: str) -> None:
    """Its last write, and the one by which it would go on; and this process knows what is there."""
    async with scheduled() as s:
        late, elsewhere = Registry(s, FaultyControl(s.backend.control)), Registry(s, FaultyControl(s.backend.control))
        await late.register()
        await late.delete()
        if write == "put":
            late.removal._settle = HOUR

        async def made_anew() -> None:
            await elsewhere.remove()
            await elsewhere.register()
            await elsewhere.namespaces.deprecate(r.DeprecateNamespaceRequest(namespace="shop"))
            await late.namespaces.load()

        late.control.conflicts.append(made_anew)
        await late.remove()
        for process in (late, elsewhere):
            assert process.namespaces.get("shop").state is NamespaceState.DEPRECATED
            assert process.namespaces.is_registered("shop")
        assert records.decode((await _stored(s)).value).state is NamespaceState.DEPRECATED


async def test_a_removal_that_stood_still_deletes_nothing_of_the_next_namespace() -> None:
    """Neither workflows nor records, though it lists those of the next one."""
    async with scheduled() as s:
        late, elsewhere = Registry(s, FaultyControl(s.backend.control)), Registry(s, FaultyControl(s.backend.control))
        await late.register()
        await late.delete()
        engine = s.engine

        class Late:
            """The engine, behind a pause."""

            async def scan_workflows(self, request: r.ScanWorkflowsRequest) -> r.ScanWorkflowsResponse:
                if has_activities(request.namespace):
                    return await engine.scan_workflows(request)
                await elsewhere.remove()
                await elsewhere.register()
                await engine.start_workflow(
                    r.StartWorkflowRequest(namespace="shop", workflow_id="w", workflow_type="t", task_queue="q")
                )
                return await engine.scan_workflows(request)

            async def delete_workflow(self, request: r.DeleteWorkflowRequest) -> r.DeleteWorkflowResponse:
                return await engine.delete_workflow(request)

            async def erase_archive(self, namespace: str) -> bool:
                return await engine.erase_archive(namespace)

        late.removal._workflows = Late()
        await late.remove()
        page = await engine.list_workflows(r.ListWorkflowsRequest(namespace="shop"))
        assert [info.execution.workflow_id for info in page.executions] == ["w"]

        await elsewhere.delete()
        wake_ups = ControlWakeUps(late.control)

        async def of_no_interest(namespace: str, id: str, due_at: datetime) -> None: ...

        wake_ups.register("thing", of_no_interest)
        removal = NamespaceRemoval(late.namespaces, late.control, wake_ups, engine, s.clock, settle=timedelta(0))
        await elsewhere.removal._remove_some(await _stored(s), Removal())
        known = await _stored(s)
        await elsewhere.remove()
        await elsewhere.register()
        thing = await s.backend.control.put(ControlRecord("thing", "shop", "t", 1, b""))
        await removal._remove_some(known, Removal())
        assert await s.backend.control.get("thing", "shop", "t") == thing


async def _stored(s: Scheduled) -> ControlRecord:
    record = await s.backend.control.get("namespace", "", "shop")
    assert record is not None
    return record
