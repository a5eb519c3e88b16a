"""``stepwell server``: the engine for others than this machine: on one SQLite file, or on the cell of an AWS account.

Beyond loopback every request is signed and verified against access keys (SigV4), and goes over TLS, here or in the
proxy before it. The command line of the SDK finds :func:`main` through the entry-point group ``stepwell.server``.
"""

import argparse
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stepwell.api.limits import MAX_BETWEEN_RUNS, MAX_ID_STARTS_PER_SECOND, MIN_ID_STARTS_PER_SECOND

from ..adapters.embedded.connection import MEMORY
from ..adapters.system import SystemClock
from ..common.metrics import NO_METRICS, Metrics
from ..common.settings import rate_of
from ..common.telemetry import structured_logs, to_stderr
from ..frontend.asgi import Application
from ..frontend.guard import LoopbackGuard, Verifier
from ..frontend.limiting import SERVED, Limiter
from ..history.callback_addresses import BadAddress, parse_addresses
from ..history.engine import Engine
from . import temporal_port
from .command_lines import Parser
from .dev import DEFAULT_DATABASE
from .hosting import HostedEngine
from .http_server import HttpServer
from .making import server_version
from .serving import (
    DEFAULT_PORT,
    LOG_LEVELS,
    Certificate,
    Refused,
    Serve,
    certificate_of,
    port,
    say,
    serve_until_stopped,
)

if TYPE_CHECKING:  # what verifies signatures comes with the AWS half
    from .access_keys import AccessKeys

_NO_AWS = "the AWS half of the server is not installed; install it: python -m pip install 'stepwell-server[aws]'"


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until SIGINT or SIGTERM. Returns the exit code: 0 after a graceful stop, 3 when it could not start."""
    options = _parser().parse_args(None if arguments is None else list(arguments))
    return serve_until_stopped(options, lambda: _prepared(options))


def _prepared(options: argparse.Namespace) -> Serve:
    """Raises Refused for options that do not go together, and files that cannot be used."""
    if options.log_format == "json" and not options.aws:
        raise Refused("--log-format json goes with --aws; leave it out")
    certificate = certificate_of(options.tls_cert, options.tls_key, "--tls-cert", "--tls-key")
    keys = _access_keys(options, certificate)
    verifier = None if keys is None else _verifier(keys)
    door = temporal_port.door(options, keys, certificate)
    return lambda listener: _serve(listener, options, verifier, certificate, door)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="stepwell server",
        description="Serve the engine to other machines. Requests are signed (Client.connect(url, sign=True)) with one "
        "of the access keys in a file, which says what each may call.",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--db", metavar="FILE", default=DEFAULT_DATABASE, help=f"default: {DEFAULT_DATABASE}")
    where.add_argument(
        "--aws",
        action="store_true",
        help="serve the cell of an AWS account; STEPWELL_CELL and STEPWELL_BUCKET say which, credentials come from "
        "the usual chain",
    )
    parser.add_argument("--host", type=_address, default="127.0.0.1", help="default 127.0.0.1; 0.0.0.0 for all")
    parser.add_argument("--port", type=port, default=DEFAULT_PORT, help=f"default {DEFAULT_PORT}; 0 for any free one")
    parser.add_argument("--keys", metavar="FILE", type=Path, help="access keys (JSON); needed beyond loopback")
    parser.add_argument("--tls-cert", metavar="FILE", type=Path, help="certificate chain (PEM)")
    parser.add_argument("--tls-key", metavar="FILE", type=Path, help="its private key (PEM)")
    parser.add_argument(
        "--behind-tls", action="store_true", help="a proxy or load balancer ends TLS and passes Host on unchanged"
    )
    parser.add_argument(
        "--require-registered-namespaces",
        action="store_true",
        help="refuse calls in namespaces that nobody registered; else one is there with its first call",
    )
    parser.add_argument(
        "--minimum-between-runs",
        metavar="SECONDS",
        type=_seconds,
        default=0,
        help="refuse starts of a workflow id for so long behind the beginning of its newest run; default 0, never",
    )
    parser.add_argument(
        "--id-starts-per-second",
        metavar="RATE",
        type=_rate,
        default=0.0,
        help="refuse starts of one workflow id beyond so many a second, such as 0.1; default 0, no limit",
    )
    temporal_port.add_option(parser)
    temporal_port.add_tls_options(parser)
    parser.add_argument(
        "--callback-address",
        metavar="URL",
        action="append",
        type=_callback_address,
        default=[],
        help="let completion callbacks to this scheme, host and port, such as https://*.example.com; may be repeated",
    )
    parser.add_argument("--log-level", choices=LOG_LEVELS, default="warning", help="default warning")
    parser.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="json: a line of JSON each, with --aws"
    )
    return parser


def _address(text: str) -> str:
    if text == "localhost":
        return "127.0.0.1"
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no IP address; give one such as 0.0.0.0 or ::") from None


def _seconds(text: str) -> int:
    if text.isdigit() and int(text) <= MAX_BETWEEN_RUNS:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0 to {MAX_BETWEEN_RUNS}")


def _rate(text: str) -> float:
    rate = rate_of(text)
    if rate is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no rate of {MIN_ID_STARTS_PER_SECOND} to {MAX_ID_STARTS_PER_SECOND} a second, nor 0"
        )
    return rate


def _callback_address(text: str) -> str:
    try:
        parse_addresses([text])
    except BadAddress as bad:
        raise argparse.ArgumentTypeError(str(bad)) from None
    return text


def _access_keys(options: argparse.Namespace, certificate: Certificate | None) -> "AccessKeys | None":
    """Raises Refused where others could reach an engine that asks for no credentials, or read what they carry."""
    loopback = ipaddress.ip_address(options.host).is_loopback
    if options.keys is None:
        if loopback:
            return None
        raise Refused(
            f"{options.host} can be reached by other machines, so requests have to be signed: give the access keys "
            "with --keys FILE, or listen on 127.0.0.1"
        )
    if not loopback and certificate is None and not options.behind_tls:
        raise Refused(
            f"{options.host} can be reached by other machines, and without TLS everybody on the way reads what is "
            "sent: give --tls-cert and --tls-key, or --behind-tls where a proxy does it"
        )
    try:
        from .access_keys import KeysRefused, read_access_keys
    except ModuleNotFoundError as error:
        raise Refused(_NO_AWS) from error
    try:
        return read_access_keys(options.keys)
    except KeysRefused as error:
        raise Refused(str(error)) from error


def _verifier(keys: "AccessKeys") -> Verifier:
    from ..frontend.signatures import SignatureVerifier

    return SignatureVerifier(keys.keys, SystemClock())


class _Running(NamedTuple):
    engine: Engine
    kept: str
    metrics: Metrics = NO_METRICS


@contextlib.asynccontextmanager
async def _engine(options: argparse.Namespace) -> AsyncIterator[_Running]:
    if not options.aws:
        hosted = await HostedEngine.start(
            options.db,
            require_registered_namespaces=options.require_registered_namespaces,
            minimum_between_runs=timedelta(seconds=options.minimum_between_runs),
            id_starts_per_second=options.id_starts_per_second,
            callback_addresses=tuple(options.callback_address),
        )
        try:
            yield _Running(hosted.engine, hosted.backend.database)
        finally:
            await hosted.stop()
        return
    try:
        from ..adapters.aws.faults import AwsRefused
        from ..adapters.aws.names import NameRefused
        from ..adapters.aws.settings import AwsSettings
        from .aws_presence import CellIncomplete
        from .aws_server import AwsContainer
    except ModuleNotFoundError as error:
        raise Refused(_NO_AWS) from error
    try:
        settings = AwsSettings.from_environment()
        if options.require_registered_namespaces:
            settings = replace(settings, require_registered_namespaces=True)
        if options.minimum_between_runs:
            settings = replace(settings, minimum_between_runs=options.minimum_between_runs)
        if options.id_starts_per_second:
            settings = replace(settings, id_starts_per_second=options.id_starts_per_second)
        if options.callback_address:
            settings = replace(settings, callback_addresses=tuple(options.callback_address))
        if options.log_format == "json":
            structured_logs(settings.names.cell, level=options.log_level, write=to_stderr)
        container = await AwsContainer.start(settings)
    except (AwsRefused, CellIncomplete, NameRefused) as error:
        raise Refused(str(error)) from error
    try:
        yield _Running(container.engine, container.parts.backend.database, container.parts.telemetry.metrics)
    finally:
        await container.stop()


async def _serve(
    listener: socket.socket,
    options: argparse.Namespace,
    verifier: Verifier | None,
    certificate: Certificate | None,
    door: temporal_port.Door,
) -> None:
    async with _engine(options) as running:
        host, bound = listener.getsockname()[:2]
        guard = LoopbackGuard(bound) if verifier is None else None
        limiter = Limiter(running.engine.namespaces, SERVED)
        application = Application(
            running.engine,
            guard=guard,
            verifier=verifier,
            database=running.kept,
            version=server_version(),
            metrics=running.metrics,
            limiter=limiter,
        )
        server = HttpServer(application, certificate)
        server.stop_on_signals()
        name = f"[{host}]" if ":" in host else host
        scheme = "http" if certificate is None else "https"
        address = f"{scheme}://{name}:{bound}"
        async with temporal_port.temporal_gateway(running.engine, limiter, options, door) as temporal:
            say(_banner(address, running.kept, temporal, signed=verifier is not None))
            await server.serve(listener)
    say("Stopped.\n")


def _banner(address: str, kept: str, temporal: str, *, signed: bool) -> str:
    data = "in memory only: everything is gone when this process ends" if kept == MEMORY.strip(":") else kept
    access = "signed requests, by the access keys" if signed else "this machine only, without credentials"
    return f"""Stepwell {server_version()} is running. Ctrl-C stops it.

  Address  {address}
{temporal}  Access   {access}
  Data     {data}

Next:
  In Python         client = await Client.connect("{address}"{", sign=True" if signed else ""})
"""
