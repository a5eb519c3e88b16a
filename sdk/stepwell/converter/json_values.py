"""JSON of everyday Python values, without silent change (WC-25).

Handled in C by msgspec: bool, int of any size, finite float, str, list, dict, tuple, set, frozenset, bytes, datetime,
date, time, timedelta, Decimal, UUID, enums of str or int, dataclasses, NamedTuple, TypedDict and msgspec Structs, in
any nesting; pydantic models by their own (de)serializer.

The sender checks what it can know. With a type hint, the JSON is decoded again as the receiver will and compared:
equal in value and type, or refused. Without one, values that JSON itself cannot hold (NaN, keys that are not text)
are refused; others, such as a Decimal or a dataclass, are left to the receiver's annotation.
"""

import math
from collections.abc import Callable
from typing import Any

import msgspec

from .errors import PayloadError
from .lossless import cannot_encode, difference, fault, is_known

EXACT = (str, int, bool)
_UNTYPED = (Any, object, None)


def _enc_hook(value: Any) -> Any:
    serializer = getattr(type(value), "__pydantic_serializer__", None)
    if serializer is not None:
        return msgspec.Raw(serializer.to_json(value, by_alias=True))
    raise NotImplementedError(cannot_encode(value))


def _dec_hook(expected: type[Any], value: Any) -> Any:
    if expected is object:  # says as little as Any does, and msgspec does not know it
        return value
    validator = getattr(expected, "__pydantic_validator__", None)
    if validator is not None:
        return validator.validate_json(msgspec.json.encode(value))
    stands_for = getattr(expected, "__stepwell_guarded__", None)
    if stands_for is not None:
        return msgspec.convert(value, stands_for)
    raise NotImplementedError(
        f"type {expected.__module__}.{expected.__qualname__} cannot be decoded from JSON; use a dataclass, "
        "a msgspec Struct or a pydantic model, or set a payload converter that knows the type"
    )


def _pydantic_decoder(hint: Any) -> Callable[[bytes], Any] | None:
    """A pydantic model at the top is validated straight from its JSON."""
    validator = getattr(hint, "__pydantic_validator__", None) if isinstance(hint, type) else None
    return validator.validate_json if validator is not None else None


class JsonValues:
    """Encoders and decoders, one decoder per type."""

    def __init__(self) -> None:
        self.encoder = msgspec.json.Encoder(enc_hook=_enc_hook)
        self._decoders: dict[Any, Callable[[bytes], Any]] = {}

    def encode(self, value: Any, hint: Any = Any) -> bytes:
        """Raises :class:`PayloadError` naming the place in the value."""
        kind = type(value)
        if kind is hint and kind in EXACT:
            return self.encode_exact(value)
        if kind is float:
            if not math.isfinite(value):
                raise PayloadError(f"{value} at $: JSON has no such number; send it as text or None")
            if hint is float:
                return self.encode_exact(value)
        data = self.encode_exact(value)
        if hint in _UNTYPED:
            self._check_untyped(value, data)
        else:
            self._check_hinted(value, data, hint)
        return data

    def encode_exact(self, value: Any) -> bytes:
        """Of a value that is known to arrive as it is."""
        try:
            return self.encoder.encode(value)
        except (
            UnicodeError,
            TypeError,
            ValueError,
            OverflowError,
            NotImplementedError,
            RecursionError,
            AttributeError,
        ) as error:
            raise PayloadError(
                fault(value) or f"{type(value).__qualname__} cannot be encoded as JSON: {error}"
            ) from error

    def decode(self, data: bytes, hint: Any = Any) -> Any:
        """Raises :class:`PayloadError` naming the place in the JSON that does not fit."""
        try:
            decoder = self._decoders[hint]
        except (KeyError, TypeError):  # of a type that is new here, or that has no hash
            decoder = self.decoder(hint)
        try:
            return decoder(data)
        except PayloadError:
            raise
        except (msgspec.DecodeError, ValueError, TypeError, NotImplementedError, RecursionError) as error:
            raise PayloadError(f"does not fit {type_name(hint)}: {error}") from error

    def check_hint(self, value: Any, hint: Any) -> None:
        """Raises :class:`PayloadError` when ``value`` (None or bytes) is not what ``hint`` allows."""
        if hint in _UNTYPED or hint is type(None) or (hint is bytes and value is not None) or hint is bytearray:
            return
        try:
            msgspec.convert(value, hint, dec_hook=_dec_hook)
        except (msgspec.ValidationError, ValueError, TypeError, NotImplementedError) as error:
            raise PayloadError(f"{describe(value)} does not fit {type_name(hint)}: {error}") from error

    def decoder(self, hint: Any) -> Callable[[bytes], Any]:
        """Of one type. Raises :class:`PayloadError` for an annotation that is of no use for JSON."""
        try:
            found = self._decoders.get(hint)
        except TypeError:
            return self._make_decoder(hint)
        if found is None:
            found = self._decoders[hint] = self._make_decoder(hint)
        return found

    def _make_decoder(self, hint: Any) -> Callable[[bytes], Any]:
        if hint in _UNTYPED:
            return msgspec.json.Decoder().decode
        pydantic = _pydantic_decoder(hint)
        if pydantic is not None:
            return pydantic
        try:
            return msgspec.json.Decoder(hint, dec_hook=_dec_hook).decode
        except (TypeError, ValueError, NameError) as error:
            raise PayloadError(f"the annotation {type_name(hint)} cannot be used for JSON: {error}") from error

    def _check_untyped(self, value: Any, data: bytes) -> None:
        if type(value) in EXACT:
            return
        kind = type(value)
        if kind not in (list, dict, tuple, set, frozenset) and is_known(kind):
            self._check_hinted(value, data, kind)
            return
        if self.decode(data) == value:
            return
        problem = fault(value)
        if problem:
            raise PayloadError(problem)

    def _check_hinted(self, value: Any, data: bytes, hint: Any) -> None:
        try:
            back = self.decoder(hint)(data)
        except PayloadError as error:
            raise PayloadError(fault(value) or str(error)) from error
        except (msgspec.DecodeError, ValueError, TypeError, NotImplementedError, RecursionError) as error:
            raise PayloadError(fault(value) or f"{describe(value)} does not fit {type_name(hint)}: {error}") from error
        if type(back) is type(value) and _equal(back, value):
            return
        problem = fault(value) or difference(value, back)
        if problem:
            raise PayloadError(f"would not arrive unchanged as {type_name(hint)}: {problem}")


def _equal(back: Any, value: Any) -> bool:
    """``==``, which also settles the types inside (``(1,) != [1]``), but for members of StrEnum, IntEnum and
    frozenset, which equal the plain value that arrives where a plain value is annotated.
    """
    try:
        return bool(back == value)
    except Exception:  # a user's own __eq__
        return False


def type_name(hint: Any) -> str:
    """A type as people write it."""
    return (
        hint.__qualname__
        if isinstance(hint, type) and not hasattr(hint, "__args__")
        else str(hint).replace("typing.", "")
    )


def describe(value: Any) -> str:
    return f"a value of type {type(value).__qualname__}"
