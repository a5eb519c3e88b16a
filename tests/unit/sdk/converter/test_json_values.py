"""Round trips: equal in value and type, or refused at the sender with the path (WC-25)."""

# ruff: noqa: DTZ001 - naive times are among the cases

import dataclasses
import datetime as dt
import enum
import re
import uuid
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, Optional, TypedDict
from zoneinfo import ZoneInfo

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stepwell.common import RawValue
from stepwell.converter import PayloadConverter, PayloadError

CONVERTER = PayloadConverter.default


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Odd(enum.Enum):
    PAIR = (1, 2)


class Point(NamedTuple):
    x: int
    y: float


class Address(TypedDict):
    street: str


@dataclasses.dataclass
class Line:
    sku: str
    price: Decimal
    note: str | None = None


@dataclasses.dataclass
class Order:
    lines: list[Line]
    by_number: dict[int, str] = dataclasses.field(default_factory=dict)
    parent: Optional["Order"] = None


class Struct(msgspec.Struct):
    day: dt.date
    tags: frozenset[str] = frozenset()


class Model(pydantic.BaseModel):
    name: str = pydantic.Field(alias="theName")
    at: dt.datetime
    inner: list[Line] = []


@dataclasses.dataclass
class Outer:
    model: Model
    optional: Model | None = None


UTC = dt.UTC
EQUAL: list[tuple[Any, Any]] = [
    (None, type(None)),
    (b"\x00\xff", bytes),
    (b"", bytes),
    (bytearray(b"ab"), bytearray),
    ("", str),
    ("Grüße 漢字 🎉 \0 \u2028", str),
    (True, bool),
    (1, int),
    (2**53 + 1, int),
    (2**200, int),
    (-(2**200), int),
    (-0.0, float),
    (1.5e308, float),
    (Decimal("1.10"), Decimal),
    (Decimal("1E+5"), Decimal),
    (dt.datetime(2026, 1, 1, 12), dt.datetime),
    (dt.datetime(2026, 1, 1, 12, 0, 0, 7), dt.datetime),
    (dt.datetime(2026, 1, 1, 12, tzinfo=UTC), dt.datetime),
    (dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=-3, minutes=30))), dt.datetime),
    (dt.datetime(2026, 1, 1, 12, tzinfo=ZoneInfo("Europe/Berlin")), dt.datetime),
    (dt.date(2026, 1, 1), dt.date),
    (dt.time(1, 2, 3, 4), dt.time),
    (dt.timedelta(days=-1, microseconds=1), dt.timedelta),
    (uuid.UUID(int=7), uuid.UUID),
    (Colour.RED, Colour),
    (Level.HIGH, Level),
    ((1, "a"), tuple[int, str]),
    ((), tuple[int, ...]),
    ({1, 2}, set[int]),
    (frozenset({"a"}), frozenset[str]),
    ({1: "a", -2: "b"}, dict[int, str]),
    ({uuid.UUID(int=1): 1.0}, dict[uuid.UUID, float]),
    ({"a": [1, None, {"b": True}]}, Any),
    ({"a": [1, None, {"b": True}]}, dict[str, Any]),
    ([1, "a", None], list[int | str | None]),
    ([1, "a", [None]], list[object]),
    ({"a": [1, {"b": True}]}, dict[str, object]),
    (Point(1, 2.0), Point),
    ({"street": "x"}, Address),
    (Order([Line("a", Decimal("1.10"))], {7: "x"}, Order([])), Order),
    (Struct(dt.date(2026, 1, 1), frozenset({"a"})), Struct),
    (Model(theName="x", at=dt.datetime(2026, 1, 1, tzinfo=UTC), inner=[Line("a", Decimal(1))]), Model),
    ([Model(theName="x", at=dt.datetime(2026, 1, 1, tzinfo=UTC))], list[Model]),
    (Outer(Model(theName="x", at=dt.datetime(2026, 1, 1))), Outer),
    ([1, 2], Sequence[int]),
    ({"a": 1}, Mapping[str, int]),
    ([Colour.RED, Level.HIGH], tuple[Colour, Level]),
]


@pytest.mark.parametrize(("value", "hint"), EQUAL[:-1], ids=lambda x: repr(x)[:30])
def test_equal_in_value_and_type(value: Any, hint: Any) -> None:
    back = CONVERTER.from_payload(CONVERTER.to_payload(value, hint), hint)
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value) or isinstance(value, set | frozenset | dt.datetime | dict | Outer | Model | list)


REFUSED: list[tuple[Any, Any, str]] = [
    ("a\ud800", str, r"text at \$ has the lone surrogate U\+D800 at position 1"),
    ({"a": ["\udfff"]}, Any, r"text at \$\.a\[0\] has the lone surrogate"),
    (Order([Line("\ud800", Decimal(1))]), Order, r"text at \$\.lines\[0\]\.sku has the lone surrogate"),
    (float("nan"), float, r"nan at \$: JSON has no such number"),
    (float("inf"), Any, r"inf at \$"),
    ({"a": float("nan")}, dict[str, float | None], r"nan at \$\.a"),
    ([float("nan")], Any, r"nan at \$\[0\]"),
    ({1: "a"}, Any, r"key 1 of \$ is int, and JSON turns keys into text"),
    ({"a": {None: 1}}, Any, r"key None of \$\.a is NoneType"),
    ({(1, 2): 1}, dict[tuple[int, int], int], r"key \(1, 2\) of \$ is tuple"),
    (object(), Any, r"objects of type builtins.object at \$"),
    ([1, object()], Any, r"at \$\[1\]"),
    ((1, 2), list[int], "is tuple and would arrive as list"),
    ([1, 2], tuple[int, ...], "is list and would arrive as tuple"),
    ("2026-01-01", dt.date, "is str and would arrive as date"),
    (Colour.RED, str, "is Colour and would arrive as str"),
    (Level.HIGH, int, "is Level and would arrive as int"),
    (True, int, "Expected `int`, got `bool`"),
    (1.5, int, "Expected `int`, got `float`"),
    (2**53 + 1, float, "would arrive"),
    ("x", int, "Expected `int`, got `str`"),
    (Line("a", Decimal(1)), Order, "does not fit Order"),
    (None, str, "Expected `str`, got `null`"),
    (b"ab", str, "bytes"),
    (Odd.PAIR, Odd, "neither str nor int"),
    (dt.datetime(2026, 1, 1, tzinfo=dt.timezone(dt.timedelta(seconds=1))), dt.datetime, "offset from UTC with seconds"),
    (Decimal("NaN"), Decimal, "would arrive"),
]


def _id(part: Any) -> str:
    """The same in every process, or several could not share the tests: an object's address is not."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(part))[:30]


@pytest.mark.parametrize(("value", "hint", "message"), REFUSED, ids=_id)
def test_refused_at_the_sender(value: Any, hint: Any, message: str) -> None:
    with pytest.raises(PayloadError, match=message):
        CONVERTER.to_payload(value, hint)


def test_a_value_that_contains_itself() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(PayloadError, match="contain itself"):
        CONVERTER.to_payload(loop)


def test_an_int_for_a_float_is_allowed() -> None:
    assert CONVERTER.from_payload(CONVERTER.to_payload(5, float), float) == 5.0


@pytest.mark.parametrize("value", [Decimal("1.1"), dt.date(2026, 1, 1), Line("a", Decimal(1)), (1, 2), {3}, Colour.RED])
def test_without_a_hint_the_receivers_annotation_restores_it(value: Any) -> None:
    hint = {tuple: tuple[int, ...], set: set[int]}.get(type(value), type(value))
    assert CONVERTER.from_payload(CONVERTER.to_payload(value), hint) == value


def test_missing_and_unknown_fields_of_other_versions() -> None:
    newer = CONVERTER.to_payload({"sku": "a", "price": "1.10", "added_later": [1]})
    assert CONVERTER.from_payload(newer, Line) == Line("a", Decimal("1.10"))
    with pytest.raises(PayloadError, match="missing required field `price`"):
        CONVERTER.from_payload(CONVERTER.to_payload({"sku": "a"}), Line)


def test_a_type_that_cannot_be_used_is_named() -> None:
    class Plain:
        pass

    with pytest.raises(PayloadError, match="Plain"):
        CONVERTER.to_payload(Plain(), Plain)
    with pytest.raises(PayloadError, match=r"annotation .* cannot be used for JSON"):
        CONVERTER.to_payload(Line("a", Decimal(1)), Line | Order)


def test_raw_values_pass_through() -> None:
    payload = CONVERTER.to_payload({"a": 1})
    raw = CONVERTER.from_payload(payload, RawValue)
    assert raw == RawValue(payload)
    assert CONVERTER.to_payload(raw) is payload


def test_text_is_readable() -> None:
    assert CONVERTER.to_payload("Grüße 🎉").data == '"Grüße 🎉"'.encode()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@settings(max_examples=100, deadline=None)
@given(_JSON)
def test_every_json_value_survives(value: Any) -> None:
    back = CONVERTER.from_payload(CONVERTER.to_payload(value))
    assert back == value
    assert repr(back) == repr(value)


@settings(max_examples=50, deadline=None)
@given(st.text(alphabet=st.characters(categories=["Lu", "Cs"]), min_size=1))
def test_surrogates_are_refused_and_everything_else_survives(text: str) -> None:
    if any(0xD800 <= ord(letter) <= 0xDFFF for letter in text):
        with pytest.raises(PayloadError, match="lone surrogate"):
            CONVERTER.to_payload([text])
    else:
        assert CONVERTER.from_payload(CONVERTER.to_payload([text])) == [text]


@pytest.mark.parametrize("hint", [Any, str, dict[str, Any]])
def test_a_coroutine_asks_for_await(hint: Any) -> None:
    async def called() -> str:
        return ""

    coroutine = called()
    for value in (coroutine, [coroutine]):
        with pytest.raises(PayloadError, match=r"builtins.coroutine at \$.* cannot be encoded; forgot await\?"):
            CONVERTER.to_payload(value, hint)
    coroutine.close()
