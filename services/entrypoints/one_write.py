"""uvicorn's protocol, but an answer's head leaves together with its body.

uvicorn writes the head when it is told of it, and the event loop sends each write at once: two system calls here, two
packets on the wire, and two wake-ups of whoever waits for the answer.
"""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class OneWriteProtocol(HttpToolsProtocol):
    """For answers to POST, which always have a body. Where uvicorn has another inner life, nothing is changed."""

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        if cycle.scope["method"] == "POST":
            cycle.transport = cast(asyncio.Transport, _HeadWithBody(cycle.transport))
        super()._start_asgi_task(cycle, app)


class _HeadWithBody:
    """The transport of one answer: keeps what is written first until there is more."""

    __slots__ = ("_begun", "_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""
        self._begun = False

    def write(self, data: bytes) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.writelines((head, data))
        elif self._begun or data.startswith(b"HTTP/1.1 100 "):  # a caller waits for that before it sends its body
            self._transport.write(data)
        else:
            self._begun = True
            self._head = data

    def close(self) -> None:
        if self._head:
            self._transport.write(self._head)
            self._head = b""
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()
