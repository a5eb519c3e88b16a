"""The server itself: its version, and what it can do."""

from stepwell.api import operations as o
from stepwell.api import requests as r
from temporalio.api.workflowservice.v1 import request_response_pb2 as pb

from ..gateway import Call, Gateway, Handlers

CLUSTER = "stepwell"

CAPABILITIES = pb.GetSystemInfoResponse.Capabilities(
    signal_and_query_header=True,
    supports_schedules=True,
    internal_error_differentiation=True,
    activity_failure_include_heartbeat=True,
    encoded_failure_attributes=True,
    upsert_memo=True,
    eager_workflow_start=True,
    count_group_by_execution_status=True,
    sdk_metadata=True,
)
"""Only what we have: SDKs do what this says and nothing beyond."""


async def get_system_info(gateway: Gateway, request: pb.GetSystemInfoRequest, call: Call) -> pb.GetSystemInfoResponse:
    return pb.GetSystemInfoResponse(server_version=gateway.server_version, capabilities=CAPABILITIES)


async def get_cluster_info(
    gateway: Gateway, request: pb.GetClusterInfoRequest, call: Call
) -> pb.GetClusterInfoResponse:
    info = await gateway.call(o.GET_SYSTEM_INFO, r.GetSystemInfoRequest())
    return pb.GetClusterInfoResponse(
        server_version=gateway.server_version,
        cluster_id=CLUSTER,
        cluster_name=CLUSTER,
        persistence_store=info.database,
        visibility_store=info.database,
    )


HANDLERS: Handlers = {"GetSystemInfo": get_system_info, "GetClusterInfo": get_cluster_info}
