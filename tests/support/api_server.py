"""The API of an engine over HTTP, in this process, on a port of its own."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from stepwell_server.common.metrics import NO_METRICS, Metrics
from stepwell_server.entrypoints.hosting import HostedEngine
from stepwell_server.entrypoints.http_server import HttpServer
from stepwell_server.frontend.asgi import Application
from stepwell_server.frontend.guard import LoopbackGuard


@dataclass(frozen=True)
class ServedApi:
    hosted: HostedEngine
    server: HttpServer
    port: int

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def served_api(path: str = ":memory:", metrics: Metrics = NO_METRICS) -> AsyncIterator[ServedApi]:
    hosted = await HostedEngine.start(path)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    application = Application(
        hosted.engine, guard=LoopbackGuard(port), database=hosted.backend.database, version="0", metrics=metrics
    )
    server = HttpServer(application)
    serving = asyncio.create_task(server.serve(listener))
    try:
        yield ServedApi(hosted, server, port)
    finally:
        server.stop()
        await serving
        await hosted.stop()
