"""Single checks at and around their limits."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stepwell.api.errors import InvalidArgument
from stepwell.api.payloads import Payload

from stepwell_server.frontend import fields


@given(st.text(min_size=1))
def test_an_identifier_is_accepted_exactly_when_it_is_text_without_control_characters(value: str) -> None:
    control = any(ord(character) < 32 or 127 <= ord(character) < 160 for character in value)
    surrogate = any(0xD800 <= ord(character) < 0xE000 for character in value)
    fits = not surrogate and len(value.encode()) <= 40
    if fits and not control:
        fields.identifier("name", value, 40)
    else:
        with pytest.raises(InvalidArgument) as refused:
            fields.identifier("name", value, 40)
        assert refused.value.details["field"] == "name"


@pytest.mark.parametrize("value", ["", "one line", "two\nlines", "a\ttab", "crlf\r\n", "日本"])
def test_text_may_have_lines(value: str) -> None:
    fields.text("reason", value)


@pytest.mark.parametrize("value", ["\x00", "\x1b[31m", "\x7f", "\x9b", "\udfff", "x" * 1_001, "ü" * 501])
def test_text_may_not_steer_terminals_or_be_endless(value: str) -> None:
    with pytest.raises(InvalidArgument, match="reason"):
        fields.text("reason", value)


def test_optional_identifiers() -> None:
    fields.optional_identifier("request_id", "")
    with pytest.raises(InvalidArgument):
        fields.optional_identifier("request_id", "\n")


@pytest.mark.parametrize("value", [None, timedelta(microseconds=1), timedelta(days=3650)])
def test_durations_that_pass(value: timedelta | None) -> None:
    fields.duration("timeout", value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (timedelta(0), "timeout is 0 s; it must be above zero"),
        (timedelta(microseconds=-1), "timeout is -1e-06 s"),
        (timedelta(days=3650, microseconds=1), "above the limit of 3650 days"),
        (timedelta.max, "above the limit"),
    ],
)
def test_durations_that_do_not(value: timedelta, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        fields.duration("timeout", value)


def test_a_wait_may_be_zero_or_longer_than_the_server_waits() -> None:
    fields.wait("timeout", timedelta(0))
    fields.wait("timeout", timedelta(days=1))
    fields.wait("timeout", None)


def test_payload_metadata_counts_and_must_be_text() -> None:
    assert fields.payloads("input", (Payload(metadata={"encoding": "ü"}, data=b"123"),)) == 8 + 2 + 3
    with pytest.raises(InvalidArgument, match="lone surrogate"):
        fields.payloads("input", (Payload(metadata={"a": "\ud800"}),))


def test_names_of_a_payload_map_count() -> None:
    assert fields.payload_map("memo", {"ü": Payload(data=b"123")}) == 5
    with pytest.raises(InvalidArgument, match="memo name contains"):
        fields.payload_map("memo", {"a\n": Payload()})
