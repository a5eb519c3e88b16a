"""Namespaces by the unmodified SDK."""

from datetime import timedelta

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import ArchivalState
from temporalio.api.namespace.v1 import NamespaceConfig, UpdateNamespaceInfo
from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    ListArchivedWorkflowExecutionsRequest,
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


async def test_archival_is_one_switch(client: Client) -> None:
    service, on, off = (
        client.workflow_service,
        ArchivalState.ARCHIVAL_STATE_ENABLED,
        ArchivalState.ARCHIVAL_STATE_DISABLED,
    )
    retention = Duration(seconds=DAYS)
    await service.register_namespace(
        RegisterNamespaceRequest(
            namespace="kept", workflow_execution_retention_period=retention, history_archival_state=on
        )
    )
    described = await service.describe_namespace(DescribeNamespaceRequest(namespace="kept"))
    assert described.config.history_archival_state == described.config.visibility_archival_state == on
    found = await service.list_archived_workflow_executions(ListArchivedWorkflowExecutionsRequest(namespace="kept"))
    assert not found.executions and not found.next_page_token
    for config, field in (
        (NamespaceConfig(history_archival_state=on, visibility_archival_state=off), "set both archival states alike"),
        (NamespaceConfig(history_archival_uri="file:///elsewhere"), "leave it out"),
    ):
        with pytest.raises(RPCError, match=field) as refused:
            await service.update_namespace(UpdateNamespaceRequest(namespace="kept", config=config))
        assert refused.value.status is RPCStatusCode.INVALID_ARGUMENT
    both_off = NamespaceConfig(history_archival_state=off, visibility_archival_state=off)
    await service.update_namespace(UpdateNamespaceRequest(namespace="kept", config=NamespaceConfig()))
    assert (await service.describe_namespace(DescribeNamespaceRequest(namespace="kept"))).config == described.config
    answer = await service.update_namespace(UpdateNamespaceRequest(namespace="kept", config=both_off))
    assert answer.config.history_archival_state == off
