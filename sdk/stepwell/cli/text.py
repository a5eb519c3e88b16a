"""Wire records as text for people: payloads, failures, times and spans. Nothing stored can steer the terminal."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import msgspec

from ..api.failures import (
    ActivityFailureInfo,
    ApplicationFailureInfo,
    CanceledFailureInfo,
    Failure,
    TimeoutFailureInfo,
)
from ..api.payloads import ENCODING, ENCODING_JSON, ENCODING_NULL, Payload, Payloads

SHORT = 200
"""Characters of a value in a table or a history line."""

_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def safe(text: str) -> str:
    """Control characters (which could steer a terminal, or turn text around) written as escapes."""
    return _UNSAFE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def shorten(text: str, limit: int = SHORT) -> str:
    return text if limit <= 0 or len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def payload_text(payload: Payload) -> str:
    """JSON as it is, other encodings by name and size."""
    encoding = payload.metadata.get(ENCODING, "")
    if encoding == ENCODING_NULL:
        return "null"
    if encoding == ENCODING_JSON:
        return safe(payload.data.decode("utf-8", "backslashreplace")).replace("\n", " ")
    return f"<{safe(encoding) or 'no encoding'}, {len(payload.data)} bytes>"


def payloads_text(payloads: Payloads) -> str:
    return ", ".join(map(payload_text, payloads))


def value_text(payload: Payload) -> str:
    """A whole value over several lines."""
    if payload.metadata.get(ENCODING) != ENCODING_JSON:
        return payload_text(payload)
    try:
        formatted = msgspec.json.format(payload.data, indent=2).decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        formatted = payload.data.decode("utf-8", "backslashreplace")
    return safe(formatted)


def failure_text(failure: Failure) -> str:
    """One line: kind and message, then the causes, outermost first."""
    parts: list[str] = []
    seen: Failure | None = failure
    while seen is not None:
        parts.append(_one_failure(seen))
        seen = seen.cause
    return safe(" <- ".join(parts).replace("\n", " "))


def _one_failure(failure: Failure) -> str:
    match failure.info:
        case ApplicationFailureInfo(failure_type=failure_type) if failure_type:
            return f"{failure_type}: {failure.message}"
        case TimeoutFailureInfo(timeout_type=timeout_type):
            return f"timeout {timeout_type}: {failure.message}" if failure.message else f"timeout {timeout_type}"
        case CanceledFailureInfo():
            return f"canceled: {failure.message}" if failure.message else "canceled"
        case ActivityFailureInfo(activity_type=activity_type) if activity_type not in failure.message:
            return f"activity {activity_type}: {failure.message}"
        case _:
            return failure.message or "failure"


def failure_tree(failure: Failure) -> str:
    """The whole failure with stack traces, causes below."""
    lines: list[str] = []
    seen: Failure | None = failure
    while seen is not None:
        lines.append(("caused by " if lines else "") + _one_failure(seen))
        if seen.stack_trace:
            lines += ["  " + line for line in seen.stack_trace.rstrip().splitlines()]
        seen = seen.cause
    return safe("\n".join(lines))


def time_text(time: datetime | None) -> str:
    """UTC, to the millisecond."""
    return "" if time is None else time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"


def local_text(time: datetime | None, zone: tzinfo | None) -> str:
    """As clocks in ``zone`` say it, with how far they are from UTC; UTC where there is none."""
    if time is None or zone is None:
        return time_text(time)
    try:
        said = time.astimezone(zone)
    except OverflowError:  # at the edge of the calendar
        return time_text(time)
    return said.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + said.isoformat(timespec="milliseconds")[23:]


def distance_text(time: datetime | None, now: datetime) -> str:
    """How far ``time`` is from now: ``in 3s``, ``2h 5m ago``."""
    if time is None:
        return ""
    distance = time - now
    return f"{span_text(-distance)} ago" if distance < timedelta(0) else f"in {span_text(distance)}"


def span_text(span: timedelta) -> str:
    """The two largest units: ``14d``, ``2h 5m``, ``1.5s``, ``25ms``."""
    seconds = span.total_seconds()
    if 0 < seconds < 0.9995:
        return f"{seconds * 1_000:.3g}ms"
    if seconds < 60:
        return f"{seconds:.3g}s"
    parts: list[str] = []
    rest = int(seconds)
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        amount, rest = divmod(rest, size)
        if amount:
            parts.append(f"{amount}{unit}")
    return " ".join(parts[:2])


def attribute_text(value: Any, limit: int = SHORT) -> str:
    """One attribute of an event on one line."""
    match value:
        case Payload():
            return shorten(payload_text(value), limit)
        case Failure():
            return shorten(failure_text(value), limit)
        case datetime():
            return time_text(value)
        case timedelta():
            return span_text(value)
        case str():
            return shorten(safe(value).replace("\n", " "), limit)
        case tuple():
            return "(" + ", ".join(attribute_text(part, limit) for part in value) + ")"
        case dict():
            return (
                "{"
                + ", ".join(f"{safe(str(name))}: {attribute_text(part, limit)}" for name, part in value.items())
                + "}"
            )
        case msgspec.Struct():
            return "{" + ", ".join(f"{name}={text}" for name, text in attributes(value, limit)) + "}"
        case _:
            return shorten(str(value), limit)


def attributes(
    record: msgspec.Struct, limit: int = SHORT, hidden: frozenset[str] = frozenset()
) -> list[tuple[str, str]]:
    """The record's fields that say something: those that differ from their default and are not ``hidden``."""
    found: list[tuple[str, str]] = []
    for field in msgspec.structs.fields(record):
        value = getattr(record, field.name)
        if field.name in hidden or value in (field.default, {}, (), "", None):
            continue
        text = attribute_text(value, limit)
        if text != "{}":
            found.append((field.name, text))
    return found
