"""Values to payloads and back. What comes out equals what went in, in value and type, or the sender is told (WC-25).

A converter may be replaced by a subclass of :class:`PayloadConverter`; the default is built from encodings tried in
order: none, bytes, JSON.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from ..api.payloads import ENCODING, ENCODING_BYTES, ENCODING_JSON, ENCODING_NULL, JSON_METADATA, Payload, Payloads
from ..common import RawValue
from .errors import PayloadError
from .json_values import EXACT, JsonValues

_NULL_PAYLOAD = Payload(metadata={ENCODING: ENCODING_NULL})
_BYTES_METADATA = {ENCODING: ENCODING_BYTES}


class PayloadConverter(ABC):
    """Encodes and decodes single values. Must be deterministic and must not do I/O: it runs inside workflows."""

    default: ClassVar["PayloadConverter"]

    @abstractmethod
    def to_payload(self, value: Any, type_hint: Any = Any) -> Payload:
        """Encode for a receiver that expects ``type_hint``. Raises :class:`PayloadError` where that would lose
        something.
        """

    @abstractmethod
    def from_payload(self, payload: Payload, type_hint: Any = Any) -> Any:
        """Decode as ``type_hint``. Raises :class:`PayloadError` when it does not fit."""

    def to_payloads(self, values: Sequence[Any]) -> Payloads:
        """Encode each value, without knowing what the receiver expects."""
        return tuple(self.to_payload(value) for value in values)

    def from_payloads(self, payloads: Payloads, type_hints: Sequence[Any] | None = None) -> list[Any]:
        """Decode each payload by the hint at its place, where there is one."""
        hints = type_hints or ()
        return [
            self.from_payload(payload, hints[index] if index < len(hints) else Any)
            for index, payload in enumerate(payloads)
        ]


class EncodingPayloadConverter(ABC):
    """One encoding of a :class:`CompositePayloadConverter`."""

    @property
    @abstractmethod
    def encoding(self) -> str:
        """Value of the metadata ``encoding`` that marks its payloads."""

    @abstractmethod
    def to_payload(self, value: Any, type_hint: Any) -> Payload | None:
        """None when the value is not of a kind that this encoding handles."""

    @abstractmethod
    def from_payload(self, payload: Payload, type_hint: Any) -> Any: ...


class BinaryNullPayloadConverter(EncodingPayloadConverter):
    """None, as a payload without data."""

    encoding = ENCODING_NULL

    def to_payload(self, value: Any, type_hint: Any) -> Payload | None:
        return _NULL_PAYLOAD if value is None else None

    def from_payload(self, payload: Payload, type_hint: Any) -> Any:
        return None


class BinaryPlainPayloadConverter(EncodingPayloadConverter):
    """``bytes`` as they are."""

    encoding = ENCODING_BYTES

    def to_payload(self, value: Any, type_hint: Any) -> Payload | None:
        return Payload(metadata=_BYTES_METADATA, data=value) if type(value) is bytes else None

    def from_payload(self, payload: Payload, type_hint: Any) -> Any:
        return bytearray(payload.data) if type_hint is bytearray else payload.data


class JSONPlainPayloadConverter(EncodingPayloadConverter):
    """Everything else, as JSON: see :mod:`stepwell.converter.json_values` for the types."""

    encoding = ENCODING_JSON

    def __init__(self) -> None:
        self._values = JsonValues()

    def to_payload(self, value: Any, type_hint: Any) -> Payload | None:
        return Payload(metadata=JSON_METADATA, data=self._values.encode(value, type_hint))

    def from_payload(self, payload: Payload, type_hint: Any) -> Any:
        return self._values.decode(payload.data, type_hint)


class CompositePayloadConverter(PayloadConverter):
    """Tries its encodings in order."""

    def __init__(self, *converters: EncodingPayloadConverter) -> None:
        self.converters = {converter.encoding: converter for converter in converters}
        self._in_order = converters

    def to_payload(self, value: Any, type_hint: Any = Any) -> Payload:
        if isinstance(value, RawValue):
            return value.payload
        for converter in self._in_order:
            payload = converter.to_payload(value, type_hint)
            if payload is not None:
                return payload
        raise PayloadError(f"no converter takes a value of type {type(value).__qualname__}")

    def from_payload(self, payload: Payload, type_hint: Any = Any) -> Any:
        if type_hint is RawValue:
            return RawValue(payload)
        encoding = payload.metadata.get(ENCODING, "")
        converter = self.converters.get(encoding)
        if converter is None:
            raise PayloadError(
                f"unknown encoding {encoding!r}; known are {', '.join(self.converters)}. "
                "Is a payload codec or converter missing here that the sender has?"
            )
        return converter.from_payload(payload, type_hint)


class DefaultPayloadConverter(CompositePayloadConverter):
    """None, bytes and JSON. Checks that null and bytes arrive only where the annotation allows them."""

    default_encoding_payload_converters: ClassVar[tuple[type[EncodingPayloadConverter], ...]] = (
        BinaryNullPayloadConverter,
        BinaryPlainPayloadConverter,
        JSONPlainPayloadConverter,
    )

    def __init__(self) -> None:
        super().__init__(*(make() for make in self.default_encoding_payload_converters))
        self._json = JsonValues()
        own = self.default_encoding_payload_converters is DefaultPayloadConverter.default_encoding_payload_converters
        self._exact: tuple[type, ...] = EXACT if own else ()
        """Types that go straight to JSON, unless a subclass has encodings of its own."""
        self._encode_exact = self._json.encoder.encode
        self._decode_exact = {kind: self._json.decoder(kind) for kind in self._exact}
        """In C, without a function around them: nearly all values of nearly all steps."""

    def to_payload(self, value: Any, type_hint: Any = Any) -> Payload:
        kind = type(value)
        if kind is type_hint and kind in self._exact:
            try:
                return Payload(metadata=JSON_METADATA, data=self._encode_exact(value))
            except Exception:
                return Payload(metadata=JSON_METADATA, data=self._json.encode_exact(value))  # which says what is wrong
        if value is None or type(value) is bytes:
            self._json.check_hint(value, type_hint)
        return super().to_payload(value, type_hint)

    def from_payload(self, payload: Payload, type_hint: Any = Any) -> Any:
        metadata = payload.metadata
        if type_hint in self._exact and (metadata is JSON_METADATA or metadata.get(ENCODING) == ENCODING_JSON):
            try:
                return self._decode_exact[type_hint](payload.data)
            except Exception:
                return self._json.decode(payload.data, type_hint)  # which says what is wrong
        decoded = super().from_payload(payload, type_hint)
        if decoded is None or type(decoded) is bytes:
            self._json.check_hint(decoded, type_hint)
        return decoded


PayloadConverter.default = DefaultPayloadConverter()
