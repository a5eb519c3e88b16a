"""The HTTP server on whatever listening socket it is given."""

import asyncio
import socket

from stepwell_server.entrypoints.hosting import HostedEngine
from stepwell_server.entrypoints.http_server import HttpServer
from stepwell_server.frontend.asgi import Application
from stepwell_server.frontend.guard import LoopbackGuard
from tests.support.api_server import served_api

HEAD = "POST /api/v1/system-info HTTP/1.1\r\ncontent-type: application/json\r\n"


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


async def test_head_and_body_of_an_answer_arrive_together() -> None:
    async with served_api() as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        head = (
            f"POST /api/v1/system-info HTTP/1.1\r\nhost: 127.0.0.1:{served.port}\r\ncontent-type: application/json\r\n"
        )
        for _ in range(20):
            writer.write(f"{head}content-length: 2\r\n\r\n{{}}".encode())
            answer = await reader.read(2**16)
            assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"}")
        writer.close()


async def test_a_caller_that_waits_to_be_told_may_send_its_body() -> None:
    async with served_api() as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        head = (
            f"POST /api/v1/system-info HTTP/1.1\r\nhost: 127.0.0.1:{served.port}\r\ncontent-type: application/json\r\n"
        )
        writer.write(f"{head}expect: 100-continue\r\ncontent-length: 2\r\n\r\n".encode())
        async with asyncio.timeout(30):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
            writer.write(b"{}")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        writer.close()
