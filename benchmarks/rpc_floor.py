"""What one call costs a server in Python before it does anything: gRPC by grpc.aio, by uvicorn's HTTP/2 and as the
gateway has that on loopback, without ASGI, beside HTTP by uvicorn with httptools (as the API is). CPU of the server's
process per call that sends back what it was sent.

    python benchmarks/rpc_floor.py [--calls 4000]

Temporal's SDKs make three calls for a step of a workflow.
"""

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

BODY = b"x" * 300
"""About what a completion of one step has."""

AT_ONCE, RUNS = 8, 3
KINDS = ("grpc.aio", "http2", "gateway", "http")
Call = Callable[[], Awaitable[object]]


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


# --- the server, a process of its own: prints its port, and its CPU seconds for each line that it is sent ---


async def grpc_server() -> None:
    import grpc
    import grpc.aio

    async def echo(data: bytes, context: Any) -> bytes:
        return data

    class Router(grpc.GenericRpcHandler):  # type: ignore[misc] # grpc comes without types
        handler = grpc.unary_unary_rpc_method_handler(echo)

        def service(self, details: Any) -> Any:
            return self.handler

    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Router(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await tell(port)
    await server.stop(0)


async def http_server() -> None:
    import uvicorn

    async def echo(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        headers = [(b"content-length", str(len(message["body"])).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": message["body"]})

    await by_uvicorn(
        uvicorn.Config(echo, port=0, log_level="error", access_log=False, lifespan="off", http="httptools")
    )


async def by_uvicorn(config: Any) -> None:
    import uvicorn

    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    await tell(server.servers[0].sockets[0].getsockname()[1])
    server.should_exit = True
    await serving


async def http2_server() -> None:
    """gRPC's form, without reading it."""
    import uvicorn

    async def echo(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        while message.get("more_body"):
            message["body"] += (await receive())["body"]
        headers = [(b"content-type", b"application/grpc")]
        await send({"type": "http.response.start", "status": 200, "headers": headers, "trailers": True})
        await send({"type": "http.response.body", "body": message["body"]})
        await send({"type": "http.response.trailers", "headers": [(b"grpc-status", b"0")]})

    await by_uvicorn(uvicorn.Config(echo, port=0, log_level="error", access_log=False, lifespan="off", **_HTTP2))


class Echo:
    """In the place of the gateway's own ``Answering``; and of a message."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = data

    async def answer(self, found: Any, data: bytes, call: Any, caller: Any) -> "Echo":
        return Echo(data)

    def SerializeToString(self) -> bytes:
        return self.data


async def gateway_server() -> None:
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:0] = [root, os.path.join(root, "sdk")]
    from stepwell_server.temporal_gateway.answering import Served
    from stepwell_server.temporal_gateway.http2 import Http2Application, Http2Server

    answering: Any = Echo()
    handler: Any = None  # which Echo never asks
    server = Http2Server(Http2Application(answering, {"/floor/Echo": Served("Echo", None, handler)}, bool))
    await tell(await server.start("127.0.0.1", 0))
    await server.stop()


_HTTP2: dict[str, Any] = {"http": "zttp", "http2": True}


async def tell(port: int) -> None:
    print(port, flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(cpu(), flush=True)


# --- the client ---


async def grpc_calls(port: int, calls: int) -> None:
    import grpc.aio

    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        method = channel.unary_unary("/floor/Echo")
        await repeated(lambda: method(BODY), calls)


async def http_calls(port: int, calls: int) -> None:
    import aiohttp

    async with aiohttp.ClientSession() as session:

        async def call() -> None:
            async with session.post(f"http://127.0.0.1:{port}/", data=BODY) as answer:
                await answer.read()

        await repeated(call, calls)


async def repeated(call: Call, calls: int) -> None:
    async def some() -> None:
        for _ in range(calls // AT_ONCE):
            await call()

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))


def measured(kind: str, calls: int) -> float:
    """Microseconds of the server's CPU per call."""
    command = [sys.executable, __file__, "--serve", kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        port = int(server.stdout.readline())
        run = http_calls if kind == "http" else grpc_calls
        asyncio.run(run(port, AT_ONCE * 50))

        def used() -> float:
            assert server.stdin is not None and server.stdout is not None
            server.stdin.write("\n")
            server.stdin.flush()
            return float(server.stdout.readline())

        before = used()
        asyncio.run(run(port, calls))
        spent = used() - before
        server.stdin.close()
    return spent / calls * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=4_000)
    parser.add_argument("--serve", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        servers = {"grpc.aio": grpc_server, "http2": http2_server, "gateway": gateway_server, "http": http_server}
        try:
            from uvloop import run
        except ModuleNotFoundError:
            from asyncio import run
        run(servers[options.serve]())
        return
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(RUNS):
        for kind in KINDS:  # interleaved, since machines change their speed
            found[kind].append(measured(kind, options.calls))
            time.sleep(0.2)
    for kind, each in found.items():
        runs = ", ".join(f"{one:.0f}" for one in each)
        print(f"{kind}: {statistics.median(each):.0f} µs of CPU a call (runs: {runs})")


if __name__ == "__main__":
    main()
