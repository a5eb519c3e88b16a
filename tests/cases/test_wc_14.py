"""WC-14: Sunday written as 7.

The rule (docs/guide.md): Sunday is 0, 7 and SUN, also at the end of a range. One that ends before it begins is
refused.
"""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from stepwell.api.enums import ScheduleOverlapPolicy
from stepwell.api.schedules import ScheduleSpec as Spec
from stepwell.client import RPCError, Schedule, ScheduleActionStartWorkflow, ScheduleSpec

from tests.support.cases import QUEUE, Case
from tests.support.scheduled import schedule, scheduled

MONDAY = datetime(2027, 3, 1, tzinfo=UTC)
EVERY_DAY = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
MEANT = {
    "7": {"Sun"},
    "0": {"Sun"},
    "SUN": {"Sun"},
    "0,7": {"Sun"},
    "5-7": {"Fri", "Sat", "Sun"},
    "6-7": {"Sat", "Sun"},
    "1-7": EVERY_DAY,
    "MON-7": EVERY_DAY,
    "*/7": {"Sun"},
}


@pytest.mark.parametrize("days", MEANT)
async def test_a_preview_of_two_weeks(case: Case, days: str) -> None:
    handle = case.client.get_schedule_handle("s")
    spec = ScheduleSpec(cron_expressions=[f"0 12 * * {days}"])
    times = [time async for time in handle.matching_times(MONDAY, MONDAY + timedelta(days=14), spec=spec)]
    assert {f"{time:%a}" for time in times} == MEANT[days]
    assert len(times) == 2 * len(MEANT[days]) and {time.hour for time in times} == {12}


@pytest.mark.parametrize(
    ("days", "says"),
    [
        ("8", r"'0 12 \* \* 8' cannot be read at character 10: day of week 8 is not in 0 to 7"),
        ("7-2", "at character 10: 7-2 ends before it begins; write two ranges"),
    ],
)
async def test_what_no_day_is_is_refused(case: Case, days: str, says: str) -> None:
    action = ScheduleActionStartWorkflow("report", id="report", task_queue=QUEUE)
    with pytest.raises(RPCError, match=says) as refused:
        await case.client.create_schedule("s", Schedule(action, ScheduleSpec(cron_expressions=[f"0 12 * * {days}"])))
    assert refused.value.details["field"] == "schedule.spec.cron_expressions[0]"
    assert [each async for each in await case.client.list_schedules()] == []


@pytest.mark.parametrize("days", ["7", "5-7"])
async def test_it_starts_on_the_days_of_the_preview(days: str) -> None:
    async with scheduled() as s:
        s.clock.time = MONDAY
        definition = schedule(policy=ScheduleOverlapPolicy.ALLOW_ALL)
        await s.create(schedule=msgspec.structs.replace(definition, spec=Spec(cron_expressions=(f"0 12 * * {days}",))))
        for hour in range(14 * 24):
            await s.at(MONDAY + timedelta(hours=hour))
        started = [datetime.fromisoformat(id.removeprefix("report-")) for id in await s.started()]
        assert {f"{time:%a %H}" for time in started} == {f"{day} 12" for day in MEANT[days]}
        assert len(started) == 2 * len(MEANT[days])
