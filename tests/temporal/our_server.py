"""A gateway on an embedded engine in memory, in this process: what ``real_server.running`` is for Temporal's server."""

import contextlib
from collections.abc import AsyncIterator

from stepwell_server.adapters.system import SystemIds
from stepwell_server.entrypoints.hosting import HostedEngine
from stepwell_server.frontend.calls import Calls
from stepwell_server.temporal_gateway.server import GatewayServer


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[str]:
    """Its address."""
    hosted = await HostedEngine.start(":memory:")
    server = GatewayServer(Calls(hosted.engine, hosted.limiter), "1.0", SystemIds())
    try:
        yield f"127.0.0.1:{await server.start('127.0.0.1', 0)}"
    finally:
        await server.stop(0)
        await hosted.stop()
