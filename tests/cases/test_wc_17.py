"""WC-17: what changes between a time and its jitter leaves the run where it was announced; a pause over it does not
make it up; behind an outage only what is within the window runs."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from stepwell.api import requests as r
from stepwell.api.enums import ScheduleOverlapPolicy as Overlap
from stepwell.api.schedules import ScheduleState

from tests.support.scheduled import T0, Scheduled, schedule, scheduled

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
NOMINAL = T0 + 5 * MINUTE
RUN = "report-2026-11-30T12:05:00Z"
EVERY_FIVE = schedule(5 * MINUTE)
JITTERED = msgspec.structs.replace(EVERY_FIVE, spec=msgspec.structs.replace(EVERY_FIVE.spec, jitter=MINUTE))

Change = Callable[[Scheduled], Awaitable[None]]


async def announced(s: Scheduled) -> datetime:
    await s.create(schedule=JITTERED)
    at = (await s.describe()).info.future_action_times[0]
    assert NOMINAL + 2 * SECOND < at < NOMINAL + MINUTE
    await s.at(NOMINAL + SECOND)
    return at


async def the_same_again(s: Scheduled) -> None:
    await s.call("UpdateSchedule", r.UpdateScheduleRequest(schedule_id="s", schedule=(await s.describe()).schedule))


async def another_note(s: Scheduled) -> None:
    noted = msgspec.structs.replace(JITTERED, state=ScheduleState(note="ask Ann"))
    await s.call("UpdateSchedule", r.UpdateScheduleRequest(schedule_id="s", schedule=noted))


async def paused_and_unpaused(s: Scheduled) -> None:
    await s.patch(pause="")
    await s.patch(unpause="")


@pytest.mark.parametrize("change", [the_same_again, another_note, paused_and_unpaused])
async def test_it_happens_once_at_its_announced_time(change: Change) -> None:
    async with scheduled() as s:
        at = await announced(s)
        await change(s)
        await s.at(at - SECOND)
        assert await s.started() == []
        await s.at(at)
        await s.at(at + SECOND)
        assert await s.started() == [RUN]


async def test_a_restart_in_between(tmp_path: Path) -> None:
    async with scheduled(tmp_path / "s.db") as s:
        at = await announced(s)
    async with scheduled(tmp_path / "s.db") as s:
        await s.at(NOMINAL + 2 * SECOND)
        assert await s.started() == []
        await s.at(at)
        assert await s.started() == [RUN]


async def test_a_pause_over_it_leaves_it_out_and_counts_it() -> None:
    async with scheduled() as s:
        at = await announced(s)
        await s.patch(pause="")
        await s.at(at + SECOND)
        await s.patch(unpause="")
        await s.fire()
        info = (await s.describe()).info
        assert (await s.started(), info.missed_paused) == ([], 1)


async def test_behind_an_outage(tmp_path: Path) -> None:
    """22 minutes, with a window of 10."""
    definition = schedule(5 * MINUTE, Overlap.ALLOW_ALL, catchup_window=10 * MINUTE)
    async with scheduled(tmp_path / "s.db") as s:
        await s.create(schedule=definition)
    async with scheduled(tmp_path / "s.db") as s:
        await s.at(T0 + 22 * MINUTE)
        assert await s.started() == ["report-2026-11-30T12:15:00Z", "report-2026-11-30T12:20:00Z"]
        assert (await s.describe()).info.missed_catchup_window == 2
