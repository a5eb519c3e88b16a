"""The HTTP server on whatever listening socket it is given."""

import asyncio
import socket

from stepwell_server.entrypoints.hosting import HostedEngine
from stepwell_server.entrypoints.http_server import HttpServer
from stepwell_server.frontend.asgi import Application
from stepwell_server.frontend.guard import LoopbackGuard


async def test_answers_do_not_wait_for_acknowledgements() -> None:
    """A socket made without naming TCP gets Nagle's algorithm on asyncio's loop: 40 ms for each small answer."""
    hosted = await HostedEngine.start(":memory:")
    listener = socket.create_server(("127.0.0.1", 0))
    kept = listener.dup()
    guard = LoopbackGuard(kept.getsockname()[1])
    server = HttpServer(Application(hosted.engine, guard=guard, database="memory", version="0"))
    serving = asyncio.create_task(server.serve(listener))
    try:
        _, writer = await asyncio.open_connection(*kept.getsockname()[:2])
        assert kept.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
        writer.close()
        await writer.wait_closed()
    finally:
        server.stop()
        await serving
        kept.close()
        await hosted.stop()
