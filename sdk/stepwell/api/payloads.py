"""Payloads: encoded user values with the name of their encoding (DA-01)."""

from ._struct import Record

ENCODING = "encoding"
ENCODING_NULL = "binary/null"
ENCODING_BYTES = "binary/plain"
ENCODING_JSON = "json/plain"

JSON_METADATA = {ENCODING: ENCODING_JSON}
"""That of nearly all payloads. Made once, so that its size need not be counted again; inside one process it is mostly
this very object.
"""

JSON_METADATA_BYTES = len(ENCODING) + len(ENCODING_JSON)


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
        metadata = payload.metadata
        if metadata is JSON_METADATA or metadata == JSON_METADATA:
            total += JSON_METADATA_BYTES
            continue
        for name, value in metadata.items():
            total += len(name.encode()) + len(value.encode())
    return total
