"""ROUTES as an ASGI application. Operations are answered here directly; Starlette serves the few pages around them.

Every refusal is a JSON ``ErrorBody``. Long polls are held until the engine answers, the caller hangs up, or the
application drains, whichever is first.
"""

import asyncio
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from stepwell.api.codec import encode_json
from stepwell.api.errors import ApiError, DeadlineExceeded, Unavailable
from stepwell.api.limits import MAX_REQUEST_BYTES
from stepwell.api.requests import PollActivityTaskResponse, PollWorkflowTaskResponse, WorkerInfo

from ..common import metric_names as names
from ..common.metrics import NO_METRICS, Metrics
from ..common.principals import NOBODY, acting
from ..history.engine import Engine
from .bodies import API_PREFIX, decode_body, no_json, no_such_path, too_large
from .guard import Headers, LoopbackGuard, Verifier
from .limiting import SERVED, Limiter
from .pages import HEALTH_PATH, pages
from .paths import PathIndex, check_agreement
from .refusals import OK, api_error, retry_after
from .routes import Route

BODY_SECONDS = 60.0
"""How long a body may take to arrive. A caller that sends no more would otherwise hold its connection for ever."""

_JSON = (b"content-type", b"application/json")
_GONE = object()
"""Stands for an answer that nobody waits for any more."""


class Application:
    """The API of one engine over HTTP. Whoever serves it starts and stops the engine."""

    def __init__(
        self,
        engine: Engine,
        *,
        guard: LoopbackGuard | None = None,
        verifier: Verifier | None = None,
        database: str,
        version: str,
        metrics: Metrics = NO_METRICS,
        limiter: Limiter | None = None,
    ) -> None:
        """``limiter``: None for that of a server."""
        if guard is None and verifier is None:
            raise ValueError("an application needs a guard for loopback, or a verifier of signatures")
        self._engine = engine
        self._metrics = metrics
        self._limiter = limiter or Limiter(engine.namespaces, SERVED)
        self._guard = guard
        self._verifier = verifier
        self._index = PathIndex()
        self._pages: ASGIApp = pages(database=database, version=version, draining=lambda: self._draining)
        self._held: set[_Held] = set()
        self._reading: dict[_Held, float] = {}
        self._slow_bodies: asyncio.TimerHandle | None = None
        self._draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._pages(scope, receive, send)
            return
        raw_path = scope["raw_path"].decode("latin-1")
        operates = scope["method"] == "POST" and raw_path.startswith(API_PREFIX)
        refusal = None if self._guard is None else self._guard.check(scope["headers"])
        if refusal is None and not operates and raw_path != HEALTH_PATH:
            known = self._caller(scope, raw_path, b"")
            refusal = known if isinstance(known, ApiError) else None
        if refusal is not None:
            await _send_error(send, refusal)
        elif operates:
            await self._operation(scope, raw_path, receive, send)
        else:
            await self._pages(scope, receive, send)

    def _caller(self, scope: Scope, raw_path: str, body: bytes) -> ApiError | str:
        """Who has signed a request, where signatures are asked for; or its refusal, if its signature does not allow
        it."""
        if self._verifier is None:
            return NOBODY
        query = scope["query_string"].decode("latin-1")
        return self._verifier.check(scope["method"], raw_path, query, scope["headers"], body)

    def drain(self) -> None:
        """Ends the long polls that are held and the bodies that are still on their way, and refuses new long polls:
        their callers ask again after a restart."""
        self._draining = True
        for ending in (*self._reading, *self._held):
            ending.end()

    async def _operation(self, scope: Scope, raw_path: str, receive: Receive, send: Send) -> None:
        found = self._index.find(raw_path)
        if found is None:
            await _send_error(send, no_such_path(raw_path))
            return
        target, segments = found
        operation = target.route.operation
        body: bytes | None = None
        try:
            body = await self._body(scope["headers"], receive)
            known = self._caller(scope, raw_path, body)
            if isinstance(known, ApiError):
                raise known
            request = decode_body(body, operation)
            check_agreement(target, segments, request)
            with acting(known):
                response = await self._carry_out(target.route, request, receive)
        except _Disconnected:
            return
        except Exception as error:
            refused = api_error(error, operation.name)
            self._metrics.count(names.REQUESTS, operation=operation.name, code=refused.code)
            await _send_error(send, refused, rest_unread=body is None)
            return
        self._metrics.count(names.REQUESTS, operation=operation.name, code=OK)
        if response is not _GONE:
            await _send(send, 200, encode_json(response), [_JSON])

    async def _carry_out(self, route: Route, request: Any, receive: Receive) -> Any:
        if route.operation.long_poll:
            return await self._hold(route, request, receive)
        if self._limiter.active:
            return await self._limiter.carry_out(route.handler, self._engine, route.operation, request)
        return await route.handler(self._engine, request)

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        reading = _Held(asyncio.current_task())
        self._reading[reading] = asyncio.get_running_loop().time() + BODY_SECONDS
        if self._slow_bodies is None:
            self._end_slow_bodies()
        try:
            return await _read_body(headers, receive)
        except asyncio.CancelledError:
            if not reading.taken_back():
                raise
            if self._draining:
                raise _stopping() from None
            raise BodyTooSlow(
                f"the body did not arrive within {BODY_SECONDS:g} s; nothing was done, send the request again",
                field="body",
            ) from None
        finally:
            del self._reading[reading]

    def _end_slow_bodies(self) -> None:
        """Looks again as long as bodies arrive: a timer for each of them would cost more than to read it."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for reading, until in self._reading.items():
            if until <= now:
                reading.end()
        self._slow_bodies = loop.call_later(BODY_SECONDS / 10, self._end_slow_bodies) if self._reading else None

    async def _hold(self, route: Route, request: Any, receive: Receive) -> Any:
        """Waits for the answer; gives up, and cancels it, when the caller hangs up or the application drains."""
        if self._draining:
            raise _stopping()
        held = _Held(asyncio.current_task())
        watching = asyncio.ensure_future(held.end_at_hang_up(receive))
        self._held.add(held)
        try:
            response = await self._limiter.carry_out(route.handler, self._engine, route.operation, request)
        except asyncio.CancelledError:
            if not held.taken_back():
                raise
            if held.hung_up:
                self._lost(request)
                return _GONE
            raise _stopping() from None
        finally:
            self._held.discard(held)
            watching.cancel()
        held.taken_back()
        if held.hung_up:
            self._lost(request)
            await self._give_up(response)
            return _GONE
        return response

    def _lost(self, request: Any) -> None:
        """A worker whose connection ended may have ended itself."""
        worker: WorkerInfo | None = getattr(request, "worker", None)
        if worker is not None:
            self._engine.connection_lost(worker)

    async def _give_up(self, response: Any) -> None:
        """Nobody waits for the answer any more; tasks that it would have handed out are offered again."""
        if isinstance(response, PollWorkflowTaskResponse | PollActivityTaskResponse):
            await self._engine.undelivered(response)


class _Held:
    """A request whose task waits, for its body or for its answer, and may be ended early by cancelling the task."""

    def __init__(self, task: "asyncio.Task[Any] | None") -> None:
        assert task is not None
        self._task = task
        self._ended = False
        self.hung_up = False

    def end(self) -> None:
        if not self._ended:
            self._ended = True
            self._task.cancel()

    def taken_back(self) -> bool:
        """Whether it was ended here; the task goes on, to say so."""
        if self._ended:
            self._ended = False
            self._task.uncancel()
            return True
        return False

    async def end_at_hang_up(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.hung_up = True
        self.end()


class _Disconnected(Exception):
    """The caller hung up before its request was complete."""


class BodyTooSlow(DeadlineExceeded):
    http_status = 408


def _stopping() -> Unavailable:
    return Unavailable("the server is stopping; nothing acknowledged is lost, ask again when it is back")


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _read_body(headers: Headers, receive: Receive) -> bytes:
    _check_headers(headers)
    message = await receive()
    if message["type"] == "http.disconnect":
        raise _Disconnected
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        if len(body) > MAX_REQUEST_BYTES:
            raise too_large(len(body), MAX_REQUEST_BYTES)
        return body
    parts = [body]
    size = len(body)
    while message.get("more_body", False):
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Disconnected
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_REQUEST_BYTES:
            raise too_large(size, MAX_REQUEST_BYTES)
    return b"".join(parts)


def _check_headers(headers: Headers) -> None:
    content_type = b""
    for name, value in headers:
        if name == b"content-type":
            content_type = value
        elif name == b"content-length" and value.isdigit() and int(value) > MAX_REQUEST_BYTES:
            raise too_large(int(value), MAX_REQUEST_BYTES)
    if content_type.split(b";", 1)[0].strip().lower() != b"application/json":
        raise no_json(content_type.decode("latin-1"))


async def _send_error(send: Send, error: ApiError, *, rest_unread: bool = False) -> None:
    headers: Headers = [_JSON]
    if (seconds := retry_after(error)) is not None:
        headers.append((b"retry-after", str(seconds).encode()))
    if rest_unread:
        headers.append((b"connection", b"close"))
    await _send(send, error.http_status, encode_json(error.body()), headers)


async def _send(send: Send, status: int, body: bytes, headers: Headers) -> None:
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
