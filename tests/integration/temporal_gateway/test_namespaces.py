"""Namespaces by the unmodified SDK."""

from datetime import timedelta

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.namespace.v1 import NamespaceConfig, UpdateNamespaceInfo
from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    ListNamespacesRequest,
    RegisterNamespaceRequest,
    UpdateNamespaceRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

DAYS = int(timedelta(days=3).total_seconds())


async def test_a_namespace_is_registered_changed_and_found(client: Client) -> None:
    service = client.workflow_service
    asked = RegisterNamespaceRequest(
        namespace="team", description="ours", workflow_execution_retention_period=Duration(seconds=DAYS)
    )
    await service.register_namespace(asked)
    with pytest.raises(RPCError) as taken:
        await service.register_namespace(asked)
    assert taken.value.status is RPCStatusCode.ALREADY_EXISTS
    config = NamespaceConfig(workflow_execution_retention_ttl=Duration(seconds=2 * DAYS))
    changed = UpdateNamespaceInfo(owner_email="team@example.org")
    await service.update_namespace(UpdateNamespaceRequest(namespace="team", update_info=changed, config=config))
    described = await service.describe_namespace(DescribeNamespaceRequest(namespace="team"))
    assert (described.namespace_info.description, described.namespace_info.owner_email) == ("ours", "team@example.org")
    assert described.config.workflow_execution_retention_ttl.seconds == 2 * DAYS
    names = [one.namespace_info.name for one in (await service.list_namespaces(ListNamespacesRequest())).namespaces]
    assert "team" in names
    with pytest.raises(RPCError) as unknown:
        await service.describe_namespace(DescribeNamespaceRequest(namespace="nobody"))
    assert unknown.value.status is RPCStatusCode.NOT_FOUND
