"""``stepwell dev``: engine and API on this machine, on one SQLite file. Loopback only, since there are no credentials.

The command line of the SDK finds :func:`main` through the entry-point group ``stepwell.dev_server``.
"""

import argparse
import asyncio
import contextlib
import errno
import gc
import ipaddress
import logging
import socket
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from stepwell.api.errors import ApiError

from ..adapters.embedded.connection import MEMORY
from ..adapters.embedded.errors import DatabaseRefused
from ..frontend.asgi import Application
from ..frontend.guard import LoopbackGuard
from ..frontend.pages import OPENAPI_PATH
from .hosting import HostedEngine, server_version
from .http_server import HttpServer

DEFAULT_PORT = 7400
DEFAULT_DATABASE = "stepwell.db"
REFUSED = 3
"""Exit code when the port or the database cannot be had; as the command line of the SDK has it."""

FAILED = 4
INTERRUPTED = 130
"""Ctrl-C before the server was up: 128 + SIGINT, as shells report it."""

_LOG_LEVELS = ("debug", "info", "warning", "error")


class _Refused(Exception):
    """Why the server does not start, as a sentence for people."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until SIGINT or SIGTERM. Returns the exit code: 0 after a graceful stop, 3 when it could not start."""
    options = _parser().parse_args(None if arguments is None else list(arguments))
    logging.basicConfig(
        level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    try:
        listener = _listen(options.host, options.port)
        _spare_the_collector()
        with contextlib.closing(listener), asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(listener, options.db))
    except (_Refused, DatabaseRefused) as error:
        sys.stderr.write(f"Error: {error}\n")
        return REFUSED
    except ApiError as error:
        sys.stderr.write(f"Error: the engine does not start: {error}\n")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stepwell dev",
        description="Run the engine and its API on this machine, for development. Stop it with Ctrl-C; "
        "started again on the same file, every workflow goes on.",
    )
    parser.add_argument(
        "--db",
        metavar="FILE",
        default=DEFAULT_DATABASE,
        help=f"where data is kept (default: {DEFAULT_DATABASE} in this directory); {MEMORY} keeps it in memory only",
    )
    parser.add_argument("--port", type=_port, default=DEFAULT_PORT, help=f"default {DEFAULT_PORT}; 0 for any free one")
    parser.add_argument("--host", type=_loopback, default="127.0.0.1", help="a loopback address (default 127.0.0.1)")
    parser.add_argument("--log-level", choices=_LOG_LEVELS, default="warning", help="default warning")
    return parser


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; give a number from 0 to 65535")
    return int(text)


def _loopback(text: str) -> str:
    try:
        allowed = text == "localhost" or ipaddress.ip_address(text).is_loopback
    except ValueError:
        allowed = False
    if not allowed:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a loopback address; this server has no credentials and serves this machine only, "
            "so use 127.0.0.1 or ::1"
        )
    return "127.0.0.1" if text == "localhost" else text


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform != "win32":
            # A restart need not wait for the old server's closed connections.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise _Refused(_why_not_bound(host, port, error)) from error
    return listener


def _why_not_bound(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} is taken, perhaps by another stepwell dev; "
            f"stop that one, or choose another port, such as --port {port + 1 if port < 65_535 else 0}"
        )
    if error.errno == errno.EACCES:
        return f"port {port} needs more rights than this user has; choose one above 1023, such as --port {DEFAULT_PORT}"
    return f"cannot listen on {host} port {port}: {error.strerror}; choose another address or port"


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where there is one (not on Windows or PyPy), else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _spare_the_collector() -> None:
    """This process is ours alone, and nearly all that it keeps are records without cycles.

    With Python's own thresholds a full collection stops the server for 25 to 50 ms once a thousand long polls are
    open; with these the time spent in collections falls to under a third, and none took longer than 12 ms.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


async def _serve(listener: socket.socket, database: str) -> None:
    hosted = await HostedEngine.start(database)
    try:
        host, port = listener.getsockname()[:2]
        kept = hosted.backend.database
        application = Application(hosted.engine, guard=LoopbackGuard(port), database=kept, version=server_version())
        server = HttpServer(application)
        server.stop_on_signals()
        name = f"[{host}]" if ":" in host else host
        _say(_banner(f"http://{name}:{port}", kept))
        await server.serve(listener)
    finally:
        await hosted.stop()
    _say("Stopped.\n")


def _banner(address: str, database: str) -> str:
    data = (
        "in memory only: everything is gone when this process ends (keep it with --db FILE)"
        if database == "memory"
        else f"{database} (kept: started again on this file, workflows go on)"
    )
    option = "" if address == f"http://127.0.0.1:{DEFAULT_PORT}" else f" --address {address}"
    return f"""Stepwell {server_version()} is running. Ctrl-C stops it.

  Address  {address}
  API      {address}{OPENAPI_PATH}
  Data     {data}

Next:
  In Python         client = await Client.connect("{address}")
  In a terminal     stepwell workflow list{option}
"""


def _say(words: str) -> None:
    sys.stdout.write(words)
    sys.stdout.flush()


def run() -> NoReturn:
    sys.exit(main())


if __name__ == "__main__":
    run()
