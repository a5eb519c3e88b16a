"""Failures in their words."""

import pytest
from stepwell.api.enums import TimeoutType
from stepwell.api.failures import ApplicationFailureInfo, Failure, TimeoutFailureInfo

from stepwell_server.temporal_gateway.failures import to_failure


@pytest.mark.parametrize(
    ("kind", "ours", "theirs"),
    [
        (TimeoutType.HEARTBEAT, "heartbeat timeout: not heard from", "activity Heartbeat timeout"),
        (TimeoutType.START_TO_CLOSE, "start-to-close timeout: too long", "activity StartToClose timeout"),
        (TimeoutType.SCHEDULE_TO_START, "schedule-to-start timeout: nobody", "activity ScheduleToStart timeout"),
        (
            TimeoutType.SCHEDULE_TO_CLOSE,
            "schedule-to-close timeout: over",
            "Not enough time to schedule next retry before activity ScheduleToClose timeout, giving up retrying",
        ),
        (TimeoutType.START_TO_CLOSE, "workflow timeout: the run took too long", "workflow timeout"),
    ],
)
def test_timeouts_that_the_server_found_are_in_their_servers_words(kind: TimeoutType, ours: str, theirs: str) -> None:
    found = to_failure(Failure(message=ours, info=TimeoutFailureInfo(timeout_type=kind)))
    assert found is not None and (found.message, found.source) == (theirs, "Server")


def test_what_others_say_stays_as_they_said_it() -> None:
    encoded = Failure(
        message="as it was", source="PythonSDK", info=TimeoutFailureInfo(timeout_type=TimeoutType.HEARTBEAT)
    )
    for failure in (encoded, Failure(message="heartbeat timeout: mine", info=ApplicationFailureInfo())):
        found = to_failure(failure)
        assert found is not None and found.message == failure.message
