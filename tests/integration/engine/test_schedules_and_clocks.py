"""Schedules on clocks that go back, and beside others of the same id: no wake-up is lost, nothing comes back."""

import asyncio
from datetime import timedelta
from typing import Any

from stepwell.api import requests as r
from stepwell.api.schedules import ScheduleState

from tests.support.scheduled import HOUR, T0, schedule, scheduled

FIRST = "report-2026-11-30T13:00:00Z"


async def test_a_wake_up_that_came_while_it_was_paused_is_not_counted_on_by_a_clock_that_is_behind() -> None:
    async with scheduled() as s:
        await s.create()
        await s.patch(pause="for a while")
        await s.at(T0 + HOUR)
        s.clock.time = T0 + timedelta(minutes=30)
        await s.patch(unpause="go on")
        await s.at(T0 + HOUR)
        assert await s.started() == [FIRST]


async def test_a_step_does_not_write_over_a_schedule_that_was_deleted_and_created_anew() -> None:
    """Both are at version 1, the one that the step has read and the new one."""
    async with scheduled() as s:
        await s.create()
        s.clock.time = T0 + HOUR
        ((key, due_at),) = await s.due()
        anew: list[asyncio.Task[Any]] = []

        async def delete_and_create() -> None:
            await s.call("DeleteSchedule", r.DeleteScheduleRequest(schedule_id="s"))
            await s.create(schedule=schedule(every=5 * HOUR, state=ScheduleState(note="the new one")))

        async def meanwhile() -> None:
            anew.append(asyncio.create_task(delete_and_create()))
            await asyncio.wait(anew, timeout=0.5)

        s.control.conflicts = [meanwhile]
        await s.engine.fire(key, due_at)
        await asyncio.gather(*anew)
        found = (await s.describe()).schedule
        assert (found.state.note, found.spec.intervals[0].every) == ("the new one", 5 * HOUR)
