"""Deadlines as messages: what goes in comes out, what is none is refused by name, delays are whole and never early."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepwell_server.history.commit import ExecutionKey
from stepwell_server.timer_sweeper import buckets, messages
from stepwell_server.timer_sweeper.buckets import Awaited

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
awaited = st.one_of(
    st.builds(Awaited, seq=st.integers(0, 50_000)),
    st.builds(Awaited, run_id=st.uuids().map(str), scheduled_event_id=st.integers(1), version=st.integers(1)),
)


@given(st.text(max_size=9), st.timedeltas(timedelta(0), timedelta(days=6)), awaited)
def test_a_deadline_comes_out_as_it_went_in(workflow_id: str, ahead: timedelta, awaits: Awaited) -> None:
    row = buckets.row(ExecutionKey("shop", workflow_id), NOW + ahead, NOW, awaits)
    assert messages.decode(messages.encode(row)) == row._replace(queued=True)


def test_a_usual_message_is_small() -> None:
    row = buckets.row(ExecutionKey("default", "order-17"), NOW + timedelta(seconds=30), NOW, Awaited(7))
    text = messages.encode(row)
    assert text == (
        '{"v":1,"n":"default","w":"order-17","f":1796040030000000,"p":1796040030000,"a":1796040000000,"s":7}'
    )


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"v":2,"n":"n","w":"w","f":0,"p":0,"a":0}', "{" * 9_000])
def test_what_is_no_deadline_is_refused(text: str) -> None:
    with pytest.raises(messages.BadMessage, match="a message of the timer queue"):
        messages.decode(text)


def test_a_time_out_of_range_is_refused() -> None:
    with pytest.raises(messages.BadMessage):
        messages.decode('{"v":1,"n":"n","w":"w","f":999999999999999999999999,"p":0,"a":0}')


@given(st.integers(-5_000, 2_000_000))
def test_delays_are_within_a_second_never_early_and_within_the_limit(ahead_ms: int) -> None:
    row = buckets.row(ExecutionKey("n", "w"), NOW, NOW)
    delay = messages.delay_of(row, row.place_ms - ahead_ms)
    assert 0 <= delay <= 900
    if 0 <= ahead_ms <= 900_000:
        assert ahead_ms <= 1_000 * delay < ahead_ms + 1_000
