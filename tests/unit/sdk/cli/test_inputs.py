"""JSON from the command line, without a server."""

from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stepwell.api.payloads import Payload
from stepwell.cli.inputs import json_payload, parse_attributes, parse_pairs, read_inputs, value_of
from stepwell.cli.troubles import Usage

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
)


@given(JSON_VALUES)
def test_every_json_value_arrives(value: Any) -> None:
    text = msgspec.json.encode(value).decode()
    payload = json_payload(text, "--input")
    if value is None:
        assert payload == Payload(metadata={"encoding": "binary/null"})
    else:
        assert payload == Payload(metadata={"encoding": "json/plain"}, data=text.encode())


@given(st.text())
def test_any_text_is_a_value_or_refused(text: str) -> None:
    with suppress(Usage):
        json_payload(text, "--input")


def test_numbers_that_would_not_arrive_are_refused() -> None:
    for text in ("1e400", "9" * 5_000):
        with pytest.raises(Usage, match="line 1, column 1"):
            json_payload(text, "--input")


def test_numbers_keep_their_digits() -> None:
    for text in ("123456789012345678901234567890", "1.10", "1e40", "-0"):
        assert json_payload(text, "--input").data == text.encode()


def test_nothing_given_is_no_argument() -> None:
    assert read_inputs((), ()) == ()


def test_several_values_name_the_one_that_is_wrong() -> None:
    with pytest.raises(Usage, match=r"^--input 2 is not JSON"):
        read_inputs(("1", "x"), ())


def test_long_values_show_the_place() -> None:
    with pytest.raises(Usage) as refused:
        json_payload('["' + "x" * 500 + '", oops, "' + "y" * 500 + '"]', "--input")
    _, excerpt, marker, *_ = str(refused.value).splitlines()
    assert len(excerpt) < 100
    assert excerpt[marker.index("^") :].startswith("oops")


def test_pairs() -> None:
    assert parse_pairs(('a="x=y"', "b=1"), "--memo") == {
        "a": Payload(metadata={"encoding": "json/plain"}, data=b'"x=y"'),
        "b": Payload(metadata={"encoding": "json/plain"}, data=b"1"),
    }
    for wrong in ("a", "=1", "a=", "a=x"):
        with pytest.raises(Usage, match="--memo"):
            parse_pairs((wrong,), "--memo")


def test_what_is_no_json_is_shown_as_its_parts() -> None:
    for payload in (
        Payload(metadata={"encoding": "binary/plain"}, data=b"\xff"),
        Payload(metadata={"encoding": "json/plain"}, data=b"{broken"),
        Payload(data=b"x"),
    ):
        assert value_of(payload) == {"metadata": payload.metadata, "data": payload.data}


def test_search_attributes_have_the_type_that_is_said_or_shown() -> None:
    pairs = ('City="Rome"', "N=5", "D=1.5", "Paid=true", 'Tags=["a"]', 'T:text="x"', "E:double=1", 'a:b="c"')
    found = parse_attributes((*pairs, 'When:Datetime="2026-01-02T03:04:05Z"'), "--search-attribute")
    assert {name: payload.metadata["type"] for name, payload in found.items()} == {
        "City": "Keyword",
        "N": "Int",
        "D": "Double",
        "Paid": "Bool",
        "Tags": "KeywordList",
        "T": "Text",
        "E": "Double",
        "a:b": "Keyword",
        "When": "Datetime",
    }
    assert found["E"].data == b"1.0"


@pytest.mark.parametrize(
    "pair", ["N=null", 'N={"a":1}', "W:datetime=5", "N:int=1.5", "Tags=[1]", "City=Rome", "City", "N:integr=1"]
)
def test_what_is_no_search_attribute_is_named(pair: str) -> None:
    with pytest.raises(Usage, match="--search-attribute") as refused:
        parse_attributes((pair,), "--search-attribute")
    assert pair != "City=Rome" or """--search-attribute City='"Rome"'""" in str(refused.value)
