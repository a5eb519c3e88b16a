"""How values, exceptions and their encodings travel; see :class:`DataConverter`."""

from .codec import PayloadCodec, decode_record, encode_record
from .data_converter import DataConverter
from .errors import ArgumentError, PayloadError
from .failure_converter import DefaultFailureConverter, DefaultFailureConverterWithEncodedAttributes, FailureConverter
from .payload_converter import (
    BinaryNullPayloadConverter,
    BinaryPlainPayloadConverter,
    CompositePayloadConverter,
    DefaultPayloadConverter,
    EncodingPayloadConverter,
    JSONPlainPayloadConverter,
    PayloadConverter,
)

__all__ = [
    "ArgumentError",
    "BinaryNullPayloadConverter",
    "BinaryPlainPayloadConverter",
    "CompositePayloadConverter",
    "DataConverter",
    "DefaultFailureConverter",
    "DefaultFailureConverterWithEncodedAttributes",
    "DefaultPayloadConverter",
    "EncodingPayloadConverter",
    "FailureConverter",
    "JSONPlainPayloadConverter",
    "PayloadCodec",
    "PayloadConverter",
    "PayloadError",
    "decode_record",
    "default",
    "encode_record",
]


def default() -> DataConverter:
    """The converter used where none is given."""
    return DataConverter.default
