"""JSON for the wire: one encoder for everything, one decoder per type, made once."""

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}


def encode_json(value: Any) -> bytes:
    """UTF-8 JSON of any wire record."""
    return _encoder.encode(value)


def decode_json(data: bytes, of: type[T]) -> T:
    """Raises ``msgspec.DecodeError`` (or its ``ValidationError``, which names the path) when ``data`` does not fit."""
    decoder = _decoders.get(of)
    if decoder is None:
        decoder = _decoders[of] = msgspec.json.Decoder(of)
    value: T = decoder.decode(data)
    return value
