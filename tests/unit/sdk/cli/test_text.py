"""Records as text for people."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stepwell.api.common import RetryPolicy
from stepwell.api.enums import TimeoutType
from stepwell.api.events import ActivityTaskScheduled, ActivityTaskStarted
from stepwell.api.failures import ActivityFailureInfo, ApplicationFailureInfo, Failure, TimeoutFailureInfo
from stepwell.api.payloads import Payload
from stepwell.cli.text import (
    attributes,
    distance_text,
    failure_text,
    failure_tree,
    local_text,
    payload_text,
    safe,
    shorten,
    span_text,
    value_text,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@given(st.text(st.characters(codec="utf-8")))
def test_nothing_steers_the_terminal(text: str) -> None:
    shown = safe(text)
    assert all(character in "\n\t" or ord(character) >= 32 for character in shown)
    assert not any(127 <= ord(character) < 160 or "\u202a" <= character <= "\u202e" for character in shown)


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(milliseconds=1), "1ms"),
        (timedelta(microseconds=43_210), "43.2ms"),
        (timedelta(microseconds=999_400), "999ms"),
        (timedelta(microseconds=999_900), "1s"),
        (timedelta(seconds=1.5), "1.5s"),
        (timedelta(seconds=59.99), "60s"),
        (timedelta(seconds=60), "1m"),
        (timedelta(minutes=65, seconds=3), "1h 5m"),
        (timedelta(days=14), "14d"),
        (timedelta(days=1, minutes=3), "1d 3m"),
    ],
)
def test_spans(span: timedelta, text: str) -> None:
    assert span_text(span) == text


def test_distances() -> None:
    assert distance_text(NOW + timedelta(seconds=3), NOW) == "in 3s"
    assert distance_text(NOW - timedelta(hours=2), NOW) == "2h ago"
    assert distance_text(None, NOW) == ""


def test_payloads() -> None:
    assert payload_text(Payload(metadata={"encoding": "json/plain"}, data='{"ü":\n1}'.encode())) == '{"ü": 1}'
    assert payload_text(Payload(metadata={"encoding": "binary/null"})) == "null"
    assert payload_text(Payload(metadata={"encoding": "binary/plain"}, data=b"123")) == "<binary/plain, 3 bytes>"
    assert payload_text(Payload()) == "<no encoding, 0 bytes>"
    assert payload_text(Payload(metadata={"encoding": "json/plain"}, data=b"\xff\x1b")) == "\\xff\\x1b"
    assert value_text(Payload(metadata={"encoding": "json/plain"}, data=b'{"a":[1]}')) == '{\n  "a": [\n    1\n  ]\n}'
    assert value_text(Payload(metadata={"encoding": "json/plain"}, data=b"{broken")) == "{broken"


def test_failures_name_kind_message_and_causes() -> None:
    failure = Failure(
        message="activity failed",
        info=ActivityFailureInfo(scheduled_event_id=5, activity_type="charge", activity_id="1"),
        cause=Failure(
            info=TimeoutFailureInfo(timeout_type=TimeoutType.START_TO_CLOSE),
            cause=Failure(
                message="card\ndeclined",
                stack_trace="line 1\nline 2\n",
                info=ApplicationFailureInfo(failure_type="Declined"),
            ),
        ),
    )
    assert failure_text(failure) == (
        "activity charge: activity failed <- timeout START_TO_CLOSE <- Declined: card declined"
    )
    assert failure_tree(failure).splitlines() == [
        "activity charge: activity failed",
        "caused by timeout START_TO_CLOSE",
        "caused by Declined: card",
        "declined",
        "  line 1",
        "  line 2",
    ]


def test_long_values_are_cut_with_their_length() -> None:
    assert shorten("x" * 10, 5) == "xxxxx… (10 characters)"
    assert shorten("x" * 10, 0) == "x" * 10


def test_attributes_that_say_nothing_are_left_out() -> None:
    event = ActivityTaskScheduled(
        activity_id="1",
        activity_type="charge",
        task_queue="q",
        input=(Payload(metadata={"encoding": "json/plain"}, data=b"1"),),
        start_to_close_timeout=timedelta(seconds=5),
        workflow_task_completed_event_id=4,
        retry_policy=RetryPolicy(),
    )
    assert attributes(event, hidden=frozenset({"task_queue"})) == [
        ("activity_id", "1"),
        ("activity_type", "charge"),
        ("input", "(1)"),
        ("start_to_close_timeout", "5s"),
        ("workflow_task_completed_event_id", "4"),
    ]


def test_the_start_of_an_activity_shows_when_its_attempt_began() -> None:
    began = datetime(2026, 1, 5, 9, tzinfo=UTC)
    assert attributes(ActivityTaskStarted(scheduled_event_id=5, started_time=began)) == [
        ("scheduled_event_id", "5"),
        ("started_time", "2026-01-05 09:00:00.000Z"),
    ]


@pytest.mark.parametrize(
    ("time", "zone", "said"),
    [
        (datetime(2026, 1, 5, 8, tzinfo=UTC), ZoneInfo("Europe/Rome"), "2026-01-05 09:00:00.000+01:00"),
        (datetime(2026, 7, 5, 8, tzinfo=UTC), ZoneInfo("Europe/Rome"), "2026-07-05 10:00:00.000+02:00"),
        (datetime(2026, 7, 5, 23, tzinfo=UTC), ZoneInfo("Asia/Kolkata"), "2026-07-06 04:30:00.000+05:30"),
        (datetime(2026, 7, 5, 8, tzinfo=UTC), None, "2026-07-05 08:00:00.000Z"),
        (datetime.max.replace(tzinfo=UTC), ZoneInfo("Europe/Rome"), "9999-12-31 23:59:59.999Z"),
        (None, ZoneInfo("Europe/Rome"), ""),
    ],
)
def test_times_are_told_as_clocks_of_a_zone_say_them(time: datetime | None, zone: ZoneInfo | None, said: str) -> None:
    assert local_text(time, zone) == said
