"""What schedules tell: what was started, left out, missed, and how late; once, and nothing that was somebody's wish."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from stepwell.api import limits
from stepwell.api import requests as r
from stepwell.api.enums import ScheduleCatchUpPolicy
from stepwell.api.enums import ScheduleOverlapPolicy as Overlap
from stepwell.api.errors import Unavailable
from stepwell.api.schedules import ScheduleState

from stepwell_server.common import metric_names as names
from stepwell_server.common.metrics import Gathered
from tests.support.scheduled import HOUR, T0, Scheduled, schedule, scheduled

SECOND = timedelta(seconds=1)


class Told:
    def __init__(self, s: Scheduled, metrics: Gathered) -> None:
        self.s = s
        self._metrics = metrics

    def of_schedules(self) -> dict[str, tuple[float, ...]]:
        """Since the last time."""
        return {told.name: told.values for told in self._metrics.take() if told.name.startswith("schedule_")}

    async def late(self, hours: int, by: timedelta) -> None:
        self.s.clock.time = T0 + hours * HOUR + by
        await self.s.fire()


@asynccontextmanager
async def told_by() -> AsyncIterator[Told]:
    metrics = Gathered()
    async with scheduled(metrics=metrics) as s:
        yield Told(s, metrics)


async def test_what_is_started_and_how_late() -> None:
    async with told_by() as told:
        await told.s.create(schedule=schedule(policy=Overlap.ALLOW_ALL))
        assert told.of_schedules() == {}
        await told.late(1, 3 * SECOND)
        assert told.of_schedules() == {names.SCHEDULE_STARTED: (1.0,), names.SCHEDULE_DELAY: (3_000.0,)}
        await told.s.fire()
        assert told.of_schedules() == {}, "nothing is told twice"


async def test_what_the_overlap_policy_leaves_out_or_lets_wait_is_not_late() -> None:
    async with told_by() as told:
        await told.s.create()
        await told.late(1, SECOND)
        told.of_schedules()
        await told.late(2, SECOND)
        assert told.of_schedules() == {names.SCHEDULE_SKIPPED: (1.0,)}
        await told.s.create("waits", schedule=schedule(policy=Overlap.BUFFER_ONE, action={"workflow_id": "waits"}))
        await told.late(3, SECOND)
        await told.late(4, SECOND)
        found = told.of_schedules()
        assert found[names.SCHEDULE_STARTED] == (1.0,) and found[names.SCHEDULE_DELAY] == (1_000.0,)
        while (await told.s.finish()) != "waits-2026-11-30T15:00:00Z":
            pass
        assert told.of_schedules() == {names.SCHEDULE_STARTED: (1.0,)}, "it waited for the run before"


async def test_what_was_noticed_too_late_and_what_came_late_after_an_outage() -> None:
    async with told_by() as told:
        await told.s.create(schedule=schedule(policy=Overlap.ALLOW_ALL, catchup_window=90 * 60 * SECOND))
        await told.late(3, SECOND)
        found = told.of_schedules()
        assert found[names.SCHEDULE_MISSED] == (1.0,) and found[names.SCHEDULE_STARTED] == (2.0,)
        assert sorted(found[names.SCHEDULE_DELAY]) == [1_000.0, 3_601_000.0]


async def test_orders_and_what_a_pause_held_up_are_not_late() -> None:
    async with told_by() as told:
        state = ScheduleState(paused=True)
        policies = {"catch_up_on_unpause": ScheduleCatchUpPolicy.ALL, "state": state}
        await told.s.create(schedule=schedule(policy=Overlap.ALLOW_ALL, **policies))
        told.s.clock.time = T0 + 2 * HOUR + SECOND
        await told.s.patch(unpause="go on")
        assert told.of_schedules() == {names.SCHEDULE_STARTED: (2.0,)}
        await told.s.patch(trigger_immediately=r.TriggerImmediatelyRequest())
        backfill = r.BackfillRequest(start_time=T0 - 3 * HOUR, end_time=T0 - HOUR)
        await told.s.patch(backfill=(backfill,))
        await told.s.fire()
        assert told.of_schedules() == {names.SCHEDULE_STARTED: (3.0,)}


async def test_a_start_that_is_tried_again_is_as_late_as_it_is() -> None:
    """And a process that dies between the write and the start leaves that to the next one."""
    async with told_by() as told:
        await told.s.create(schedule=schedule(policy=Overlap.ALLOW_ALL))
        told.s.clock.time = T0 + HOUR + SECOND
        told.s.control.dies = 2  # behind the write that says what is to be started
        ((key, fire_at),) = await told.s.due()
        with pytest.raises(Unavailable):
            await told.s.engine.fire(key, fire_at)
        assert told.of_schedules() == {}
        await told.late(1, 20 * SECOND)
        assert told.of_schedules() == {names.SCHEDULE_STARTED: (1.0,), names.SCHEDULE_DELAY: (20_000.0,)}


async def test_starts_that_the_namespace_has_to_wait_for() -> None:
    async with told_by() as told:
        for number in range(limits.SCHEDULE_STARTS_PER_SECOND + 2):
            await told.s.create(f"s-{number}", schedule=schedule(action={"workflow_id": f"w-{number}"}))
        await told.late(1, timedelta(0))
        found = told.of_schedules()
        assert found[names.SCHEDULE_RATE_LIMITED] == (2.0,)
        await told.late(1, 5 * SECOND)
        found = told.of_schedules()
        assert found == {names.SCHEDULE_STARTED: (2.0,), names.SCHEDULE_DELAY: (5_000.0, 5_000.0)}
