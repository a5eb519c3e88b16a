"""Values as a filter writes them, turned into what the attribute's type compares. Raises InvalidArgument."""

import re
from collections.abc import Callable
from datetime import datetime

from lark import Token
from stepwell.api.enums import WorkflowExecutionStatus

from .attributes import DURATION, MAX_DOUBLE, MAX_INT, STATUS, Attribute, Value, ValueType, parse_time
from .grammar import position, refuse

MAX_TEXT_BYTES = 2 * 1024
"""Of one text in a filter; no attribute holds more."""

_MAX_DURATION_BYTES = 100
"""Of a duration as text; with more digits a number may be more than is computed with."""

_STATUSES = {status.value.replace("_", "").casefold(): status.value for status in WorkflowExecutionStatus}
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_CLOCK = re.compile(r"(\d+):([0-5]\d):([0-5]\d)")


def unquoted(token: Token) -> str:
    """A text or a quoted name without its quotes."""
    quote = str(token)[0]
    return str(token)[1:-1].replace(quote * 2, quote)


def value_of(attribute: Attribute, token: Token) -> Value:
    """What the token says, for a comparison with the attribute."""
    if attribute == STATUS:
        return _status(token)
    if attribute == DURATION:
        return _duration(token)
    return _BY_TYPE[attribute.type](attribute, token)


def _bool(attribute: Attribute, token: Token) -> bool:
    if token.type not in ("TRUE", "FALSE"):
        raise _misfit(attribute, token, "true or false, without quotes")
    return token.type == "TRUE"


def _double(attribute: Attribute, token: Token) -> float:
    if token.type != "NUMBER" or not abs(number := float(token)) < MAX_DOUBLE:
        raise _misfit(attribute, token, "a number without quotes")
    return number


def _time(attribute: Attribute, token: Token) -> datetime:
    time = parse_time(unquoted(token)) if token.type == "TEXT" else None
    if time is None:
        raise _misfit(attribute, token, "a time with its zone, such as '2026-11-30T09:00:00Z'")
    return time


def _text(attribute: Attribute, token: Token) -> str:
    if token.type != "TEXT":
        raise _misfit(attribute, token, "a text in quotes")
    text = unquoted(token)
    size = len(text.encode(errors="replace"))
    if size > MAX_TEXT_BYTES:
        raise refuse(
            position(token),
            f"the text has {size} bytes; at most {MAX_TEXT_BYTES} are compared, since no attribute holds more",
        )
    return text


def _int(attribute: Attribute, token: Token) -> int:
    try:
        number = int(token) if token.type == "NUMBER" else None
    except ValueError:
        number = None
    if number is None or abs(number) > MAX_INT:
        raise _misfit(attribute, token, "a whole number of at most 64 bits, without quotes")
    return number


def _status(token: Token) -> str:
    said = unquoted(token).replace("_", "").casefold() if token.type == "TEXT" else ""
    if said not in _STATUSES:
        raise _misfit(STATUS, token, f"one of {', '.join(repr(status) for status in _STATUSES.values())}")
    return _STATUSES[said]


def _duration(token: Token) -> int:
    if token.type != "TEXT":
        return _int(DURATION, token)
    text = unquoted(token)
    if len(text) <= _MAX_DURATION_BYTES and (clock := _CLOCK.fullmatch(text)):
        hours, minutes, seconds = map(int, clock.groups())
        nanoseconds = (hours * 3600 + minutes * 60 + seconds) * 10**9
    else:
        parts = _DURATION_PART.findall(text)
        if not parts or len(text) > _MAX_DURATION_BYTES or "".join(map("".join, parts)) != text:
            raise _misfit(DURATION, token, "a duration such as '1h30m', '250ms' or '01:30:00', or nanoseconds")
        nanoseconds = int(sum(float(amount) * _UNITS[unit] for amount, unit in parts))
    if nanoseconds > MAX_INT:
        raise _misfit(DURATION, token, "a duration of at most 292 years")
    return nanoseconds


def _misfit(attribute: Attribute, token: Token, wanted: str) -> Exception:
    return refuse(
        position(token),
        f"{attribute.name} is of type {attribute.type} and is compared with {wanted}, not with {str(token)[:60]}",
    )


_BY_TYPE: dict[ValueType, Callable[[Attribute, Token], Value]] = {
    ValueType.BOOL: _bool,
    ValueType.DATETIME: _time,
    ValueType.DOUBLE: _double,
    ValueType.INT: _int,
    ValueType.KEYWORD: _text,
    ValueType.KEYWORD_LIST: _text,
    ValueType.TEXT: _text,
}
