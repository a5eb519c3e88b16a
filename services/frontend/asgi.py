"""ROUTES as an ASGI application. Operations are answered here directly; Starlette serves the few pages around them.

Every refusal is a JSON ``ErrorBody``. Long polls are held until the engine answers, the caller hangs up, or the
application drains, whichever is first.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send
from stepwell.api.codec import decode_json, encode_json, explain
from stepwell.api.errors import ApiError, DeadlineExceeded, InvalidArgument, NotFound, PayloadTooLarge, Unavailable
from stepwell.api.limits import MAX_REQUEST_BYTES
from stepwell.api.requests import PollActivityTaskResponse, PollWorkflowTaskResponse

from ..history.engine import Engine
from .guard import Headers, LoopbackGuard
from .pages import pages
from .paths import PathIndex, check_agreement
from .refusals import api_error

API_PREFIX = "/api/v1/"
BODY_SECONDS = 60.0
"""How long a body may take to arrive. A caller that sends no more would otherwise hold its connection for ever."""

_JSON = (b"content-type", b"application/json")
_GONE = object()
"""Stands for an answer that nobody waits for any more."""


class Application:
    """The API of one engine over HTTP. Whoever serves it starts and stops the engine."""

    def __init__(self, engine: Engine, *, guard: LoopbackGuard, database: str, version: str) -> None:
        self._engine = engine
        self._guard = guard
        self._index = PathIndex()
        self._pages: ASGIApp = pages(database=database, version=version, draining=lambda: self._draining)
        self._held: set[asyncio.Future[Any]] = set()
        self._reading: set[asyncio.Timeout] = set()
        self._draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._pages(scope, receive, send)
            return
        refusal = self._guard.check(scope["headers"])
        if refusal is not None:
            await _send_error(send, refusal)
            return
        raw_path = scope["raw_path"].decode("latin-1")
        if scope["method"] == "POST" and raw_path.startswith(API_PREFIX):
            await self._operation(scope, raw_path, receive, send)
            return
        await self._pages(scope, receive, send)

    def drain(self) -> None:
        """Ends the long polls that are held and the bodies that are still on their way, and refuses new long polls:
        their callers ask again after a restart."""
        self._draining = True
        for limit in self._reading:
            if not limit.expired():
                limit.reschedule(0)
        for task in self._held:
            task.cancel()

    async def _operation(self, scope: Scope, raw_path: str, receive: Receive, send: Send) -> None:
        found = self._index.find(raw_path)
        if found is None:
            await _send_error(
                send, NotFound(f"no operation has the path {raw_path!r}; GET {API_PREFIX}openapi.json lists them all")
            )
            return
        target, segments = found
        operation = target.route.operation
        body: bytes | None = None
        try:
            body = await self._body(scope["headers"], receive)
            request = _decode(body, operation.request_type, operation.name)
            check_agreement(target, segments, request)
            answer = target.handler(self._engine, request)
            response = await (self._hold(answer, receive) if operation.long_poll else answer)
        except _Disconnected:
            return
        except Exception as error:
            await _send_error(send, api_error(error, operation.name), rest_unread=body is None)
            return
        if response is not _GONE:
            await _send(send, 200, encode_json(response), [_JSON])

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        limit = asyncio.timeout(BODY_SECONDS)
        try:
            async with limit:
                self._reading.add(limit)
                return await _read_body(headers, receive)
        except TimeoutError:
            if self._draining:
                raise _stopping() from None
            raise BodyTooSlow(
                f"the body did not arrive within {BODY_SECONDS:g} s; nothing was done, send the request again",
                field="body",
            ) from None
        finally:
            self._reading.discard(limit)

    async def _hold(self, answer: Awaitable[Any], receive: Receive) -> Any:
        """Waits for the answer; gives up, and cancels it, when the caller hangs up or the application drains."""
        task = asyncio.ensure_future(answer)
        hang_up = asyncio.ensure_future(_hung_up(receive))
        self._held.add(task)
        if self._draining:
            task.cancel()
        try:
            await asyncio.wait((task, hang_up), return_when=asyncio.FIRST_COMPLETED)
            if hang_up.done():
                await self._give_up(task)
                return _GONE
            if task.cancelled():
                raise _stopping()
            return task.result()
        finally:
            self._held.discard(task)
            task.cancel()
            hang_up.cancel()

    async def _give_up(self, task: "asyncio.Future[Any]") -> None:
        """Nobody waits for the answer any more; tasks that it would have handed out are offered again."""
        task.cancel()
        await asyncio.wait((task,))
        if task.cancelled() or task.exception() is not None:
            return
        response = task.result()
        if isinstance(response, PollWorkflowTaskResponse | PollActivityTaskResponse):
            await self._engine.undelivered(response)


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
            raise _too_large(len(body))
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
            raise _too_large(size)
    return b"".join(parts)


def _check_headers(headers: Headers) -> None:
    """The content type is required, since a browser sends this one across sites only after asking."""
    content_type = b""
    for name, value in headers:
        if name == b"content-type":
            content_type = value
        elif name == b"content-length" and value.isdigit() and int(value) > MAX_REQUEST_BYTES:
            raise _too_large(int(value))
    if content_type.split(b";", 1)[0].strip().lower() != b"application/json":
        raise UnsupportedMediaType(
            f"content type is {content_type[:100].decode('latin-1')!r}; send JSON as application/json",
            header="Content-Type",
        )


class UnsupportedMediaType(InvalidArgument):
    http_status = 415


def _too_large(size: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"the request has {size} bytes or more, above the limit of {MAX_REQUEST_BYTES}; "
        "send less at once, or store the data elsewhere and pass a reference",
        field="body",
    )


_HINTS = {
    "duration": 'write durations as ISO 8601 text, such as "PT30S" or "P1DT12H"',
    "base64": "write bytes as base64 with padding",
    "": f"GET {API_PREFIX}openapi.json says what it takes",
}
"""What to do about a body, by a word of the decoder's complaint."""


def _decode(body: bytes, request_type: type[Any], name: str) -> Any:
    try:
        return decode_json(body, request_type)
    except msgspec.ValidationError as error:
        field, what = explain(error, _HINTS)
        raise InvalidArgument(f"the body is no {name} request: {what}", field=field or "body") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"the body is not JSON: {error}", field="body") from error
    except RecursionError:
        raise InvalidArgument("the body is nested too deeply; send flatter JSON", field="body") from None


async def _send_error(send: Send, error: ApiError, *, rest_unread: bool = False) -> None:
    headers: Headers = [_JSON]
    if rest_unread:
        headers.append((b"connection", b"close"))
    await _send(send, error.http_status, encode_json(error.body()), headers)


async def _send(send: Send, status: int, body: bytes, headers: Headers) -> None:
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
