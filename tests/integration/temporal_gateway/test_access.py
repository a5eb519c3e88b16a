"""Beyond loopback: the unmodified SDK over TLS, by API key or client certificate, and what each of them reaches."""

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio import workflow
from temporalio.api.workflowservice.v1 import (
    ListNamespacesRequest,
    PauseActivityExecutionRequest,
    RegisterNamespaceRequest,
    RespondActivityTaskCompletedByIdRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode, TLSConfig
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from stepwell_server.adapters.system import SystemIds
from stepwell_server.entrypoints.hosting import HostedEngine
from stepwell_server.frontend.calls import Calls
from stepwell_server.frontend.roles import OPERATIONS
from stepwell_server.temporal_gateway.access import Access, ApiKey, ClientCertificate, Grant, Tls
from stepwell_server.temporal_gateway.server import GatewayServer
from tests.support.certificates import Pem, authority

APPLICATION = ("starter", "reader", "worker")


@workflow.defn
class Invoice:
    @workflow.run
    async def run(self) -> str:
        return "paid"


def api_key(name: str, namespace: str, *roles: str) -> ApiKey:
    return ApiKey(hashlib.sha256(f"key of {name}".encode()).digest(), Grant(f"API key {name!r}", (namespace,), roles))


KEYS = [
    api_key("billing", "billing", *APPLICATION),
    api_key("shop", "shop", *APPLICATION),
    api_key("viewer", "*", "reader"),
    api_key("team", "b*", "administrator"),
]


@asynccontextmanager
async def gateway(access: Access, *, asks_for_certificates: bool) -> AsyncIterator[str]:
    hosted = await HostedEngine.start(":memory:")
    server = GatewayServer(Calls(hosted.engine, hosted.limiter), "1.0", SystemIds(), access)
    own = authority().issue("server")
    ca = authority().certificate if asks_for_certificates else None
    try:
        port = await server.start("127.0.0.1", 0, Tls(own.certificate, own.key, ca))
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(0)
        await hosted.stop()


async def connect(address: str, name: str | None = None, namespace: str = "billing", own: Pem | None = None) -> Client:
    tls = TLSConfig(
        server_root_ca_cert=authority().certificate,
        client_cert=own and own.certificate,
        client_private_key=own and own.key,
    )
    return await Client.connect(address, tls=tls, namespace=namespace, api_key=name and f"key of {name}")


async def refused(call: Callable[[], Awaitable[object]], status: RPCStatusCode, says: str) -> None:
    with pytest.raises(RPCError, match=says) as refusal:
        await call()
    assert refusal.value.status is status and "key of" not in refusal.value.message


async def register(client: Client, namespace: str) -> None:
    retention = Duration(seconds=86_400)
    asked = RegisterNamespaceRequest(namespace=namespace, workflow_execution_retention_period=retention)
    await client.workflow_service.register_namespace(asked)


async def listed(client: Client) -> set[str]:
    answer = await client.workflow_service.list_namespaces(ListNamespacesRequest())
    return {each.namespace_info.name for each in answer.namespaces}


async def test_a_key_reaches_its_namespaces_and_does_what_its_roles_may() -> None:
    async with gateway(Access(KEYS, [], OPERATIONS), asks_for_certificates=False) as address:
        administrator = await connect(address, "team")
        for namespace in ("billing", "bids"):
            await register(administrator, namespace)
        assert await listed(administrator) == {"billing", "bids"}, "and not the default one"
        billing = await connect(address, "billing")
        async with Worker(billing, task_queue="q", workflows=[Invoice], workflow_runner=UnsandboxedWorkflowRunner()):
            assert await billing.execute_workflow(Invoice.run, id="inv", task_queue="q") == "paid"
        foreign = await connect(address, "billing", "shop")
        denied, unknown = RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED
        await refused(
            lambda: foreign.start_workflow("any", id="w", task_queue="q"), denied, "does not reach namespace 'shop'"
        )
        await refused(lambda: register(administrator, "shop"), denied, "API key 'team' does not reach")
        viewer = await connect(address, "viewer")
        assert (await viewer.get_workflow_handle("inv").describe()).workflow_type == "Invoice"
        await refused(viewer.get_workflow_handle("inv").terminate, denied, "one of the roles operator")
        assert await listed(billing) == {"billing"} and await listed(viewer) >= {"billing", "bids", "default"}
        await _pages_name_nothing_else(administrator)
        await _strangers_are_not_read(address)
        with pytest.raises(RuntimeError, match="no credentials that this server takes; connect with an API key"):
            await connect(address)
        with pytest.raises(RuntimeError, match="not known to this server") as stranger:
            await connect(address, "nobody")
        assert "key of" not in str(stranger.value)
        billing.api_key = "key of nobody"
        await refused(billing.get_workflow_handle("inv").describe, unknown, "add its SHA-256")
        assert await billing.service_client.check_health(), "which whoever balances load asks without any"


async def test_the_role_for_activities_alone_does_not_reach_those_of_workflows() -> None:
    """Nor the other way round: one RPC is for both, and the request says which."""
    keys = [api_key("alone", "*", "activity-operator"), api_key("operator", "*", "operator")]
    async with gateway(Access(keys, [], OPERATIONS), asks_for_certificates=False) as address:
        for name, workflow_id, ours in (
            ("alone", "", True),
            ("alone", "inv", False),
            ("operator", "", False),
            ("operator", "inv", True),
        ):
            client = await connect(address, name)
            asked: dict[str, Any] = {"namespace": "billing", "workflow_id": workflow_id, "activity_id": "a"}
            paused, completed = PauseActivityExecutionRequest(**asked), RespondActivityTaskCompletedByIdRequest(**asked)
            service = client.workflow_service
            status, says = RPCStatusCode.NOT_FOUND, "a"
            if not ours:
                status, says = RPCStatusCode.PERMISSION_DENIED, f"API key '{name}' may not call .*Activity"
            await refused(partial(service.pause_activity_execution, paused), status, says)
            await refused(partial(service.respond_activity_task_completed_by_id, completed), status, says)


async def _pages_name_nothing_else(administrator: Client) -> None:
    """Of all namespaces there are billing, bids and default: a key of ``b*`` never hears of the last, in no token."""
    seen, token = [], b""
    while True:
        request = ListNamespacesRequest(page_size=1, next_page_token=token)
        page = await administrator.workflow_service.list_namespaces(request)
        seen += [each.namespace_info.name for each in page.namespaces]
        token = page.next_page_token
        assert not token or token.decode() in seen
        if not token:
            break
    assert sorted(seen) == ["bids", "billing"]


async def _strangers_are_not_read(address: str) -> None:
    """Who sends no credentials is refused for that, whatever else is wrong; who has some is told what it is."""
    credentials = grpc.ssl_channel_credentials(authority().certificate)
    async with grpc.aio.secure_channel(address, credentials) as channel:
        call = channel.unary_unary("/temporal.api.workflowservice.v1.WorkflowService/DescribeWorkflowExecution")
        no_path = channel.unary_unary("/temporal.api.x")
        known = (("authorization", "Bearer key of billing"),)
        for rpc, metadata, status in (
            (call, (), grpc.StatusCode.UNAUTHENTICATED),
            (call, (("authorization", "Bearer "),), grpc.StatusCode.UNAUTHENTICATED),
            (call, known, grpc.StatusCode.INVALID_ARGUMENT),
            (no_path, known, grpc.StatusCode.UNIMPLEMENTED),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refusal:
                await rpc(b"\xff\xff", metadata=metadata)
            assert refusal.value.code() is status, refusal.value.details()


async def test_a_client_certificate_is_known_by_its_names_or_its_fingerprint() -> None:
    by_name, by_fingerprint, stranger = (authority().issue(name) for name in ("billing", "shop", "stranger"))
    certificates = [
        ClientCertificate("billing.example.com", b"", Grant("client certificate 'b'", ("billing",), APPLICATION)),
        ClientCertificate(
            "", bytes.fromhex(by_fingerprint.fingerprint), Grant("client certificate 's'", ("shop",), ())
        ),
    ]
    async with gateway(Access(KEYS, certificates, OPERATIONS), asks_for_certificates=True) as address:
        await register(await connect(address, "team", own=stranger), "billing")
        client = await connect(address, own=by_name)
        assert (await client.start_workflow("Invoice", id="inv", task_queue="q")).first_execution_run_id
        foreign = await connect(address, own=by_name, namespace="shop")
        denied = RPCStatusCode.PERMISSION_DENIED
        await refused(foreign.get_workflow_handle("w").describe, denied, "certificate 'b' does not reach")
        with pytest.raises(RuntimeError, match="certificate 's' may not call GetSystemInfo"):
            await connect(address, own=by_fingerprint)
        with pytest.raises(RuntimeError, match=stranger.fingerprint):
            await connect(address, own=stranger)
        with pytest.raises(RuntimeError):
            await connect(address, "billing")
        with pytest.raises(RuntimeError):
            await connect(address, own=type(authority())("others").issue("billing"))
