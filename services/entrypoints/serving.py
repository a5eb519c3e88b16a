"""What commands that serve have in common: ports, certificates, exit codes, the loop, words on the terminal."""

import argparse
import asyncio
import contextlib
import errno
import gc
import logging
import socket
import ssl
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import NamedTuple

from stepwell.api.errors import ApiError

from ..adapters.embedded.errors import DatabaseRefused
from ..history.callback_addresses import BadAddress
from ..history.ports import StoreUnavailable

DEFAULT_PORT = 7400
REFUSED = 3
"""Exit code when the port or the database cannot be had; as the command line of the SDK has it."""

FAILED = 4
INTERRUPTED = 130
"""Ctrl-C before the server was up: 128 + SIGINT, as shells report it."""

LOG_LEVELS = ("debug", "info", "warning", "error")


class Refused(Exception):
    """Why the server does not start, as a sentence for people."""


Serve = Callable[[socket.socket], Coroutine[None, None, None]]


def serve_until_stopped(options: argparse.Namespace, prepare: Callable[[], Serve]) -> int:
    """Serves on the listener of ``host`` and ``port`` until SIGINT or SIGTERM. ``prepare`` may refuse before anything
    is opened. Returns the exit code: 0 after a graceful stop, 3 when it could not start."""
    logging.basicConfig(
        level=options.log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    try:
        serve = prepare()
        listener = listen(options.host, options.port)
        spare_the_collector()
        with contextlib.closing(listener), asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(serve(listener))
    except (Refused, BadAddress, DatabaseRefused) as error:
        sys.stderr.write(f"Error: {error}\n")
        return REFUSED
    except (ApiError, StoreUnavailable) as error:
        sys.stderr.write(f"Error: the engine does not start: {error}\n")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def port(text: str) -> int:
    if not text.isdigit() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; give a number from 0 to 65535")
    return int(text)


class Certificate(NamedTuple):
    """PEM files."""

    chain: str
    key: str


def certificate_of(chain: Path | None, key: Path | None, chain_option: str, key_option: str) -> Certificate | None:
    """Raises Refused for files that are no certificate and its key."""
    if chain is None and key is None:
        return None
    if chain is None or key is None:
        raise Refused(f"{chain_option} and {key_option} go together; give both")
    for path in (chain, key):
        if not path.is_file():
            raise Refused(f"{path} is not there; give a PEM file")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(chain, key, password="")
    except (ssl.SSLError, OSError) as error:
        raise Refused(
            f"{chain} and {key} are no certificate chain and its private key without a passphrase, in PEM "
            f"({error.strerror or error}); give such files"
        ) from error
    return Certificate(str(chain), str(key))


def listen(host: str, port: int) -> socket.socket:
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
        raise Refused(_why_not_bound(host, port, error)) from error
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


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's where there is one (not on Windows or PyPy), else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def spare_the_collector() -> None:
    """This process is ours alone, and nearly all that it keeps are records without cycles.

    With Python's own thresholds a full collection stops the server for 25 to 50 ms once a thousand long polls are
    open; with these the time spent in collections falls to under a third, and none took longer than 12 ms.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def say(words: str) -> None:
    sys.stdout.write(words)
    sys.stdout.flush()
