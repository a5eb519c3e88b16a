"""Payloads of Temporal's SDKs come back byte for byte."""

import pytest
from stepwell.api.payloads import JSON_METADATA
from temporalio.api.common.v1 import message_pb2 as pb

from stepwell_server.temporal_gateway.payloads import payload_of, to_payload


@pytest.mark.parametrize(
    "payload",
    [
        pb.Payload(metadata={"encoding": b"json/plain"}, data=b"1"),
        pb.Payload(metadata={"encoding": b"json/protobuf", "messageType": "größe".encode()}, data=b"\x00"),
        pb.Payload(metadata={"key": b"\xff\x00", "key;base64": b"x", "": b""}),
        pb.Payload(data=b"x", external_payloads=[pb.Payload.ExternalPayloadDetails(size_bytes=7)]),
        pb.Payload(),
    ],
)
def test_what_was_written_comes_back(payload: pb.Payload) -> None:
    assert to_payload(payload_of(payload)) == payload


def test_json_payloads_share_their_metadata() -> None:
    assert payload_of(pb.Payload(metadata={"encoding": b"json/plain"})).metadata is JSON_METADATA
