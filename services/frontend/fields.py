"""Checks of single fields against the limits of the API: what a name, a duration or a payload must be like.

Each check raises ``InvalidArgument`` (or ``PayloadTooLarge``) that names the field, the limit and the way out. Checks
run before anything is read or written, and on every request, so the common case is decided by a few C-level calls.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache

from stepwell.api.errors import InvalidArgument, PayloadTooLarge
from stepwell.api.limits import (
    MAX_DURATION,
    MAX_ID_BYTES,
    MAX_NAMESPACE_BYTES,
    MAX_NONCE_BYTES,
    MAX_PAYLOAD_BYTES,
    MAX_TASKS_PER_SECOND,
)
from stepwell.api.payloads import Payload, Payloads, size_of

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CONTROL_IN_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_ZERO = timedelta(0)


def identifier(field: str, value: str, maximum: int = MAX_ID_BYTES) -> None:
    """A name that must be there: not empty, at most ``maximum`` UTF-8 bytes, no control characters (DA-11)."""
    if value.isascii() and value.isprintable() and 0 < len(value) <= maximum:
        return
    if not value:
        raise InvalidArgument(f"{field} is empty; give it a value of 1 to {maximum} bytes", field=field)
    _characters(field, value, _CONTROL)
    _length(field, value, maximum)


def optional_identifier(field: str, value: str, maximum: int = MAX_ID_BYTES) -> None:
    """Like :func:`identifier`, but may be empty."""
    if value:
        identifier(field, value, maximum)


def rate(field: str, value: float | None) -> None:
    """Of a limit; none when it is not given."""
    if value is not None and not 0 < value <= MAX_TASKS_PER_SECOND:
        raise InvalidArgument(
            f"{field} is {value:g}; use a number above 0 and at most {MAX_TASKS_PER_SECOND:g}, or leave it out to "
            "leave the limit as it is",
            field=field,
        )


def text(field: str, value: str, maximum: int = MAX_ID_BYTES) -> None:
    """Words for people, such as a reason: may be empty and may have several lines."""
    if value.isascii() and value.isprintable() and len(value) <= maximum:
        return
    _characters(field, value, _CONTROL_IN_TEXT)
    _length(field, value, maximum)


def path_identifier(field: str, value: str, maximum: int = MAX_ID_BYTES) -> None:
    """An identifier that is a segment of the operation's path: ``.`` and ``..`` have another meaning there."""
    identifier(field, value, maximum)
    if value in (".", ".."):
        raise InvalidArgument(f"{field} is {value!r}, which no URL can carry; use another name", field=field)


name = lru_cache(maxsize=4_096)(path_identifier)
"""The same for what is said again and again: types, task queues."""

label = lru_cache(maxsize=1_024)(text)
"""A text that is said again and again, such as who calls."""


@lru_cache(maxsize=256)
def namespace(value: str) -> None:
    """At most 255 UTF-8 bytes, without ``#``, which separates the parts of storage keys (design section 3)."""
    path_identifier("namespace", value, MAX_NAMESPACE_BYTES)
    if "#" in value:
        raise InvalidArgument(
            f"namespace {value!r} contains '#', which is reserved; use another character", field="namespace"
        )


def nonce(value: str) -> None:
    identifier("nonce", value, MAX_NONCE_BYTES)


def task_token(field: str, value: bytes) -> None:
    if not value:
        raise InvalidArgument(f"{field} is empty; send back the token that came with the task", field=field)


def duration(field: str, value: timedelta | None, maximum: timedelta = MAX_DURATION) -> None:
    """A timeout that is either left out or above zero and at most ``maximum``."""
    if value is None or _ZERO < value <= maximum:
        return
    if value <= _ZERO:
        raise InvalidArgument(
            f"{field} is {seconds(value)}; it must be above zero (leave it out for the default)", field=field
        )
    raise InvalidArgument(
        f"{field} is {seconds(value)}, above the limit of {seconds(maximum)}; use a shorter one", field=field
    )


def wait(field: str, value: timedelta | None) -> None:
    """How long a call may be held: not negative. Longer than the server holds calls is no error, it answers sooner."""
    if value is not None and value < _ZERO:
        raise InvalidArgument(f"{field} is {seconds(value)}; it must not be negative", field=field)


def count(field: str, value: int, maximum: int, *, minimum: int = 0, way_out: str) -> None:
    """A number from ``minimum`` to ``maximum``; ``way_out`` says what to do when there is more."""
    if value < minimum:
        raise InvalidArgument(f"{field} is {value}; it must be at least {minimum}", field=field)
    if value > maximum:
        raise InvalidArgument(f"{field} is {value}, above the limit of {maximum}; {way_out}", field=field)


def id_token(operation: str, token: bytes, maximum: int = MAX_ID_BYTES) -> str:
    """The id behind which a page begins, of a list in the order of ids."""
    try:
        if len(token) <= maximum:
            return token.decode()
    except UnicodeDecodeError:
        pass
    raise InvalidArgument(
        f"next_page_token is none of {operation}; send back the one that came with the page before",
        field="next_page_token",
    )


def payloads(field: str, value: Payloads, maximum: int = MAX_PAYLOAD_BYTES) -> int:
    """One argument list, result or set of details (DA-08). Returns its size in bytes."""
    return _sized(field, value, maximum) if value else 0


def payload_map(field: str, value: Mapping[str, Payload], maximum: int = MAX_PAYLOAD_BYTES) -> int:
    """Memo, search attributes or headers: names are identifiers, all values together obey ``maximum``."""
    if not value:
        return 0
    size = 0
    for name in value:
        identifier(f"{field} name", name)
        size += len(name.encode())
    return _sized(field, tuple(value.values()), maximum, size)


def seconds(value: timedelta) -> str:
    """A duration for people: ``1.5 s``, or days when that is exact."""
    if value >= timedelta(days=2) and not value % timedelta(days=1):
        return f"{value.days} days"
    return f"{value.total_seconds():g} s"


def _sized(field: str, value: Payloads, maximum: int, size: int = 0) -> int:
    try:
        size += size_of(value)
    except UnicodeEncodeError:
        raise InvalidArgument(
            f"{field} has metadata with a lone surrogate, which is not text; correct the payload's metadata",
            field=field,
        ) from None
    if size > maximum:
        raise PayloadTooLarge(
            f"{field} has {size} bytes, above the limit of {maximum}; "
            "store the data elsewhere (a file or object store) and pass a reference",
            field=field,
        )
    return size


def _characters(field: str, value: str, forbidden: re.Pattern[str]) -> None:
    found = forbidden.search(value)
    if found is not None:
        raise InvalidArgument(
            f"{field} contains the control character {found.group()!r} at position {found.start()}; remove it",
            field=field,
        )


def _length(field: str, value: str, maximum: int) -> None:
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            f"{field} contains a lone surrogate at position {error.start}, which is not text; remove it", field=field
        ) from None
    if size > maximum:
        raise InvalidArgument(
            f"{field} has {size} bytes in UTF-8, above the limit of {maximum}; use a shorter one", field=field
        )
