"""AC-03: which timeouts an activity really has."""

from datetime import timedelta

import msgspec
import pytest
from stepwell.api import limits

from stepwell_server.history.timeouts import BadTimeout, check_duration, fill_in
from tests.support.history_run import activity, seconds

NAMES = ("schedule_to_close_timeout", "schedule_to_start_timeout", "start_to_close_timeout", "heartbeat_timeout")


@pytest.mark.parametrize(
    ("asked", "run", "filled"),
    [
        ((None, None, 10, None), None, (None, None, 10, None)),
        ((None, None, 10, None), 60, (60, 60, 10, None)),
        ((None, None, 100, None), 60, (60, 60, 60, None)),
        ((30, None, None, None), None, (30, 30, 30, None)),
        ((30, None, 50, None), None, (30, 30, 30, None)),
        ((30, 40, 5, 9), None, (30, 30, 5, 5)),
        ((30, 4, 5, 2), 60, (30, 4, 5, 2)),
        ((300, 200, 100, None), 60, (60, 60, 60, None)),
        ((None, 200, 10, None), None, (None, 200, 10, None)),
    ],
)
def test_fill_in_and_caps(asked, run, filled):
    values = {name: None if value is None else seconds(value) for name, value in zip(NAMES, asked, strict=True)}
    timeouts = fill_in(activity(**values), None if run is None else seconds(run))
    assert [None if value is None else value.total_seconds() for value in msgspec.structs.astuple(timeouts)] == list(
        filled
    )


def test_one_of_two_is_required():
    with pytest.raises(BadTimeout, match="neither start_to_close_timeout nor schedule_to_close_timeout"):
        fill_in(activity(start_to_close_timeout=None), seconds(60))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [timedelta(0), seconds(-1), limits.MAX_DURATION + seconds(1)])
def test_out_of_range(name, value):
    with pytest.raises(BadTimeout, match=name):
        fill_in(activity(**{name: value}), None)


def test_a_refusal_names_the_activity_and_says_the_time_as_people_read_it():
    with pytest.raises(
        BadTimeout, match=r"^activity '.+' \(id '.+'\): start_to_close_timeout is 9000 days; it must be"
    ):
        fill_in(activity(start_to_close_timeout=timedelta(days=9000)), None)
    with pytest.raises(BadTimeout, match=r"^x is 9000 days, 0:00:01; it must be above zero and at most 3650 days"):
        check_duration("x", timedelta(days=9000, seconds=1))
    with pytest.raises(BadTimeout, match=r"^x is -1.5 s; "):
        check_duration("x", seconds(-1.5))


def test_check_duration_takes_none_and_the_limit():
    check_duration("x", None)
    check_duration("x", limits.MAX_DURATION)
