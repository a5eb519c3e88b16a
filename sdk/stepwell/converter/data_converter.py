"""The converter that a client and its workers share: values, failures and codec together."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..api.failures import Failure
from ..api.payloads import Payload, Payloads
from .codec import PayloadCodec, decode_record, encode_record
from .failure_converter import DefaultFailureConverter, FailureConverter
from .payload_converter import DefaultPayloadConverter, PayloadConverter


@dataclass(frozen=True)
class DataConverter:
    """Replace a part by giving its class (made once per DataConverter) or, for the codec, an instance."""

    payload_converter_class: type[PayloadConverter] = DefaultPayloadConverter
    payload_codec: PayloadCodec | None = None
    failure_converter_class: type[FailureConverter] = DefaultFailureConverter
    payload_converter: PayloadConverter = field(init=False, repr=False, compare=False)
    failure_converter: FailureConverter = field(init=False, repr=False, compare=False)

    default: ClassVar["DataConverter"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "payload_converter", self.payload_converter_class())
        object.__setattr__(self, "failure_converter", self.failure_converter_class())

    async def encode(self, values: Sequence[Any]) -> list[Payload]:
        """Values to payloads, through the codec. Raises ``PayloadError``."""
        payloads = list(self.payload_converter.to_payloads(values))
        return payloads if self.payload_codec is None else await self.payload_codec.encode(payloads)

    async def decode(self, payloads: Payloads | list[Payload], type_hints: Sequence[Any] | None = None) -> list[Any]:
        """Payloads to values, through the codec. Raises ``PayloadError``."""
        if self.payload_codec is not None:
            payloads = await self.payload_codec.decode(payloads)
        return self.payload_converter.from_payloads(tuple(payloads), type_hints)

    async def encode_failure(self, exception: BaseException) -> Failure:
        """An exception to its record, through the codec."""
        return await encode_record(self.payload_codec, self.to_failure(exception))

    async def decode_failure(self, failure: Failure) -> BaseException:
        """A record to its exception, through the codec."""
        return self.from_failure(await decode_record(self.payload_codec, failure))

    def to_failure(self, exception: BaseException) -> Failure:
        """An exception to its record, without the codec."""
        return self.failure_converter.to_failure(exception, self.payload_converter)

    def from_failure(self, failure: Failure) -> BaseException:
        """A record to its exception, without the codec."""
        return self.failure_converter.from_failure(failure, self.payload_converter)


DataConverter.default = DataConverter()
