"""The API over HTTP: JSON bodies, one pooled session, and retries of what may be repeated.

A request that is repeated is the same bytes, so its request id or nonce lets the engine answer it once.
"""

import asyncio
import io
import logging
import os
import random
import ssl
import time
from collections.abc import Awaitable
from datetime import timedelta
from functools import lru_cache
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import aiohttp
import msgspec
from yarl import URL

from ..api.codec import decode_json, encode_json
from ..api.errors import (
    ApiError,
    ErrorBody,
    Internal,
    InvalidArgument,
    PermissionDenied,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
    error_from,
    retry_after,
)
from ..api.limits import POLL_TIMEOUT
from ..api.operations import RESPOND_WORKFLOW_TASK_COMPLETED, Operation
from .completions import COMPLETIONS, CompletionLine
from .loopback import is_loopback
from .signing import RequestSigner

Req = TypeVar("Req")
Resp = TypeVar("Resp")

CALL_TIMEOUT = 30.0
"""Seconds that one attempt of a call may take, beyond what a long poll is asked to wait."""

TOTAL_WAIT = 30.0
"""Seconds over which a call that may be repeated is tried again while the engine is out of reach."""

CONNECT_TIMEOUT = 5.0
FIRST_BACKOFF = 0.05
MAX_BACKOFF = 2.0

_HEADERS = {"content-type": "application/json"}
_SENT_AT_ONCE = 2**20
"""Larger bodies are sent in pieces, so that the event loop goes on; aiohttp warns otherwise."""

_BROKEN = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, TimeoutError, OSError)
_log = logging.getLogger("stepwell.transport")


def _trust(scheme: str) -> ssl.SSLContext | bool:
    """The authorities that this machine trusts now (``SSL_CERT_FILE``): those of aiohttp are as old as its import."""
    return ssl.create_default_context() if scheme == "https" else True


class HttpTransport:
    """One engine at ``url`` (``http://host:port``, with an optional path prefix). Made inside a running event loop."""

    def __init__(self, url: str, *, total_wait: float = TOTAL_WAIT, signer: RequestSigner | None = None) -> None:
        parts = urlsplit(url)
        self._base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._total_wait = total_wait
        self._signer = signer
        self._completions: dict[str, CompletionLine] = {}
        self._session = aiohttp.ClientSession(
            # Each long poll holds a connection, so the pool has no limit; a proxy for loopback is never meant.
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60.0, ssl=_trust(parts.scheme)),
            trust_env=not is_loopback(parts.hostname or ""),
            auto_decompress=True,
            headers=_HEADERS,
        )

    async def call(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        body = _encode(operation, request)
        if operation.name == RESPOND_WORKFLOW_TASK_COMPLETED.name:
            response: Any = await self._line(request).complete(body)
            return cast(Resp, response)
        url = self._url(operation.url_path(request))
        content = await self._send(operation, url, body, _timeout(operation, request))
        return decode_json(content, operation.response_type)

    def _line(self, request: Any) -> CompletionLine:
        namespace: str = request.namespace
        line = self._completions.get(namespace)
        if line is None:
            urls = {each.name: self._url(each.url_path(request)) for each in COMPLETIONS}

            def send(operation: Operation[Any, Any], body: bytes) -> Awaitable[bytes]:
                return self._send(operation, urls[operation.name], body, _CALL)

            line = self._completions[namespace] = CompletionLine(namespace, send)
        return line

    def _url(self, path: str) -> URL:
        return URL(self._base + path, encoded=True)

    async def _send(
        self, operation: Operation[Any, Any], url: URL, body: bytes, timeout: aiohttp.ClientTimeout
    ) -> bytes:
        """The engine's answer, after as many repeats as it takes."""
        deadline = time.monotonic() + self._total_wait
        attempt = 0
        while True:
            try:
                return await self._once(operation, url, body, timeout)
            except (Unavailable, ResourceExhausted) as error:
                if not operation.idempotent or not await self._pause(attempt, deadline, retry_after(error)):
                    raise error
            except _BROKEN as error:
                never_sent = isinstance(error, aiohttp.ClientConnectorError)
                if not (operation.idempotent or never_sent) or not await self._pause(attempt, deadline):
                    raise Unavailable(f"No answer from {self._base} to {operation.name}: {_reason(error)}") from error
            attempt += 1

    async def close(self) -> None:
        await self._session.close()

    async def _once(
        self, operation: Operation[Any, Any], url: URL, body: bytes, timeout: aiohttp.ClientTimeout
    ) -> bytes:
        data = body if len(body) <= _SENT_AT_ONCE else io.BytesIO(body)
        signed = None if self._signer is None else await self._signer.headers(str(url), body)
        async with self._session.post(
            url, data=data, headers=signed, timeout=timeout, allow_redirects=False
        ) as response:
            content = await response.read()
            if response.status == 200:
                return content
            raise _refusal(response.status, content, self._base, operation.name)

    async def _pause(self, attempt: int, deadline: float, asked: float = 0.0) -> bool:
        """Wait before the next attempt; false when there is to be none. The first repeat is at once: an idle connection
        that the server has closed in the meantime is the most common break. Not before the ``asked`` seconds."""
        if attempt == 0 and not asked:
            return time.monotonic() < deadline
        pause = random.uniform(0.5, 1.0) * min(MAX_BACKOFF, FIRST_BACKOFF * 2 ** min(max(attempt - 1, 0), 10))
        pause = max(pause, asked * random.uniform(1.0, 1.1))
        if time.monotonic() + pause >= deadline:
            return False
        await asyncio.sleep(pause)
        return True


def _encode(operation: Operation[Any, Any], request: Any) -> bytes:
    try:
        return encode_json(request)
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            f"{operation.name} has a text with a lone surrogate ({error.object[error.start : error.end]!r}), "
            "which is not text; remove it"
        ) from error


def _timeout(operation: Operation[Any, Any], request: Any) -> aiohttp.ClientTimeout:
    if not operation.long_poll:
        return _CALL
    asked: timedelta | None = request.timeout
    return _waiting((asked or POLL_TIMEOUT).total_seconds())


@lru_cache(maxsize=64)
def _waiting(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds + CALL_TIMEOUT, sock_connect=CONNECT_TIMEOUT)


_CALL = _waiting(0.0)


def _refusal(status: int, content: bytes, base: str, operation: str) -> ApiError:
    try:
        return error_from(decode_json(content, ErrorBody))
    except msgspec.DecodeError:
        text = _said(content)
    if status in (502, 503, 504):
        return Unavailable(f"{base} answered {status} to {operation}: {text}")
    # Not of the engine but of what stands before it, such as API Gateway.
    if status == 429:
        return ResourceExhausted(f"{base} has too many requests, {operation} among them: {text}")
    if status == 401:
        return Unauthenticated(f"{base} wants to know who calls {operation}: {text}; connect with sign=True")
    if status == 403:
        return PermissionDenied(
            f"{base} refuses {operation}: {text}; check the credentials and what their policies allow"
        )
    return Internal(f"{base} answered {status} to {operation}, which is not an answer of a Stepwell engine: {text}")


def _said(content: bytes) -> str:
    """API Gateway and what else answers for AWS say ``{"message": …}``; a refusal names the whole resource there."""
    try:
        document = msgspec.json.decode(content, type=dict[str, Any])
    except msgspec.DecodeError:
        document = {}
    said = document.get("message", document.get("Message"))
    return said[:1000] if isinstance(said, str) else content[:200].decode("utf-8", "replace")


def _reason(error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorError) and error.errno:
        return os.strerror(error.errno)  # aiohttp's own text names the address again, and a TLS that nobody uses
    return str(error) or type(error).__name__
