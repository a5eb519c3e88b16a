"""A schedule whose parts are of other kinds than they should be is refused where it is written, with the field."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from stepwell.client import (
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleBackfill,
    ScheduleCalendarSpec,
    ScheduleRange,
    ScheduleSpec,
)
from stepwell.testing import DevEnvironment

ANY: Any = "anything"
HOURLY: Any = timedelta(hours=1)
ONE: Any = ScheduleCalendarSpec()
NINE: Any = 9
BACKFILL: Any = ScheduleBackfill(datetime(2027, 3, 1, tzinfo=UTC), datetime(2027, 3, 2, tzinfo=UTC))
ACTION = ScheduleActionStartWorkflow("w", id="w", task_queue="q")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (ScheduleSpec(), r"schedule is a Schedule\(action=…, spec=…\), not ScheduleSpec"),
        (Schedule(ACTION, ScheduleSpec(intervals=[HOURLY])), "intervals is a list of ScheduleIntervalSpec, such"),
        (Schedule(ACTION, ScheduleSpec(calendars=ONE)), "calendars is a list of ScheduleCalendarSpec"),
        (Schedule(ACTION, ScheduleSpec(skip=[ScheduleCalendarSpec(hour=NINE)])), "hour is a list of ScheduleRange"),
        (Schedule(ANY, ScheduleSpec()), "action of a Schedule is a ScheduleAction, not 'anything'"),
        (Schedule(ACTION, ANY), "spec of a Schedule is a ScheduleSpec"),
        (Schedule(ACTION, ScheduleSpec(), policy=ANY), "policy of a Schedule is a SchedulePolicy"),
    ],
)
async def test_wrong_kinds_name_their_field(wrong: Any, said: str) -> None:
    async with await DevEnvironment.start() as environment:
        with pytest.raises(TypeError, match=said):
            await environment.client.create_schedule("s", wrong)


async def test_one_backfill_without_its_list() -> None:
    async with await DevEnvironment.start() as environment:
        with pytest.raises(TypeError, match="backfill is a list of ScheduleBackfill"):
            await environment.client.create_schedule("s", Schedule(ACTION, ScheduleSpec()), backfill=BACKFILL)


async def test_any_sequence_of_the_right_kind_is_taken() -> None:
    hours: Any = (ScheduleRange(hour) for hour in (9, 17))
    async with await DevEnvironment.start() as environment:
        spec = ScheduleSpec(calendars=(ScheduleCalendarSpec(hour=hours),))
        handle = await environment.client.create_schedule("s", Schedule(ACTION, spec))
        assert [each.start for each in (await handle.describe()).schedule.spec.calendars[0].hour] == [9, 17]
