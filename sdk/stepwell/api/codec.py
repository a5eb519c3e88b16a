"""JSON for the wire: one encoder for everything, one decoder per type, made once."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_COMPLAINT = re.compile(r"(?P<what>.*?)(?: - at `(?P<key>key` in `)?\$\.?(?P<path>.*)`)?", re.DOTALL)
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


def explain(error: msgspec.ValidationError, hints: Mapping[str, str]) -> tuple[str, str]:
    """Where a value does not fit (a path such as ``execution.workflow_id``, or nothing) and a sentence that says so
    and what to do: the first of ``hints`` whose key is in the complaint.
    """
    found = _COMPLAINT.fullmatch(str(error))
    what, key, path = (found["what"], found["key"], found["path"] or "") if found else (str(error), None, "")
    hint = next((hints[word] for word in hints if word in what), "")
    where = f"{'a name in ' if key else ''}{path}: " if path else ""
    return path, f"{where}{what}; {hint}" if hint else f"{where}{what}"
