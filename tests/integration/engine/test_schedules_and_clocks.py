"""Schedules on clocks that go back, and beside others of the same id: no wake-up is lost, nothing comes back."""

import asyncio
from datetime import timedelta
from typing import Any

from msgspec.structs import replace
from stepwell.api import requests as r
from stepwell.api.payloads import Payload
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


async def test_a_long_jitter_costs_nothing_while_it_is_paused() -> None:
    """Nine years of every second are behind it, each of which might have been to come."""
    async with scheduled() as s:
        jittered = schedule(every=timedelta(seconds=1), state=ScheduleState(paused=True))
        spec = replace(jittered.spec, jitter=timedelta(days=3_650))
        await s.create(schedule=replace(jittered, spec=spec))
        s.clock.time = now = T0 + timedelta(days=3_285)
        described = await s.describe()
        assert all(now < time <= now + timedelta(seconds=11) for time in described.info.future_action_times)
        changed = replace(jittered, spec=replace(spec, jitter=timedelta(days=3_000)), state=ScheduleState())
        await s.call("UpdateSchedule", r.UpdateScheduleRequest(schedule_id="s", schedule=changed))
        await s.at(now + timedelta(seconds=3))
        assert (await s.describe()).info.action_count == 1


async def test_a_page_of_large_schedules_ends_early() -> None:
    async with scheduled() as s:
        for number in range(30):
            await s.create(f"s{number:02d}", memo={"large": Payload(data=b"x" * 120_000)})
        sizes, token, names = [], b"", []
        while token or not names:
            page = await s.call("ListSchedules", r.ListSchedulesRequest(page_size=25, next_page_token=token))
            token = page.next_page_token
            sizes.append(len(page.schedules))
            names += [entry.schedule_id for entry in page.schedules]
        assert names == [f"s{number:02d}" for number in range(30)] and sizes == [17, 13]


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
