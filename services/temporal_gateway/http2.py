"""The gateway on uvicorn's HTTP/2: gRPC in the clear, for loopback.

A call of grpc.aio takes four times the CPU of one of these before anything is done (benchmarks/rpc_floor.py). The
parser is young, so what comes from other machines never reaches it: beyond loopback grpc.aio serves (``server``).
Between connection and handler there is no ASGI: a call that is there as a whole is one task, and its answer one write.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator, Mapping
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

log = logging.getLogger(__name__)

_HEALTH = "/grpc.health.v1.Health/"
_HEADERS: messages.Headers = [(b"content-type", b"application/grpc")]
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

_STOPPING = Refusal(grpc.StatusCode.UNAVAILABLE, "the server is stopping; call again")
_BROKEN = Refusal(grpc.StatusCode.INTERNAL, "the call failed inside the gateway; see its log")


class Incoming:
    """A call on its stream: what came of it, and how it is answered. ``gone``: nobody waits for an answer."""

    __slots__ = ("_connection", "_stream", "gone", "headers", "metadata", "method", "parts", "path", "size", "task")

    def __init__(self, connection: "_Connection", stream: zttp.Stream, request: zttp.Request) -> None:
        self._connection = connection
        self._stream = stream
        self.method = request.method
        self.path = request.path.decode("latin-1")
        self.metadata: messages.Headers = list(request.headers)
        self.headers: Mapping[bytes, bytes] = dict(self.metadata)
        self.parts: list[bytes] = []
        self.size = 0
        self.gone = False
        self.task: asyncio.Task[None] | None = None

    def begin(self, status: int = 200, headers: messages.Headers = _HEADERS) -> None:
        if not self.gone:
            self._stream.send_response(status, headers)

    def part(self, body: bytes) -> None:
        if body and not self.gone:
            self._stream.send_data(body)
            self._connection.send_soon()

    def end(self, trailers: messages.Headers | None) -> None:
        if not self.gone:
            self.gone = True
            self._stream.end_message(trailers)
            self._connection.ended(self._stream.stream_id)

    def answer(self, trailers: messages.Headers, body: bytes = b"") -> None:
        self.begin()
        self.part(body)
        self.end(trailers)


class Http2Application:
    """``serving`` says what health is asked for."""

    def __init__(self, answering: Answering, served: Mapping[str, Served], serving: Callable[[str], bool]) -> None:
        self._answering = answering
        self._served = served
        self._serving = serving
        self._may_wait = {path for path, found in served.items() if found.name.startswith(_WAITS)} | {_HEALTH + "Watch"}
        self._held: set[asyncio.Task[None]] = set()
        self._stopping = False

    def stop(self) -> None:
        """Calls that are held end; a turn later, so that those that have just come have begun."""
        self._stopping = True
        for work in self._held:
            work.get_loop().call_soon(work.cancel)

    def begin(self, call: Incoming, loop: asyncio.AbstractEventLoop) -> asyncio.Task[None]:
        """Of a call that is there as a whole."""
        task = call.task = loop.create_task(self._serve(call))
        if call.path in self._may_wait:
            self._held.add(task)
            task.add_done_callback(self._held.discard)
        return task

    def left(self, call: Incoming) -> None:
        """Its caller has: then what was given out is taken back."""
        call.gone = True
        if call.task in self._held:
            call.task.cancel()

    async def _serve(self, call: Incoming) -> None:
        try:
            if call.method != b"POST" or not call.headers.get(b"content-type", b"").startswith(b"application/grpc"):
                _no_grpc(call)
            elif call.path.startswith(_HEALTH):
                await self._health(call)
            else:
                await self._answer(call)
        except Refused as error:
            call.answer(messages.trailers_of(error.refused))
        except asyncio.CancelledError:
            if not self._stopping:
                raise
            call.answer(messages.trailers_of(_STOPPING))
        except Exception:
            log.exception("%s failed", call.path[:300])
            call.answer(messages.trailers_of(_BROKEN))

    async def _answer(self, call: Incoming) -> None:
        def caller(access: Access) -> Grant:
            # An intermediary would be trusted with nothing, so there is no other peer than what it sends.
            return access.caller([(name.decode("latin-1"), value) for name, value in call.metadata], {})

        found = self._served.get(call.path)
        if found is None:
            raise _not_there(call.path)
        if self._stopping and call.path in self._may_wait:
            raise Refused(_STOPPING)
        data = messages.message_of(_body(call), call.headers)
        response = await self._answering.answer(found, data, Call(_left(call.headers)), caller)
        call.answer(messages.SUCCESS, messages.framed(response.SerializeToString()))

    async def _health(self, call: Incoming) -> None:
        """The standard service, of which ``Watch`` is the only stream that there is."""
        method = call.path.removeprefix(_HEALTH)
        if method not in ("Check", "Watch"):
            raise _not_there(call.path)
        asked = health_pb2.HealthCheckRequest.FromString(messages.message_of(_body(call), call.headers))
        known = self._serving(asked.service)
        response = health_pb2.HealthCheckResponse
        if method == "Check":
            if not known:
                raise Refused(Refusal(grpc.StatusCode.NOT_FOUND, "there is no such service"))
            call.answer(messages.SUCCESS, messages.framed(response(status=response.SERVING).SerializeToString()))
            return
        call.begin()
        status = response.SERVING if known else response.SERVICE_UNKNOWN
        call.part(messages.framed(response(status=status).SerializeToString()))
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        call.part(messages.framed(response(status=response.NOT_SERVING).SerializeToString()))
        call.end(messages.SUCCESS)


def _body(call: Incoming) -> bytes:
    return call.parts[0] if len(call.parts) == 1 else b"".join(call.parts)


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


def _no_grpc(call: Incoming) -> None:
    """A browser, say."""
    call.begin(415, [(b"content-type", b"text/plain")])
    call.part(b"This port speaks gRPC, for SDKs of Temporal.\n")
    call.end(None)


class Http2Server:
    """Serves an application until ``stop``, which ends what is held."""

    def __init__(self, application: Http2Application) -> None:
        self._application = application
        self._server = _Server(
            uvicorn.Config(
                cast(Any, application),  # which only our connections know of
                http=_Connection,
                interface="asgi3",
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
    """uvicorn's protocol, HTTP/2 alone, without its ASGI. What is sent within a turn of the loop leaves together.

    The parser cuts a connection off, with all calls that it has open, at its 4,096th call and at its 256th that was
    called off, since it takes them for a flood; it has no setting for that. So the other side is asked well before to
    go on with a new connection. What it has begun until it hears that is answered here, long polls too.
    """

    _calls = 0
    _called_off = 0
    _to_send = False

    def __init__(self, config: uvicorn.Config, *rest: Any, **more: Any) -> None:
        super().__init__(config, *rest, **more)
        application: Any = config.app
        assert isinstance(application, Http2Application)
        self._application = application
        self._open: dict[int, Incoming] = cast(Any, self.cycles)  # it looks only whether there are any

    def connection_lost(self, exc: Exception | None) -> None:
        for call in list(self._open.values()):
            self._application.left(call)
        self._open.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self.conn.receive_data(data)
            self.handle_events()
        except zttp.RemoteProtocolError as error:
            log.warning("a connection had no HTTP/2: %s", error)
            self._send()
            self.transport.close()
            return
        self.send_soon()
        if not self._open and self.timeout_keep_alive_task is None:
            self.on_stream_closed()

    def handle_events(self) -> None:
        following: Callable[[], Any] = self.conn.next_event
        calls = self._open
        while (event := following()) is not zttp.NEED_DATA:
            kind = type(event)
            if kind is zttp.Request:
                self.handle_request(event)
            elif kind is zttp.Data:
                call = calls.get(event.stream_id)
                if call is not None:
                    self._more(call, event.data)
            elif kind is zttp.EndOfMessage:
                call = calls.get(event.stream_id)
                if call is not None:
                    self._whole(call)
            elif kind is zttp.RstStream:
                self.handle_rst_stream(event)
            elif kind is zttp.GoAway:
                self.shutdown()

    def handle_request(self, event: zttp.Request) -> None:
        self._calls += 1
        if self._calls == _MOST_CALLS:
            self._ask_to_leave()
        call = self._open[event.stream_id] = Incoming(self, self.conn.stream(event.stream_id), event)
        if self.shutdown_requested:
            call.answer(messages.trailers_of(_STOPPING))
        elif event.end_stream:
            self._whole(call)

    def _more(self, call: Incoming, data: bytes) -> None:
        call.parts.append(data)
        call.size += len(data)
        try:
            messages.check_size(call.size)
        except Refused as error:
            call.answer(messages.trailers_of(error.refused))

    def _whole(self, call: Incoming) -> None:
        task = self._application.begin(call, self.loop)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def handle_rst_stream(self, event: zttp.RstStream) -> None:
        self._called_off += 1
        if self._called_off == _MOST_CALLED_OFF:
            self._ask_to_leave()
        call = self._open.get(event.stream_id)
        if call is not None:
            self._application.left(call)
            self.ended(event.stream_id)

    def ended(self, stream_id: int) -> None:
        self._open.pop(stream_id, None)
        self.send_soon()
        if not self._open:
            self.on_stream_closed()

    def send_soon(self) -> None:
        if not self._to_send:
            self._to_send = True
            self.loop.call_soon(self._send)

    def _send(self) -> None:
        self._to_send = False
        data = self.conn.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def _close_connection(self) -> None:
        if not self.transport.is_closing():
            self.conn.close()
            self._send()
            self.transport.close()

    def _ask_to_leave(self) -> None:
        self.timeout_keep_alive = _LEFT_SECONDS
        self._send()
        self.transport.write(messages.GOING_AWAY)


class _Server(uvicorn.Server):
    """Without uvicorn's own signal handlers: the process has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
