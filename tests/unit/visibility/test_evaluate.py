"""What a filter means, against an oracle that reads neither the text nor the tree."""

from datetime import UTC, datetime
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from stepwell.api.payloads import Payload

from stepwell_server.visibility.attributes import Text, ValueType, custom_values
from stepwell_server.visibility.evaluate import matches
from stepwell_server.visibility.query import parse
from tests.support import queries
from tests.support.queries import TYPES, seen

RUNS = queries.runs(Random(1), 120)


@given(st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_a_filter_means_what_it_says(random: Random) -> None:
    asked = next(queries.queries(random))
    filter_ = parse(asked.text, TYPES).filter
    for run in RUNS:
        assert matches(filter_, seen(run)) == asked.test(run.values), asked.text


def test_a_value_of_another_type_is_none() -> None:
    filter_ = parse("Amount = 1 OR Amount != 1 AND Amount IS NOT NULL", TYPES).filter
    for value in ("1", True, 1.0, ("1",), datetime(2026, 1, 1, tzinfo=UTC)):
        assert not matches(filter_, {"Amount": value})
    assert not matches(parse("Customer = 'a'", TYPES).filter, {"Customer": Text("a")})


def test_values_as_they_travel() -> None:
    def payload(data: bytes, kind: str = "") -> Payload:
        return Payload(metadata={"encoding": "json/plain", **({"type": kind} if kind else {})}, data=data)

    assert custom_values(
        {
            "a": payload(b'"x"', "Keyword"),
            "b": payload(b'"x y"', "Text"),
            "c": payload(b'["x", "y", "x"]', "KeywordList"),
            "d": payload(b"3", "Double"),
            "e": payload(b'"2026-01-01T01:00:00+01:00"', "Datetime"),
            "untyped": payload(b"7"),
            "untyped too": payload(b"true"),
        }
    ) == {
        "a": (ValueType.KEYWORD, "x"),
        "b": (ValueType.TEXT, "x y"),
        "c": (ValueType.KEYWORD_LIST, ("x", "y")),
        "d": (ValueType.DOUBLE, 3.0),
        "e": (ValueType.DATETIME, datetime(2026, 1, 1, tzinfo=UTC)),
        "untyped": (ValueType.INT, 7),
        "untyped too": (ValueType.BOOL, True),
    }
    # None of these stops a run from being projected; nothing finds it by them.
    for data, kind in [
        (b"", "Keyword"),
        (b"null", "Keyword"),
        (b"{}", ""),
        (b"5", "Keyword"),
        (b'"x"', "Int"),
        (b"true", "Int"),
        (b"9223372036854775808", "Int"),
        (b"1e400", "Double"),
        (b'"2026-01-01"', "Datetime"),
        (b"[]", "KeywordList"),
        (b"[1]", "KeywordList"),
        (b'"x"', "Invented"),
        (b"\xff", "Keyword"),
    ]:
        assert custom_values({"a": payload(data, kind)}) == {}
