"""``--temporal-port``: the gateway for Temporal's SDKs beside the HTTP server, on the same engine and limits.

On loopback it may be open, as HTTP is; with ``--keys`` callers show an API key or a client certificate of it.
"""

import argparse
import contextlib
import importlib.util
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..adapters.system import SystemIds
from ..frontend.calls import Calls
from ..frontend.limiting import Limiter
from ..history.engine import Engine
from .making import server_version
from .serving import Certificate, Refused, certificate_of, port

if TYPE_CHECKING:  # its messages come with an extra
    from ..temporal_gateway.access import Access, Tls
    from .access_keys import AccessKeys

TEMPORAL_PORT = 7233
"""What Temporal's own tools connect to when nothing is said."""

_MODULES = ("temporalio", "grpc", "grpc_health", "zttp")
_TLS_OPTIONS = ("temporal_tls_cert", "temporal_tls_key", "temporal_client_ca")


class Door(NamedTuple):
    """Who comes in, and how. Without ``access``: everybody on this machine."""

    access: "Access | None" = None
    tls: "Tls | None" = None
    words: str = ""
    """For the banner."""


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--temporal-port",
        metavar="PORT",
        type=port,
        help=f"serve Temporal's SDKs there too, such as {TEMPORAL_PORT} (0 for any free one); needs "
        "stepwell-server[temporal]",
    )


def add_tls_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--temporal-tls-cert",
        metavar="FILE",
        type=Path,
        help="certificate chain (PEM) of --temporal-port; default that of --tls-cert",
    )
    parser.add_argument("--temporal-tls-key", metavar="FILE", type=Path, help="its private key (PEM)")
    parser.add_argument(
        "--temporal-client-ca",
        metavar="FILE",
        type=Path,
        help="ask everybody at --temporal-port for a client certificate of these authorities (PEM); what each may do "
        "is in the file of --keys",
    )


def door(options: argparse.Namespace, keys: "AccessKeys | None" = None, certificate: Certificate | None = None) -> Door:
    """Raises Refused for a gateway that cannot be, or that nobody could enter. Beyond loopback there are ``keys``, and
    TLS here or in a proxy: HTTP is held to that too, on the same address."""
    if options.temporal_port is None:
        given = next((name for name in _TLS_OPTIONS if getattr(options, name, None) is not None), None)
        if given is not None:
            raise Refused(f"--{given.replace('_', '-')} goes with --temporal-port; give both")
        return Door()
    if any(importlib.util.find_spec(name) is None for name in _MODULES):
        raise Refused(
            "the gateway for Temporal's SDKs is not installed; install it: "
            "python -m pip install 'stepwell-server[temporal]'"
        )
    tls = _tls(options, certificate)
    if keys is None:
        if tls is not None and tls.client_ca is not None:
            raise Refused(
                "--temporal-client-ca needs --keys FILE, whose certificates say which namespaces each subject reaches; "
                "give both"
            )
        return Door(None, tls, "" if tls is None else " over TLS")
    asks_for_certificates = tls is not None and tls.client_ca is not None
    if not keys.api_keys and not (keys.certificates and asks_for_certificates):
        remedy = (
            "give --temporal-client-ca, by which its certificates are verified"
            if keys.certificates
            else 'add "api_keys" (docs/guide-temporal.md says how), or leave --temporal-port out'
        )
        raise Refused(f"{options.keys} lets nobody call at --temporal-port: {remedy}")
    if not asks_for_certificates:  # nobody can show one
        keys = keys._replace(certificates=())
    ways = ["API keys"] * bool(keys.api_keys) + ["client certificates"] * bool(keys.certificates)
    return Door(keys.gateway_access(), tls, f"{' over TLS' if tls else ''}, by {' and '.join(ways)}")


def _tls(options: argparse.Namespace, certificate: Certificate | None) -> "Tls | None":
    """Raises Refused."""
    from ..temporal_gateway.access import Tls

    chain, key, client_ca = (getattr(options, name, None) for name in _TLS_OPTIONS)
    own = certificate_of(chain, key, "--temporal-tls-cert", "--temporal-tls-key") or certificate
    if own is None:
        if client_ca is not None:
            raise Refused(
                "--temporal-client-ca needs --temporal-tls-cert and --temporal-tls-key: client certificates are seen "
                "where TLS ends"
            )
        return None
    authorities = None if client_ca is None else _authorities(client_ca)
    return Tls(Path(own.chain).read_bytes(), Path(own.key).read_bytes(), authorities)


def _authorities(path: Path) -> bytes:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cafile=path)
        return path.read_bytes()
    except (ssl.SSLError, OSError) as error:
        raise Refused(
            f"{path} has no certificates of authorities in PEM ({error.strerror or error}); give a file that has"
        ) from error


@contextlib.asynccontextmanager
async def temporal_gateway(
    engine: Engine, limiter: Limiter, options: argparse.Namespace, door: Door
) -> AsyncIterator[str]:
    """Gives the line of the banner; empty where no gateway is asked for. Raises Refused when the port is taken."""
    if options.temporal_port is None:
        yield ""
        return
    from ..temporal_gateway.server import GatewayServer

    server = GatewayServer(Calls(engine, limiter), server_version(), SystemIds(), door.access)
    try:
        try:
            bound = await server.start(options.host, options.temporal_port, door.tls)
        except OSError as error:
            raise Refused(f"{error}; stop what listens there, or choose another --temporal-port") from error
        name = f"[{options.host}]" if ":" in options.host else options.host
        yield f"  Temporal {name}:{bound}{door.words}\n"
    finally:
        await server.stop()
