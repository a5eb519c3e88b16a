"""The table of RPCs."""

import grpc
from stepwell.api import errors as e
from temporalio.api.common.v1.grpc_status_pb2 import GrpcStatus
from temporalio.api.errordetails.v1 import message_pb2 as pb

from stepwell_server.temporal_gateway.errors import refusal
from stepwell_server.temporal_gateway.server import RPCS


def test_every_name_is_an_rpc_with_its_own_request() -> None:
    for path, found in RPCS.items():
        assert path.endswith(f"/{found.name}")
        assert found.request_type.DESCRIPTOR.name == f"{found.name}Request"


def test_every_refusal_has_a_status() -> None:
    for kind in e.ERRORS:
        refused = refusal(kind("no"))
        assert (refused.code is grpc.StatusCode.INTERNAL) == (kind is e.Internal)
        ((name, status),) = refused.trailing_metadata()
        assert name == "grpc-status-details-bin"
        assert GrpcStatus.FromString(status).code == refused.code.value[0]


def test_details_say_which_run_holds_the_id() -> None:
    refused = refusal(e.WorkflowExecutionAlreadyStarted("it is there", run_id="r"))
    details = pb.WorkflowExecutionAlreadyStartedFailure()
    assert GrpcStatus.FromString(refused.trailing_metadata()[0][1]).details[0].Unpack(details)
    assert details.run_id == "r"
