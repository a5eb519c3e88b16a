"""The gateway on uvicorn's HTTP/2: gRPC in the clear, for loopback.

A call of grpc.aio takes four times the CPU of one of these before anything is done (benchmarks/rpc_floor.py). The
parser is young, so what comes from other machines never reaches it: beyond loopback grpc.aio serves (``server``).
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, cast

import grpc
import uvicorn
import zttp
from grpc_health.v1 import health_pb2
from uvicorn.protocols.http.zttp_h2_impl import ZttpH2Protocol

from . import messages
from .access import Access, Grant
from .answering import OF_TEMPORAL, Answering, Refused, Served, unimplemented
from .errors import Refusal
from .gateway import Call

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_HEALTH = "/grpc.health.v1.Health/"
_HEADERS: messages.Headers = [(b"content-type", b"application/grpc")]
_START = {"type": "http.response.start", "status": 200, "headers": _HEADERS, "trailers": True}
_KEEP_ALIVE_SECONDS = 24 * 3_600
"""SDKs keep a connection for as long as they live, and ping it."""

_GRACE_SECONDS = 1
_MOST_CALLS, _MOST_CALLED_OFF = 3_000, 128
"""Of one connection, of what its parser takes (``_Connection``): who has many calls open may begin some more, and call
all of them off, before it hears that it is to go."""

_LEFT_SECONDS = 60
"""How long a connection stays that was asked to go, and has no call."""

_WAITS = ("Poll", "Get", "Query", "Update", "Execute", "Describe", "Shutdown")
"""How names of calls begin that may be held: they end when their caller goes. Others are done once they have come."""


class GoneError(Exception):
    """The caller has left before its message had come."""


class Http2Application:
    """An ASGI application. ``serving`` says what health is asked for."""

    def __init__(self, answering: Answering, served: Mapping[str, Served], serving: Callable[[str], bool]) -> None:
        self._answering = answering
        self._served = served
        self._serving = serving
        self._held: set[asyncio.Future[Any]] = set()
        self._stopping = False

    def stop(self) -> None:
        """Calls that are held end."""
        self._stopping = True
        for work in self._held:
            work.cancel()

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if scope["method"] != "POST" or not headers.get(b"content-type", b"").startswith(b"application/grpc"):
            await _no_grpc(send)
            return
        path: str = scope["path"]
        with contextlib.suppress(GoneError):
            try:
                if path.startswith(_HEALTH):
                    await self._health(path, headers, receive, send)
                    return
                found = self._served.get(path)
                if found is None:
                    raise _not_there(path)
                body = await self._answer(found, headers, scope["headers"], receive)
            except Refused as error:
                await _end(send, messages.trailers_of(error.refused))
                return
            await _end(send, messages.SUCCESS, messages.framed(body))

    async def _answer(
        self, found: Served, headers: Mapping[bytes, bytes], metadata: messages.Headers, receive: Receive
    ) -> bytes:
        def caller(access: Access) -> Grant:
            # An intermediary would be trusted with nothing, so there is no other peer than what it sends.
            return access.caller([(name.decode("latin-1"), value) for name, value in metadata], {})

        data = messages.message_of(await _body(receive), headers)
        answering = self._answering.answer(found, data, Call(_left(headers)), caller)
        if found.name.startswith(_WAITS):
            response = await self._unless_it_goes(answering, receive)
        else:
            response = await answering
        serialized: bytes = response.SerializeToString()
        return serialized

    async def _unless_it_goes(self, answering: Awaitable[Any], receive: Receive) -> Any:
        """Cancelled when the caller leaves, or the server stops: then what was given out is taken back."""
        work, gone = asyncio.ensure_future(answering), asyncio.ensure_future(receive())
        self._held.add(work)
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise GoneError
            return work.result()
        except asyncio.CancelledError:
            if not self._stopping:
                raise
            raise Refused(Refusal(grpc.StatusCode.UNAVAILABLE, "the server is stopping; call again")) from None
        finally:
            self._held.discard(work)
            gone.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait({work})

    async def _health(self, path: str, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        """The standard service, of which ``Watch`` is the only stream that there is."""
        method = path.removeprefix(_HEALTH)
        if method not in ("Check", "Watch"):
            raise _not_there(path)
        asked = health_pb2.HealthCheckRequest.FromString(messages.message_of(await _body(receive), headers))
        known = self._serving(asked.service)
        response = health_pb2.HealthCheckResponse
        if method == "Check":
            if not known:
                raise Refused(Refusal(grpc.StatusCode.NOT_FOUND, "there is no such service"))
            await _end(send, messages.SUCCESS, messages.framed(response(status=response.SERVING).SerializeToString()))
            return
        await send(_START)
        status = response.SERVING if known else response.SERVICE_UNKNOWN
        await _part(send, response(status=status))
        with contextlib.suppress(Refused):
            await self._unless_it_goes(asyncio.Event().wait(), receive)
        await _part(send, response(status=response.NOT_SERVING), more=False)
        await send({"type": "http.response.trailers", "headers": messages.SUCCESS})


async def _body(receive: Receive) -> bytes:
    """Raises Refused, GoneError."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise GoneError
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        messages.check_size(size)
        more = message.get("more_body", False)
    return b"".join(parts)


def _left(headers: Mapping[bytes, bytes]) -> Callable[[], float | None]:
    timeout = messages.timeout_of(headers)
    if timeout is None:
        return lambda: None
    clock = asyncio.get_running_loop().time
    ends = clock() + timeout
    return lambda: ends - clock()


def _not_there(path: str) -> Refused:
    if path.startswith(OF_TEMPORAL):
        return Refused(Refusal(grpc.StatusCode.UNIMPLEMENTED, unimplemented(path)))
    return Refused(Refusal(grpc.StatusCode.UNIMPLEMENTED, "Method not found!"))


async def _end(send: Send, trailers: messages.Headers, body: bytes = b"") -> None:
    await send(_START)
    await send({"type": "http.response.body", "body": body})
    await send({"type": "http.response.trailers", "headers": trailers})


async def _part(send: Send, message: Any, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": messages.framed(message.SerializeToString()), "more_body": more})


async def _no_grpc(send: Send) -> None:
    """A browser, say."""
    words = b"This port speaks gRPC, for SDKs of Temporal.\n"
    await send({"type": "http.response.start", "status": 415, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": words})


class Http2Server:
    """Serves an application until ``stop``, which ends what is held."""

    def __init__(self, application: Http2Application) -> None:
        self._application = application
        self._server = _Server(
            uvicorn.Config(
                application,
                http=_Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                date_header=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )
        self._serving: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int) -> int:
        """The port. Raises OSError when it cannot be had."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=1_024)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]), name="gateway")
        bound: int = listener.getsockname()[1]
        return bound

    async def stop(self) -> None:
        self._application.stop()
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving


class _Connection(ZttpH2Protocol):
    """uvicorn's protocol, HTTP/2 alone. What is written within a turn of the loop leaves together: a response is three
    writes, and each would be a system call and a packet.

    The parser cuts a connection off, with all calls that it has open, at its 4,096th call and at its 256th that was
    called off, since it takes them for a flood; it has no setting for that. So the other side is asked well before to
    go on with a new connection. What it has begun until it hears that is answered here, long polls too.
    """

    _calls = 0
    _called_off = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, _Together(transport, self.loop)))

    def handle_request(self, event: zttp.Request) -> None:
        self._calls += 1
        if self._calls == _MOST_CALLS:
            self._ask_to_leave()
        super().handle_request(event)

    def handle_rst_stream(self, event: zttp.RstStream) -> None:
        self._called_off += 1
        if self._called_off == _MOST_CALLED_OFF:
            self._ask_to_leave()
        super().handle_rst_stream(event)

    def _ask_to_leave(self) -> None:
        self.timeout_keep_alive = _LEFT_SECONDS
        self.transport.write(messages.GOING_AWAY)

    def resume_reading_if_idle(self) -> None:
        """It looks at all streams that are open, polls too, though reading is hardly ever paused."""
        if self.flow.read_paused:
            super().resume_reading_if_idle()


class _Together:
    """A transport that keeps what is written until the loop's next turn."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._parts:
            parts, self._parts = self._parts, []
            self._transport.write(b"".join(parts))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Server(uvicorn.Server):
    """Without uvicorn's own signal handlers: the process has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
