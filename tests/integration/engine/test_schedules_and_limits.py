"""What schedules start is held to what callers are held to."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from stepwell.api import requests as r
from stepwell.api.enums import ScheduleOverlapPolicy as Overlap
from stepwell.api.errors import InvalidArgument
from stepwell.api.namespaces import NamespaceLimits
from stepwell.api.payloads import Payload

from tests.support.scheduled import HOUR, T0, Scheduled, schedule, scheduled

SECOND = timedelta(seconds=1)


async def limit(s: Scheduled, **limits: Any) -> None:
    request = r.UpdateNamespaceRequest(namespace="default", limits=NamespaceLimits(**limits))
    await s.engine.namespaces.update(request)


async def test_starts_above_the_rate_of_the_namespace_wait_and_are_counted_once() -> None:
    async with scheduled() as s:
        await limit(s, starts_per_second=1.0)
        for number in range(5):
            policy = Overlap.ALLOW_ALL if number else Overlap.SKIP
            action = {"workflow_id": f"report-{number}"}
            await s.create(f"s{number}", schedule=schedule(policy=policy, action=action))
        await s.at(T0 + HOUR)
        assert len(await s.started()) == 2, "as many as callers may start at once"
        for second in range(1, 9):
            await s.at(T0 + HOUR + second * SECOND)
        assert len(await s.started()) == 5, "none is lost"
        infos = [(await s.describe(f"s{number}")).info for number in range(5)]
        assert [info.rate_delayed for info in infos].count(1) == 3 and sum(info.rate_delayed for info in infos) == 3
        assert sum(info.action_count for info in infos) == 5


async def test_a_trigger_that_finds_starts_left_is_not_counted_as_late() -> None:
    async with scheduled() as s:
        await s.create(initial_patch=r.SchedulePatch(trigger_immediately=r.TriggerImmediatelyRequest()))
        await s.fire()
        info = (await s.describe()).info
        assert (info.action_count, info.rate_delayed, info.start_refused) == (1, 0, 0)


async def test_what_is_above_the_payloads_of_the_namespace_is_refused_and_says_why() -> None:
    """The limit was lowered when the schedule was there; it goes on when it is raised."""
    async with scheduled() as s:
        await s.create(schedule=schedule(policy=Overlap.ALLOW_ALL, action={"input": (Payload(data=b"x" * 2_001),)}))
        await limit(s, max_payload_bytes=2_000)
        await s.at(T0 + HOUR)
        info = (await s.describe()).info
        assert (info.action_count, info.start_refused, info.buffer_dropped) == (0, 1, 0)
        assert info.last_refusal.startswith("input has 2001 bytes, above the limit of 2000 of namespace 'default'")
        await limit(s)
        await s.at(T0 + 2 * HOUR)
        assert (await s.describe()).info.action_count == 1


@pytest.mark.parametrize("name", ["StepwellScheduledById", "StepwellChangeVersion", "StepwellSomething"])
async def test_what_the_system_sets_on_runs_is_refused_of_others(name: str) -> None:
    """Else a run would be found as one that a schedule has started."""
    mine = {name: Payload(metadata={"encoding": "json/plain", "type": "Keyword"}, data=b'"mine"')}
    start = r.StartWorkflowRequest(
        namespace="n", workflow_id="w", workflow_type="t", task_queue="q", search_attributes=mine
    )
    given = schedule()
    action = msgspec.structs.replace(given.action.start_workflow, search_attributes=mine)
    given = msgspec.structs.replace(given, action=msgspec.structs.replace(given.action, start_workflow=action))
    async with scheduled() as s:
        for refused in (
            s.engine.start_workflow(start),
            s.create(schedule=given),
            s.create(search_attributes=mine),
        ):
            with pytest.raises(InvalidArgument, match=f"'{name}' is one that the system itself sets"):
                await refused
        assert await s.started() == []
