"""``--temporal-port``: the gateway for Temporal's SDKs beside the HTTP server, on the same engine and limits."""

import argparse
import contextlib
import importlib.util
import ipaddress
from collections.abc import AsyncIterator

from ..adapters.system import SystemIds
from ..frontend.calls import Calls
from ..frontend.limiting import Limiter
from ..history.engine import Engine
from .making import server_version
from .serving import Refused, port

TEMPORAL_PORT = 7233
"""What Temporal's own tools connect to when nothing is said."""

_MODULES = ("temporalio", "grpc", "grpc_health")


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--temporal-port",
        metavar="PORT",
        type=port,
        help=f"serve Temporal's SDKs there too, such as {TEMPORAL_PORT} (0 for any free one); needs "
        "stepwell-server[temporal]",
    )


def check(options: argparse.Namespace) -> None:
    """Raises Refused for a gateway that cannot be, or that others could reach."""
    if options.temporal_port is None:
        return
    if any(importlib.util.find_spec(name) is None for name in _MODULES):
        raise Refused(
            "the gateway for Temporal's SDKs is not installed; install it: "
            "python -m pip install 'stepwell-server[temporal]'"
        )
    if not ipaddress.ip_address(options.host).is_loopback:
        raise Refused(
            f"{options.host} can be reached by other machines, and --temporal-port asks for no credentials; "
            "listen on 127.0.0.1, or leave it out"
        )
    if getattr(options, "keys", None) is not None:
        raise Refused("--temporal-port asks for no credentials, which would go round the keys of --keys; leave one out")


@contextlib.asynccontextmanager
async def temporal_gateway(engine: Engine, limiter: Limiter, options: argparse.Namespace) -> AsyncIterator[str]:
    """Gives the line of the banner; empty where no gateway is asked for. Raises Refused when the port is taken."""
    if options.temporal_port is None:
        yield ""
        return
    from ..temporal_gateway.server import GatewayServer

    server = GatewayServer(Calls(engine, limiter), server_version(), SystemIds())
    try:
        try:
            bound = await server.start(options.host, options.temporal_port)
        except OSError as error:
            raise Refused(f"{error}; stop what listens there, or choose another --temporal-port") from error
        name = f"[{options.host}]" if ":" in options.host else options.host
        yield f"  Temporal {name}:{bound}\n"
    finally:
        await server.stop()
