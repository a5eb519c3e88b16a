"""gRPC's forms over HTTP/2: what is no message is refused, and nothing unpacks to more than may come."""

import base64
import gzip
import zlib
from urllib.parse import unquote

import grpc
import pytest
from stepwell.api.errors import NotFound
from temporalio.api.common.v1.grpc_status_pb2 import GrpcStatus

from stepwell_server.temporal_gateway import messages
from stepwell_server.temporal_gateway.answering import MAX_RECEIVED_BYTES, Refused
from stepwell_server.temporal_gateway.errors import refusal

GZIP = {b"grpc-encoding": b"gzip"}


def packed(data: bytes) -> bytes:
    return b"\x01" + len(data).to_bytes(4) + data


@pytest.mark.parametrize("message", [b"", b"x", bytes(100_000)])
def test_a_message_comes_as_it_was_sent(message: bytes) -> None:
    assert messages.message_of(messages.framed(message), {}) == message
    assert messages.message_of(packed(gzip.compress(message)), GZIP) == message
    assert messages.message_of(packed(zlib.compress(message)), {b"grpc-encoding": b"deflate"}) == message


@pytest.mark.parametrize(
    ("body", "headers", "code"),
    [
        (b"", {}, grpc.StatusCode.INTERNAL),
        (b"\0\0\0\0", {}, grpc.StatusCode.INTERNAL),
        (messages.framed(b"abc")[:-1], {}, grpc.StatusCode.INTERNAL),
        (messages.framed(b"abc") + b"d", {}, grpc.StatusCode.INTERNAL),
        (packed(b"no gzip"), GZIP, grpc.StatusCode.INTERNAL),
        (packed(b"abc"), {}, grpc.StatusCode.UNIMPLEMENTED),
        (packed(b"abc"), {b"grpc-encoding": b"snappy"}, grpc.StatusCode.UNIMPLEMENTED),
        (packed(gzip.compress(bytes(MAX_RECEIVED_BYTES + 1))), GZIP, grpc.StatusCode.RESOURCE_EXHAUSTED),
    ],
)
def test_what_is_no_message_is_refused(body: bytes, headers: dict[bytes, bytes], code: grpc.StatusCode) -> None:
    with pytest.raises(Refused) as refused:
        messages.message_of(body, headers)
    assert refused.value.refused.code is code


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10S", 10.0), ("2M", 120.0), ("1H", 3_600.0), ("250m", 0.25), ("5000u", 0.005), ("1n", 1e-9), ("", None)],
)
def test_timeouts(text: str, seconds: float | None) -> None:
    assert messages.timeout_of({b"grpc-timeout": text.encode()}) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["S", "10", "-1S", "123456789S", "1.5S", "ten seconds"])
def test_what_is_no_timeout_is_none(text: str) -> None:
    assert messages.timeout_of({b"grpc-timeout": text.encode()}) is None


def test_trailers_say_why_with_details() -> None:
    trailers = dict(messages.trailers_of(refusal(NotFound("no 'é' 100 % gone\n"))))
    assert trailers[b"grpc-status"] == b"5"
    message = trailers[b"grpc-message"].decode("ascii")
    assert message == "no '%C3%A9' 100 %25 gone%0A" and unquote(message) == "no 'é' 100 % gone\n"
    details = trailers[b"grpc-status-details-bin"]
    status = GrpcStatus.FromString(base64.b64decode(details + b"=" * (-len(details) % 4)))
    assert status.code == 5 and len(status.details) == 1
