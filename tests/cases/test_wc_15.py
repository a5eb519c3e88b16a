"""WC-15: a daily job in the hour that does not exist, or exists twice. New York puts its clocks forward on 8 March 2026
at 7:00 UTC, and back on 1 November at 6:00 UTC.

The rule (docs/guide.md): what names hours is once a day: a repeated time is the first, a missing one right after the
gap.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from stepwell.api import requests as r
from stepwell.api.enums import ScheduleOverlapPolicy
from stepwell.api.schedules import Schedule
from stepwell.api.schedules import ScheduleSpec as Spec
from stepwell.client import ScheduleSpec

from tests.support.cases import Case
from tests.support.scheduled import Scheduled, schedule, scheduled

NEW_YORK = "America/New_York"
MINUTE = timedelta(minutes=1)


def utc(month: int, day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


GAP = ("30 2 * * *", [utc(3, 6, 7, 30), utc(3, 7, 7, 30), utc(3, 8, 7), utc(3, 9, 6, 30), utc(3, 10, 6, 30)])
REPEATED = (
    "30 1 * * *",
    [utc(10, 30, 5, 30), utc(10, 31, 5, 30), utc(11, 1, 5, 30), utc(11, 2, 6, 30), utc(11, 3, 6, 30)],
)
DAYS = pytest.mark.parametrize(("text", "times"), [GAP, REPEATED], ids=["gap", "repeated"])


@DAYS
async def test_previews_from_before_and_from_inside_agree(case: Case, text: str, times: Sequence[datetime]) -> None:
    handle = case.client.get_schedule_handle("s")
    spec = ScheduleSpec(cron_expressions=[text], time_zone_name=NEW_YORK)
    for start in (times[0] - timedelta(days=1), *(times[2] + each * MINUTE for each in range(-90, 120, 15))):
        shown = [time async for time in handle.matching_times(start, times[-1] + timedelta(hours=1), spec=spec)]
        assert [time for time in shown if time >= times[0]] == [time for time in times if time >= start]


def definition(text: str) -> Schedule:
    spec = Spec(cron_expressions=(text,), time_zone_name=NEW_YORK)
    return msgspec.structs.replace(schedule(policy=ScheduleOverlapPolicy.ALLOW_ALL), spec=spec)


async def started(s: Scheduled) -> list[datetime]:
    return [datetime.fromisoformat(id.removeprefix("report-")) for id in await s.started()]


@DAYS
async def test_what_starts_also_with_a_restart_inside_the_hour(
    tmp_path: Path, text: str, times: Sequence[datetime]
) -> None:
    path, now = tmp_path / "schedules.db", times[1] - timedelta(hours=1)
    changes = [times[2] + each * MINUTE for each in (10, 40, 70)]
    for stop in (*changes, times[3] + timedelta(hours=1)):
        async with scheduled(path) as s:
            s.clock.time = now
            if now < times[1]:
                await s.create(schedule=definition(text))
            while now < stop:
                now += 5 * MINUTE
                await s.at(now)
            found = await started(s)
            last = (await s.describe()).info.recent_actions[-1].schedule_time
        assert found == [time for time in times[1:] if time <= now]
        assert last == found[-1]


@DAYS
async def test_a_backfill_over_the_day_is_of_the_same_times(text: str, times: Sequence[datetime]) -> None:
    async with scheduled() as s:
        s.clock.time = times[-1] + timedelta(days=1)
        await s.create(schedule=definition(text))
        whole = r.BackfillRequest(start_time=times[0], end_time=times[3])
        await s.patch(backfill=(whole,))
        await s.fire()
        assert await started(s) == times[1:4]
