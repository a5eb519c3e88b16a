"""Payloads: encoded user values with the name of their encoding (DA-01)."""

from ._struct import Record

ENCODING = "encoding"
ENCODING_NULL = "binary/null"
ENCODING_BYTES = "binary/plain"
ENCODING_JSON = "json/plain"


class Payload(Record, frozen=True, kw_only=True):
    """One encoded value. ``metadata["encoding"]`` names the encoding; ``data`` is base64 in JSON."""

    metadata: dict[str, str] = {}
    data: bytes = b""


Payloads = tuple[Payload, ...]


def size_of(payloads: Payloads) -> int:
    """Bytes that count against a payload limit: data, and metadata names and values (UTF-8)."""
    total = 0
    for payload in payloads:
        total += len(payload.data)
        for name, value in payload.metadata.items():
            total += len(name.encode()) + len(value.encode())
    return total
