"""The HTTP transport against a real server that fails in the ways servers fail."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from aiohttp import web
from stepwell.api.codec import decode_json, encode_json
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import Internal, NotFound, Unavailable
from stepwell.api.operations import POLL_WORKFLOW_TASK, SIGNAL_WORKFLOW, TERMINATE_WORKFLOW
from stepwell.api.requests import (
    PollWorkflowTaskRequest,
    PollWorkflowTaskResponse,
    SignalWorkflowRequest,
    SignalWorkflowResponse,
    TerminateWorkflowRequest,
    WorkerInfo,
)
from stepwell.transport.http import TOTAL_WAIT, HttpTransport
from stepwell.transport.loopback import is_loopback

SIGNAL = SignalWorkflowRequest(
    execution=WorkflowExecution(workflow_id="a/b ä"), signal_name="go", request_id="r1", input=()
)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """Answers with its handlers in turn, the last one for ever."""

    def __init__(self, *handlers: Handler, port: int = 0) -> None:
        self._handlers = list(handlers)
        self._port = port
        self.requests: list[tuple[str, bytes]] = []

    async def __aenter__(self) -> "Server":
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.raw_path, await request.read()))
        handler = self._handlers.pop(0) if len(self._handlers) > 1 else self._handlers[0]
        return await handler(request)


async def ok(request: web.Request) -> web.StreamResponse:
    return web.Response(body=encode_json(SignalWorkflowResponse()))


async def broken(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def unavailable(request: web.Request) -> web.StreamResponse:
    return web.Response(status=503, body=encode_json(Unavailable("stopping").body()))


async def unknown(request: web.Request) -> web.StreamResponse:
    return web.Response(status=404, body=encode_json(NotFound("no such workflow", field="workflow_id").body()))


async def page(request: web.Request) -> web.StreamResponse:
    return web.Response(status=404, text="<h1>nginx</h1>")


async def signal(url: str, **options: float) -> SignalWorkflowResponse:
    transport = HttpTransport(url, **options)
    try:
        return await transport.call(SIGNAL_WORKFLOW, SIGNAL)
    finally:
        await transport.close()


async def test_path_and_body() -> None:
    async with Server(ok) as server:
        assert await signal(server.url) == SignalWorkflowResponse()
    path, body = server.requests[0]
    assert path == "/api/v1/namespaces/default/workflows/a%2Fb%20%C3%A4/signal"
    assert decode_json(body, SignalWorkflowRequest) == SIGNAL


async def test_path_prefix_is_kept() -> None:
    async with Server(ok) as server:
        await signal(server.url + "/stage/")
    assert server.requests[0][0].startswith("/stage/api/v1/")


async def test_broken_connections_and_outages_are_repeated_with_the_same_bytes() -> None:
    async with Server(broken, unavailable, broken, ok) as server:
        await signal(server.url)
    assert len(server.requests) == 4 and len(set(server.requests)) == 1


async def test_what_may_not_be_repeated_is_not() -> None:
    request = TerminateWorkflowRequest(execution=WorkflowExecution(workflow_id="w"))
    async with Server(broken, ok) as server:
        transport = HttpTransport(server.url)
        with pytest.raises(Unavailable):
            await transport.call(TERMINATE_WORKFLOW, request)
        await transport.close()
    assert len(server.requests) == 1


async def test_refusals_keep_code_and_details() -> None:
    async with Server(unknown) as server:
        with pytest.raises(NotFound, match="no such workflow") as caught:
            await signal(server.url)
    assert caught.value.details == {"field": "workflow_id"} and len(server.requests) == 1


async def test_an_answer_that_is_not_ours_says_so() -> None:
    async with Server(page) as server:
        with pytest.raises(Internal, match="not an answer of a Stepwell engine"):
            await signal(server.url)


async def test_nobody_there_is_given_up_within_the_total_wait() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        began = time.monotonic()
        with pytest.raises(Unavailable, match=r"No answer from .* to SignalWorkflow: Connection refused$"):
            await signal(f"http://127.0.0.1:{reserved.getsockname()[1]}", total_wait=0.5)
    assert time.monotonic() - began < TOTAL_WAIT / 2, "it waited as long as calls wait that say nothing of it"


async def test_server_that_comes_back_is_found_again() -> None:
    async with Server(ok) as server:
        port = int(server.url.rpartition(":")[2])
        transport = HttpTransport(server.url)
        await transport.call(SIGNAL_WORKFLOW, SIGNAL)
    call = asyncio.create_task(transport.call(SIGNAL_WORKFLOW, SIGNAL))
    await asyncio.sleep(0.3)
    async with Server(ok, port=port):
        assert await call == SignalWorkflowResponse()
        await transport.close()


async def test_long_polls_do_not_hold_up_other_calls() -> None:
    held, all_held, signalled = 0, asyncio.Event(), asyncio.Event()

    async def poll(request: web.Request) -> web.StreamResponse:
        nonlocal held
        if "poll" in request.path:
            held += 1
            if held == 150:
                all_held.set()
            await signalled.wait()
            return web.Response(body=encode_json(PollWorkflowTaskResponse()))
        return await ok(request)

    request = PollWorkflowTaskRequest(task_queue="q", worker=WorkerInfo(identity="me"), timeout=timedelta(seconds=60))
    async with Server(poll) as server:
        transport = HttpTransport(server.url)
        polls = [asyncio.create_task(transport.call(POLL_WORKFLOW_TASK, request)) for _ in range(150)]
        async with asyncio.timeout(30):
            await all_held.wait()
            await transport.call(SIGNAL_WORKFLOW, SIGNAL)
        assert not any(poll.done() for poll in polls)
        signalled.set()
        await asyncio.gather(*polls)
        await transport.close()


async def test_proxies_of_the_environment_are_not_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with Server(ok) as server:
        await signal(server.url, total_wait=1.0)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("10.0.0.1", False), ("a.b", False)],
)
def test_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
