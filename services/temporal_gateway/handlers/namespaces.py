"""Namespaces."""

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.enums import NamespaceState
from stepwell.api.errors import InvalidArgument
from stepwell.api.namespaces import NamespaceInfo
from temporalio.api.enums.v1 import ArchivalState
from temporalio.api.enums.v1 import NamespaceState as PbNamespaceState
from temporalio.api.namespace.v1 import message_pb2 as namespace_pb2
from temporalio.api.replication.v1 import message_pb2 as replication_pb2
from temporalio.api.workflowservice.v1 import request_response_pb2 as pb

from ..gateway import Call, Gateway, Handlers
from ..names import number
from ..times import duration, timedelta_of
from .system import CLUSTER

CAPABILITIES = namespace_pb2.NamespaceInfo.Capabilities(
    eager_workflow_start=True,
    sync_update=True,
    async_update=True,
    standalone_activities=True,
    standalone_activity_start_delay=True,
    standalone_activity_operator_commands=True,
    standalone_activity_batch_operations=True,
)
"""Only what we have, as in ``system``."""


async def register_namespace(
    gateway: Gateway, request: pb.RegisterNamespaceRequest, call: Call
) -> pb.RegisterNamespaceResponse:
    await gateway.call(
        o.REGISTER_NAMESPACE,
        r.RegisterNamespaceRequest(
            namespace=request.namespace,
            description=request.description,
            owner_email=request.owner_email,
            data=dict(request.data),
            retention=timedelta_of(request.workflow_execution_retention_period),
            archival=_archival(request) or False,
        ),
    )
    return pb.RegisterNamespaceResponse()


async def describe_namespace(
    gateway: Gateway, request: pb.DescribeNamespaceRequest, call: Call
) -> pb.DescribeNamespaceResponse:
    if not request.namespace:
        raise InvalidArgument("namespace is empty; name it, as ids are not looked up here", field="namespace")
    answer = await gateway.call(o.DESCRIBE_NAMESPACE, r.DescribeNamespaceRequest(namespace=request.namespace))
    return _described(answer.info)


async def update_namespace(
    gateway: Gateway, request: pb.UpdateNamespaceRequest, call: Call
) -> pb.UpdateNamespaceResponse:
    said, config = request.update_info, request.config
    answer = await gateway.call(
        o.UPDATE_NAMESPACE,
        r.UpdateNamespaceRequest(
            namespace=request.namespace,
            description=said.description or None,
            owner_email=said.owner_email or None,
            data=dict(said.data) or None,
            retention=timedelta_of(config.workflow_execution_retention_ttl),
            archival=_archival(config),
        ),
    )
    described = _described(answer.info)
    return pb.UpdateNamespaceResponse(
        namespace_info=described.namespace_info,
        config=described.config,
        replication_config=described.replication_config,
    )


async def deprecate_namespace(
    gateway: Gateway, request: pb.DeprecateNamespaceRequest, call: Call
) -> pb.DeprecateNamespaceResponse:
    await gateway.call(o.DEPRECATE_NAMESPACE, r.DeprecateNamespaceRequest(namespace=request.namespace))
    return pb.DeprecateNamespaceResponse()


async def list_namespaces(gateway: Gateway, request: pb.ListNamespacesRequest, call: Call) -> pb.ListNamespacesResponse:
    asked = r.ListNamespacesRequest(next_page_token=request.next_page_token)
    if request.page_size:
        asked = r.ListNamespacesRequest(page_size=request.page_size, next_page_token=request.next_page_token)
    answer = await gateway.call(o.LIST_NAMESPACES, asked)
    return pb.ListNamespacesResponse(
        namespaces=[_described(info) for info in answer.namespaces], next_page_token=answer.next_page_token
    )


def _archival(said: pb.RegisterNamespaceRequest | namespace_pb2.NamespaceConfig) -> bool | None:
    """Theirs has two switches and two places, ours one of each. Raises InvalidArgument for what it cannot be."""
    if said.history_archival_uri or said.visibility_archival_uri:
        raise InvalidArgument(
            "an archival URI is given, but an installation has one archive, in a place of its own; leave it out",
            field="history_archival_uri" if said.history_archival_uri else "visibility_archival_uri",
        )
    states = {said.history_archival_state, said.visibility_archival_state}
    states -= {ArchivalState.ARCHIVAL_STATE_UNSPECIFIED}
    if len(states) > 1:
        raise InvalidArgument(
            "histories and what lists show of them are archived together; set both archival states alike",
            field="visibility_archival_state",
        )
    return ArchivalState.ARCHIVAL_STATE_ENABLED in states if states else None


def _described(info: NamespaceInfo) -> pb.DescribeNamespaceResponse:
    archival = ArchivalState.ARCHIVAL_STATE_ENABLED if info.archival else ArchivalState.ARCHIVAL_STATE_DISABLED
    state: PbNamespaceState.ValueType = number(NamespaceState(info.state), "NAMESPACE_STATE_", PbNamespaceState)
    return pb.DescribeNamespaceResponse(
        namespace_info=namespace_pb2.NamespaceInfo(
            name=info.name,
            state=state,
            description=info.description,
            owner_email=info.owner_email,
            data=info.data,
            id=info.id,
            capabilities=CAPABILITIES,
        ),
        config=namespace_pb2.NamespaceConfig(
            workflow_execution_retention_ttl=duration(info.retention),
            history_archival_state=archival,
            visibility_archival_state=archival,
        ),
        replication_config=replication_pb2.NamespaceReplicationConfig(
            active_cluster_name=CLUSTER, clusters=[replication_pb2.ClusterReplicationConfig(cluster_name=CLUSTER)]
        ),
    )


HANDLERS: Handlers = {
    "RegisterNamespace": register_namespace,
    "DescribeNamespace": describe_namespace,
    "UpdateNamespace": update_namespace,
    "DeprecateNamespace": deprecate_namespace,
    "ListNamespaces": list_namespaces,
}
