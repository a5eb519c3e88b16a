"""moto's application behind uvicorn. Its own server makes a thread and a connection for each request, which takes twice
the time of what most requests ask for.
"""

import asyncio
import io
import socket
import sys
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote

import uvicorn

_WAITING = 256
"""Requests at once, long polls of queues among them."""
_TURNS = "dynamodb"
"""In the target of requests that take turns anyway (moto_hardening) and so need no thread of their own."""

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Adapter:
    """An ASGI application of a WSGI one."""

    def __init__(self, application: Wsgi) -> None:
        self._application = application
        self._threads = ThreadPoolExecutor(_WAITING)

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        environ = _environ(scope, body)
        if _TURNS in environ.get("HTTP_X_AMZ_TARGET", "").lower():
            status, headers, content = self._answer(environ)
        else:
            loop = asyncio.get_running_loop()
            status, headers, content = await loop.run_in_executor(self._threads, self._answer, environ)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    def _answer(self, environ: dict[str, Any]) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], failed: Any = None) -> None:
            started.append((status, headers))

        answer = self._application(environ, start_response)
        try:
            content = b"".join(answer)
        finally:
            close = getattr(answer, "close", None)
            if close is not None:
                close()
        status, headers = started[-1]
        told = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        return int(status.split(" ", 1)[0]), told, content


def _environ(scope: dict[str, Any], body: bytes) -> dict[str, Any]:
    path = scope["raw_path"].decode("latin-1")
    query = scope["query_string"].decode("latin-1")
    host, port = scope["server"]
    environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote(path, "latin-1"),
        "QUERY_STRING": query,
        "REQUEST_URI": f"{path}?{query}" if query else path,
        "RAW_URI": f"{path}?{query}" if query else path,
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in scope["headers"]:
        key = name.decode("latin-1").upper().replace("-", "_")
        key = key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"
        told = value.decode("latin-1")
        environ[key] = f"{environ[key]},{told}" if key in environ else told
    environ["CONTENT_LENGTH"] = str(len(body))
    return environ


def serve(application: Wsgi, listener: socket.socket) -> None:
    """For ever."""
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(
        Adapter(application), lifespan="off", log_config=None, access_log=False, timeout_keep_alive=3600
    )
    uvicorn.Server(config).run(sockets=[listener])
