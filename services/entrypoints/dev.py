"""``stepwell dev``: engine and API on this machine, on one SQLite file. Loopback only, since there are no credentials.

The command line of the SDK finds :func:`main` through the entry-point group ``stepwell.dev_server``.
"""

import argparse
import ipaddress
import socket
import sys
from collections.abc import Sequence
from typing import NoReturn

from ..adapters.embedded.connection import MEMORY
from ..frontend.asgi import Application
from ..frontend.guard import LoopbackGuard
from ..frontend.limiting import SERVED, Limiter
from ..frontend.pages import OPENAPI_PATH
from . import temporal_port
from .command_lines import Parser
from .hosting import HostedEngine
from .http_server import HttpServer
from .making import server_version
from .serving import DEFAULT_PORT, LOG_LEVELS, Serve, port, say, serve_until_stopped

DEFAULT_DATABASE = "stepwell.db"


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until SIGINT or SIGTERM. Returns the exit code: 0 after a graceful stop, 3 when it could not start."""
    options = _parser().parse_args(None if arguments is None else list(arguments))
    return serve_until_stopped(options, lambda: _prepared(options))


def _prepared(options: argparse.Namespace) -> Serve:
    """Raises Refused."""
    door = temporal_port.door(options)
    return lambda listener: _serve(listener, options, door)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
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
    parser.add_argument("--port", type=port, default=DEFAULT_PORT, help=f"default {DEFAULT_PORT}; 0 for any free one")
    parser.add_argument("--host", type=_loopback, default="127.0.0.1", help="a loopback address (default 127.0.0.1)")
    temporal_port.add_option(parser)
    parser.add_argument("--log-level", choices=LOG_LEVELS, default="warning", help="default warning")
    return parser


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


async def _serve(listener: socket.socket, options: argparse.Namespace, door: temporal_port.Door) -> None:
    hosted = await HostedEngine.start(options.db)
    try:
        host, port = listener.getsockname()[:2]
        kept = hosted.backend.database
        limiter = Limiter(hosted.engine.namespaces, SERVED)
        application = Application(
            hosted.engine, guard=LoopbackGuard(port), database=kept, version=server_version(), limiter=limiter
        )
        server = HttpServer(application)
        server.stop_on_signals()
        name = f"[{host}]" if ":" in host else host
        async with temporal_port.temporal_gateway(hosted.engine, limiter, options, door) as temporal:
            say(_banner(f"http://{name}:{port}", kept, temporal))
            await server.serve(listener)
    finally:
        await hosted.stop()
    say("Stopped.\n")


def _banner(address: str, database: str, temporal: str) -> str:
    data = (
        "in memory only: everything is gone when this process ends (keep it with --db FILE)"
        if database == "memory"
        else f"{database} (kept: started again on this file, workflows go on)"
    )
    option = "" if address == f"http://127.0.0.1:{DEFAULT_PORT}" else f" --address {address}"
    return f"""Stepwell {server_version()} is running. Ctrl-C stops it.

  Address  {address}
  API      {address}{OPENAPI_PATH}
{temporal}  Data     {data}

Next:
  In Python         client = await Client.connect("{address}")
  In a terminal     stepwell workflow list{option}
"""


def run() -> NoReturn:
    sys.exit(main())


if __name__ == "__main__":
    run()
