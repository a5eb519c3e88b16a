"""The gateway's HTTP/2, asked by another gRPC: refusals, callers who leave, health, and its end."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from temporalio.api.workflowservice.v1 import request_response_pb2 as pb

from stepwell_server.adapters.system import SystemIds
from stepwell_server.entrypoints.hosting import HostedEngine
from stepwell_server.frontend.calls import Calls
from stepwell_server.temporal_gateway.answering import SERVICE
from stepwell_server.temporal_gateway.http2 import Http2Server
from stepwell_server.temporal_gateway.server import GatewayServer
from tests.support.cases import until

POLL = pb.PollWorkflowTaskQueueRequest(namespace="default", task_queue={"name": "q"}, identity="w")


class Gateway:
    def __init__(self, hosted: HostedEngine, server: GatewayServer, channel: Any) -> None:
        self.hosted, self.server, self.channel = hosted, server, channel

    def call(self, name: str, request: Any, **options: Any) -> Any:
        method = self.channel.unary_unary(
            f"/{SERVICE}/{name}",
            request_serializer=lambda message: message if isinstance(message, bytes) else message.SerializeToString(),
            response_deserializer=getattr(pb, f"{name}Response", pb.GetSystemInfoResponse).FromString,
        )
        return method(request, **options)


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    hosted = await HostedEngine.start(":memory:")
    server = GatewayServer(Calls(hosted.engine, hosted.limiter), "1.0", SystemIds())
    port = await server.start("127.0.0.1", 0)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Gateway(hosted, server, channel)
    await server.stop()
    await hosted.stop()


async def refused(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await call
    return error.value


async def test_calls_and_refusals(gateway: Gateway) -> None:
    info = await gateway.call("GetSystemInfo", pb.GetSystemInfoRequest(), compression=grpc.Compression.Gzip)
    assert info.capabilities.signal_and_query_header
    wrong = await refused(gateway.call("DescribeWorkflowExecution", pb.DescribeWorkflowExecutionRequest()))
    assert wrong.code() is grpc.StatusCode.INVALID_ARGUMENT and "namespace is empty" in str(wrong.details())
    absent = await refused(gateway.call("CreateWorkflowRule", pb.GetSystemInfoRequest()))
    assert absent.code() is grpc.StatusCode.UNIMPLEMENTED and "docs/temporal-compatibility.md" in str(absent.details())
    damaged = await refused(gateway.call("StartWorkflowExecution", b"\xff\xff no protobuf"))
    assert damaged.code() is grpc.StatusCode.INVALID_ARGUMENT
    large = await refused(gateway.call("StartWorkflowExecution", bytes(17 * 1024 * 1024)))
    assert large.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_caller_who_leaves_ends_its_poll_and_what_comes_is_for_the_next(gateway: Gateway) -> None:
    poll = gateway.call("PollWorkflowTaskQueue", POLL, timeout=60)

    def polls() -> int:
        described = gateway.server._over._application._held  # type: ignore[union-attr]
        return len(described)

    async def is_held() -> bool:
        return polls() == 1

    async def is_over() -> bool:
        return polls() == 0

    asking = asyncio.ensure_future(poll)
    await until(is_held)
    asking.cancel()
    await until(is_over)
    await start_one(gateway)
    task = await gateway.call("PollWorkflowTaskQueue", POLL, timeout=30)
    assert task.workflow_execution.workflow_id == "w" and len(task.history.events) == 3


async def test_calls_that_are_open_outlive_thousands_of_others(gateway: Gateway) -> None:
    """The parser cuts a connection off at its 4,096th call (docs/adr/0012)."""
    poll = asyncio.ensure_future(gateway.call("PollWorkflowTaskQueue", POLL, timeout=100))
    for _ in range(100):
        await asyncio.gather(*[gateway.call("GetSystemInfo", pb.GetSystemInfoRequest()) for _ in range(50)])
    assert not poll.done()
    await start_one(gateway)
    assert (await poll).workflow_execution.workflow_id == "w"


async def test_calls_that_are_open_outlive_hundreds_that_were_called_off(gateway: Gateway) -> None:
    """Likewise at the 256th."""
    poll = asyncio.ensure_future(gateway.call("PollWorkflowTaskQueue", POLL, timeout=100))
    other = pb.PollWorkflowTaskQueueRequest(namespace="default", task_queue={"name": "other"}, identity="w")
    over = gateway.server._over
    assert isinstance(over, Http2Server)
    held = over._application._held

    async def only_the_first() -> bool:
        return len(held) == 1

    async def all_of_them() -> bool:
        return len(held) == 51

    for _ in range(6):
        more = [asyncio.ensure_future(gateway.call("PollWorkflowTaskQueue", other, timeout=60)) for _ in range(50)]
        await until(all_of_them)
        for one in more:
            one.cancel()
        await until(only_the_first)
    assert not poll.done()
    await start_one(gateway)
    assert (await poll).workflow_execution.workflow_id == "w"


async def start_one(gateway: Gateway) -> None:
    start = pb.StartWorkflowExecutionRequest(
        namespace="default", workflow_id="w", workflow_type={"name": "t"}, task_queue={"name": "q"}, request_id="1"
    )
    await gateway.call("StartWorkflowExecution", start)


async def test_health_is_checked_and_watched_until_the_server_stops(gateway: Gateway) -> None:
    health = health_pb2_grpc.HealthStub(gateway.channel)
    serving = health_pb2.HealthCheckResponse.SERVING
    assert (await health.Check(health_pb2.HealthCheckRequest(service=SERVICE))).status == serving
    unknown = await refused(health.Check(health_pb2.HealthCheckRequest(service="none")))
    assert unknown.code() is grpc.StatusCode.NOT_FOUND
    watch = health.Watch(health_pb2.HealthCheckRequest(service=""))
    assert (await watch.read()).status == serving
    poll = asyncio.ensure_future(gateway.call("PollWorkflowTaskQueue", POLL, timeout=60))
    await asyncio.sleep(0)
    await gateway.server.stop()
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
    assert (await refused(poll)).code() is grpc.StatusCode.UNAVAILABLE


async def test_what_is_no_grpc_is_told_so(gateway: Gateway) -> None:
    port = gateway.server._over._server.servers[0].sockets[0].getsockname()[1]  # type: ignore[union-attr]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    await asyncio.wait_for(reader.read(), 20)  # HTTP/2 has no answer for it; the connection ends
    writer.close()
    await writer.wait_closed()
