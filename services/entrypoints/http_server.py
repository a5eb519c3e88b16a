"""Serves the API of an engine over HTTP with uvicorn (chosen by measurement: docs/adr), and stops without waiting."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator

import uvicorn

from ..frontend.asgi import Application
from .one_write import OneWriteProtocol
from .serving import Certificate

_KEEP_ALIVE_SECONDS = 75
"""Longer than clients keep an idle connection, so that it is they who close it."""

_GRACE_SECONDS = 5
"""How long a stop waits for requests that are being answered."""


class HttpServer:
    """One application on one listening socket; with a ``certificate``, over TLS."""

    def __init__(self, application: Application, certificate: Certificate | None = None) -> None:
        self._application = application
        self._server = _Server(
            uvicorn.Config(
                application,
                http=OneWriteProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                date_header=False,
                server_header=False,
                proxy_headers=False,  # nobody stands in front of it, and what they say would not be used
                ssl_certfile=None if certificate is None else certificate.chain,
                ssl_keyfile=None if certificate is None else certificate.key,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )

    async def serve(self, listener: socket.socket) -> None:
        """Until :meth:`stop`. What is being answered then is finished; the socket is closed."""
        # Connections inherit it. asyncio's own loop would leave Nagle's algorithm on for sockets that were not made as
        # IPPROTO_TCP, and every answer of two packets then waits 40 ms for a delayed acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await self._server.serve(sockets=[listener])

    def stop(self) -> None:
        """Ends long polls and the server. Asked a second time, it waits for nothing."""
        if self._server.should_exit:
            self._server.force_exit = True
            return
        self._application.drain()
        self._server.should_exit = True

    def stop_on_signals(self) -> None:
        """SIGINT (Ctrl-C) and SIGTERM stop the server. Call it on the running loop of the main thread."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.add_signal_handler(number, self.stop)
            except NotImplementedError:  # Windows
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(self.stop))


class _Server(uvicorn.Server):
    """Without uvicorn's own signal handlers, which know nothing of the long polls that a stop would wait for."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
