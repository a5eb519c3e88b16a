"""What no store could hold of a schedule is refused before anything is written."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from stepwell.api import requests as r
from stepwell.api.errors import InvalidArgument
from stepwell.api.schedules import ScheduleCalendarSpec, ScheduleIntervalSpec, ScheduleRange, ScheduleSpec

from stepwell_server.frontend import validation_schedules as validation
from tests.support.scheduled import schedule

FIRST = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
LAST = datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=14)))
DAY = datetime(2027, 1, 1, tzinfo=UTC)
HUGE = (ScheduleRange(0, 23, 10**30),)
HOURLY = (ScheduleIntervalSpec(every=timedelta(hours=1)),)


@pytest.mark.parametrize(
    ("spec", "field", "says"),
    [
        ({"calendars": (ScheduleCalendarSpec(hour=HUGE),)}, "calendars[0].hour[0].step", "use"),
        ({"calendars": (ScheduleCalendarSpec(comment="\ud800"),)}, "calendars[0].comment", "not text; remove it"),
        ({"intervals": HOURLY, "start_at": FIRST}, "start_at", "years 1 to 9999"),
        ({"intervals": HOURLY, "end_at": LAST}, "end_at", "years 1 to 9999"),
    ],
)  # fmt: skip
def test_of_a_spec(spec: dict[str, Any], field: str, says: str) -> None:
    request = r.CreateScheduleRequest(
        schedule_id="s", schedule=msgspec.structs.replace(schedule(), spec=ScheduleSpec(**spec))
    )
    with pytest.raises(InvalidArgument) as refused:
        validation.create_schedule(request)
    assert refused.value.details["field"] == f"schedule.spec.{field}" and says in refused.value.message


@pytest.mark.parametrize("time", [FIRST, LAST])
def test_of_a_patch(time: datetime) -> None:
    start, end = min(time, DAY), max(time, DAY)
    for patch in (
        r.SchedulePatch(backfill=(r.BackfillRequest(start_time=start, end_time=end),)),
        r.SchedulePatch(trigger_immediately=r.TriggerImmediatelyRequest(scheduled_time=time)),
    ):
        with pytest.raises(InvalidArgument, match=r"is not in the years 1 to 9999 of UTC; use another time"):
            validation.patch_schedule(r.PatchScheduleRequest(schedule_id="s", patch=patch))
