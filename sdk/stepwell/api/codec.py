"""JSON for the wire: one encoder for everything, one decoder per type, made once."""

from functools import cache
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_encoder = msgspec.json.Encoder()


def encode_json(value: Any) -> bytes:
    """UTF-8 JSON of any wire record."""
    return _encoder.encode(value)


@cache
def _decoder(of: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(of)


def decode_json(data: bytes, of: type[T]) -> T:
    """Raises ``msgspec.DecodeError`` (or its ``ValidationError``, which names the path) when ``data`` does not fit."""
    return _decoder(of).decode(data)
