"""Texts for people beside a run (PM-27): checked, sent with the start, read again from a description."""

from typing import Any

from ..api.common import UserMetadata
from ..api.limits import MAX_DETAILS_BYTES, MAX_SUMMARY_BYTES
from ..api.payloads import Payload
from ..converter import DataConverter


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
