"""Times, calendars and intervals as people write them, and what changes when some are given."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import click
import pytest
from stepwell.api.schedules import (
    ScheduleCalendarSpec,
    ScheduleIntervalSpec,
    SchedulePolicies,
    ScheduleRange,
    ScheduleSpec,
    ScheduleState,
)
from stepwell.cli.schedule_options import (
    MOMENT,
    Calendar,
    Interval,
    names_times,
    policies_of,
    spec_of,
    state_of,
)
from stepwell.cli.schedule_text import calendar_text, times_text, zone_name, zone_of

NOTHING: dict[str, Any] = {
    **dict.fromkeys(("crons", "intervals", "calendars", "skip"), ()),
    **dict.fromkeys(("start_time", "end_time", "jitter", "time_zone", "note", "remaining_actions", "overlap_policy")),
    **dict.fromkeys(("concurrency_limit", "catchup_window", "pause_on_failure", "keep_original_workflow_id")),
    "catch_up_on_unpause": None,
}


def test_moments() -> None:
    moment = MOMENT.convert("2026-12-24T18:00:00+01:00", None, None)
    assert moment == datetime(2026, 12, 24, 18, tzinfo=timezone(timedelta(hours=1))) and moment.tzinfo is UTC
    assert MOMENT.convert("2026-12-24", None, None) == datetime(2026, 12, 24, tzinfo=UTC)
    now = datetime.now(UTC)
    assert abs(MOMENT.convert("now", None, None) - now) < timedelta(minutes=1)
    assert abs(MOMENT.convert("-3d", None, None) - now + timedelta(days=3)) < timedelta(minutes=1)
    assert abs(MOMENT.convert("+1h30m", None, None) - now - timedelta(minutes=90)) < timedelta(minutes=1)
    for wrong in ("", "yesterday", "25:00", "+", "+x", "+9999999d", "2026-13-01"):
        with pytest.raises(click.BadParameter):
            MOMENT.convert(wrong, None, None)


def test_intervals() -> None:
    assert Interval().convert("90m", None, None) == ScheduleIntervalSpec(every=timedelta(minutes=90))
    with_offset = ScheduleIntervalSpec(every=timedelta(hours=1), offset=timedelta(minutes=10))
    assert Interval().convert("1h/10m", None, None) == with_offset
    assert times_text(ScheduleSpec(intervals=(with_offset,), cron_expressions=("@daily",))) == [
        'cron "@daily"',
        "every 1h + 10m",
    ]
    for wrong in ("", "hourly", "1h/", "1h/x"):
        with pytest.raises(click.BadParameter):
            Interval().convert(wrong, None, None)


def test_calendars() -> None:
    made = Calendar().convert(
        '{"hour": "9-17/2,20", "minute": 30, "day_of_week": "MON-fri", "comment": "c"}', None, None
    )
    assert made == ScheduleCalendarSpec(
        hour=(ScheduleRange(9, 17, 2), ScheduleRange(20)),
        minute=(ScheduleRange(30),),
        day_of_week=(ScheduleRange(1, 5),),
        comment="c",
    )
    assert calendar_text(made) == "minute 30, hour 9-17/2,20, day_of_week 1-5 (c)"
    assert calendar_text(ScheduleCalendarSpec()) == "every day at midnight"
    made = Calendar().convert('{"month": "January,6/3", "second": "*/15", "year": "2027"}', None, None)
    assert made.month == (ScheduleRange(1), ScheduleRange(6, 12, 3))
    assert made.second == (ScheduleRange(0, 59, 15),) and made.year == (ScheduleRange(2027),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hour=1", "no calendar such as"),
        ('{"hours": "1"}', "has no 'hours'; it has second, minute"),
        ('{"hour": [1]}', "no calendar such as"),
        ('{"hour": "x"}', "hour 'x' is no number"),
        ('{"month": "x"}', "none of jan, feb"),
        ('{"hour": "1-"}', "no list of numbers and ranges"),
        ('{"hour": "1..2"}', "no list of numbers and ranges"),
        ('{"hour": ""}', "no list of numbers and ranges"),
    ],
)
def test_what_is_no_calendar(text: str, said: str) -> None:
    with pytest.raises(click.BadParameter, match=said):
        Calendar().convert(text, None, None)


def test_what_is_not_given_stays() -> None:
    before = ScheduleSpec(
        cron_expressions=("@daily",), time_zone_name="Europe/Rome", time_zone_data=b"x", jitter=timedelta(seconds=5)
    )
    assert spec_of(NOTHING, before) == before and names_times(before) and not names_times(ScheduleSpec())
    hourly = (ScheduleIntervalSpec(every=timedelta(hours=1)),)
    changed = spec_of({**NOTHING, "intervals": hourly, "time_zone": "UTC"}, before)
    assert changed == ScheduleSpec(intervals=hourly, time_zone_name="UTC", jitter=timedelta(seconds=5))
    rules = SchedulePolicies(pause_on_failure=True, concurrency_limit=3)
    assert policies_of(NOTHING, rules) == rules
    assert policies_of({**NOTHING, "pause_on_failure": False}, rules) == SchedulePolicies(concurrency_limit=3)
    state = ScheduleState(note="n", paused=True, limited_actions=True, remaining_actions=2)
    assert state_of(NOTHING, state) == state
    assert state_of({**NOTHING, "remaining_actions": 0}, state) == ScheduleState(note="n", paused=True)


def test_the_zone_is_that_of_the_schedule_or_of_its_cron_strings() -> None:
    by_cron = ScheduleSpec(cron_expressions=("@hourly", "CRON_TZ=Europe/Rome 0 9 * * *"))
    assert zone_name(by_cron) == "Europe/Rome" and str(zone_of(by_cron)) == "Europe/Rome"
    assert str(zone_of(ScheduleSpec(time_zone_name="Asia/Kolkata"))) == "Asia/Kolkata"
    assert zone_name(ScheduleSpec()) == "" and zone_of(ScheduleSpec(time_zone_name="UTC")) is None
    for unknown in (ScheduleSpec(time_zone_name="Europe/Atlantis"), ScheduleSpec(time_zone_data=b"x")):
        assert zone_of(unknown) is None
