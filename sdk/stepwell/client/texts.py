"""Memo and texts for people beside a run (PM-27): checked, sent with the start, read again from a description."""

from collections.abc import Mapping
from typing import Any

from ..api.common import UserMetadata
from ..api.errors import PayloadTooLarge
from ..api.limits import MAX_DETAILS_BYTES, MAX_MEMO_BYTES, MAX_SUMMARY_BYTES
from ..api.payloads import Payload, size_of
from ..converter import ArgumentError, DataConverter, PayloadError
from .errors import RPCError


def texts(converter: DataConverter, summary: str | None, details: str | None) -> UserMetadata | None:
    """Raises ``TypeError`` for what is no text, ``ValueError`` for one that is too long."""
    if summary is None and details is None:
        return None
    return UserMetadata(
        summary=_payload(converter, "static_summary", summary, MAX_SUMMARY_BYTES),
        details=_payload(converter, "static_details", details, MAX_DETAILS_BYTES),
    )


def _payload(converter: DataConverter, field: str, text: Any, limit: int) -> Payload | None:
    if text is None:
        return None
    if not isinstance(text, str):
        raise TypeError(f"{field} must be text, not {type(text).__name__}")
    size = len(text.encode(errors="replace"))
    if size > limit:
        raise ValueError(f"{field} has {size} bytes, the limit is {limit}; shorten it")
    return converter.payload_converter.to_payload(text, str)


def text_of(converter: DataConverter, payload: Payload | None) -> str | None:
    """None when nothing was said."""
    if payload is None:
        return None
    text: str = converter.payload_converter.from_payload(payload, str)
    return text


def memo_of(converter: DataConverter, memo: Mapping[str, Any] | None) -> dict[str, Payload]:
    """Raises ``TypeError`` for what is none, ``ArgumentError`` for values that cannot be encoded, and ``RPCError`` for
    one that is too large."""
    encoded: dict[str, Payload] = {}
    if memo is None:
        return encoded
    if not isinstance(memo, Mapping):
        raise TypeError(f"memo maps names to values, and is not of type {type(memo).__name__}")
    for key, value in memo.items():
        if not isinstance(key, str):
            raise TypeError(f"memo has the name {key!r}, which is no text")
        try:
            encoded[key] = converter.payload_converter.to_payload(value)
        except PayloadError as error:
            raise ArgumentError(f"memo {key!r}: {error}") from error
    size = size_of(tuple(encoded.values())) + sum(len(name.encode(errors="replace")) for name in encoded)
    if size > MAX_MEMO_BYTES:
        raise RPCError(
            PayloadTooLarge(f"memo has {size} bytes, the limit is {MAX_MEMO_BYTES}; keep it short", field="memo")
        )
    return encoded
