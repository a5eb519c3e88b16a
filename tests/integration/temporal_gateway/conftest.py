"""A gateway on an embedded engine in this process, on a free port, and the unmodified SDK's client of it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from temporalio.client import Client

from stepwell_server.adapters.system import SystemIds
from stepwell_server.entrypoints.hosting import HostedEngine
from stepwell_server.frontend.calls import Calls
from stepwell_server.temporal_gateway.server import GatewayServer


@dataclass(frozen=True)
class Served:
    hosted: HostedEngine
    calls: Calls
    address: str


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    hosted = await HostedEngine.start(":memory:")
    calls = Calls(hosted.engine, hosted.limiter)
    server = GatewayServer(calls, "1.0", SystemIds())
    try:
        port = await server.start("127.0.0.1", 0)
        yield Served(hosted, calls, f"127.0.0.1:{port}")
    finally:
        await server.stop(0)
        await hosted.stop()


@pytest.fixture
async def client(served: Served) -> Client:
    return await Client.connect(served.address)
