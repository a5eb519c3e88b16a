"""gRPC's own forms over HTTP/2: messages with their prefix, timeouts, and the trailers that say how a call ended.

As https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md has them. Pure.
"""

import base64
import zlib
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote

import grpc

from .answering import MAX_RECEIVED_BYTES, Refused
from .errors import Refusal

Headers = list[tuple[bytes, bytes]]

PREFIX_BYTES = 5
_UNITS = {"H": 3_600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_MAX_DIGITS = 8
_SAFE = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")
_EITHER_FORM = 32 + zlib.MAX_WBITS
"""zlib finds out itself whether it is gzip or deflate."""

SUCCESS: Headers = [(b"grpc-status", b"0")]

GOING_AWAY = b"\0\0\x08\x07\0\0\0\0\0\x7f\xff\xff\xff\0\0\0\0"
"""A frame that asks for no more calls on a connection, and says of none that it was not heard (RFC 9113, 6.8)."""


def framed(message: bytes) -> bytes:
    """Not compressed."""
    return b"\0" + len(message).to_bytes(4) + message


def message_of(body: bytes, headers: Mapping[bytes, bytes]) -> bytes:
    """The one message of a unary call. Raises Refused."""
    size = len(body) - PREFIX_BYTES
    if size < 0 or int.from_bytes(body[1:PREFIX_BYTES]) != size:
        raise _refused(grpc.StatusCode.INTERNAL, "the call has no whole message; send one, in the form of gRPC")
    message = body[PREFIX_BYTES:]
    if not body[0]:
        return message
    encoding = headers.get(b"grpc-encoding", b"")
    if encoding not in (b"gzip", b"deflate"):
        raise _refused(
            grpc.StatusCode.UNIMPLEMENTED,
            f"the message is compressed as {encoding.decode(errors='replace')[:40]!r}; send it as gzip or deflate, or "
            "as it is",
        )
    try:
        unpacked = zlib.decompressobj(_EITHER_FORM).decompress(message, MAX_RECEIVED_BYTES + 1)
    except zlib.error:
        raise _refused(grpc.StatusCode.INTERNAL, "the message is not compressed as it says; send it again") from None
    check_size(len(unpacked))
    return unpacked


def check_size(size: int) -> None:
    """Raises Refused."""
    if size > MAX_RECEIVED_BYTES:
        raise _refused(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            f"the message has more than {MAX_RECEIVED_BYTES} bytes, which is the most; send less",
        )


def timeout_of(headers: Mapping[bytes, bytes]) -> float | None:
    """Seconds; None without one, or with one that is none."""
    return _seconds(headers.get(b"grpc-timeout", b""))


@lru_cache(maxsize=1_024)
def _seconds(timeout: bytes) -> float | None:
    text = timeout.decode("latin-1")
    digits, unit = text[:-1], text[-1:]
    if not digits.isdigit() or len(digits) > _MAX_DIGITS or unit not in _UNITS:
        return None
    return int(digits) * _UNITS[unit]


def trailers_of(refused: Refusal) -> Headers:
    code: int = refused.code.value[0]
    trailers = [(b"grpc-status", str(code).encode()), (b"grpc-message", quote(refused.message, safe=_SAFE).encode())]
    for name, value in refused.trailing_metadata():
        trailers.append((name.encode(), base64.b64encode(value).rstrip(b"=")))
    return trailers


def _refused(code: grpc.StatusCode, message: str) -> Refused:
    return Refused(Refusal(code, message))
