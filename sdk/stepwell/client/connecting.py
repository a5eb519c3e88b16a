"""From what ``Client.connect`` is given, and what the environment and a profile say, to a connection."""

import asyncio
import os
from collections.abc import Awaitable
from dataclasses import dataclass

from ..api.errors import ApiError, Unavailable
from ..envconfig import DEFAULT_ADDRESS, DEFAULT_NAMESPACE, ClientConfig, ClientConfigProfile, resolved
from ..transport import Transport
from ..transport.address import open_transport
from .errors import RPCError

CONNECT_TIMEOUT = 10.0
"""Seconds for which ``Client.connect`` keeps trying to reach a server."""


@dataclass(frozen=True, slots=True)
class Connection:
    transport: Transport
    url: str
    namespace: str
    identity: str | None


async def opened(
    url: str | None, namespace: str | None, identity: str | None, sign: bool | None, profile: str | None
) -> Connection:
    """What is given goes before what is said elsewhere, which nobody asks for beside a ``url`` without ``profile``."""
    said = ClientConfigProfile()
    if url is None or profile is not None:
        said = resolved(ClientConfig.load().named(profile, os.environ), os.environ, url)
    if url is None:
        url = said.address or DEFAULT_ADDRESS
    if namespace is None:
        namespace = said.namespace or DEFAULT_NAMESPACE
    try:
        transport = await open_transport(url, sign=said.sign if sign is None else sign)
    except ApiError as error:
        raise RPCError(error) from error
    return Connection(transport, url, namespace, said.identity if identity is None else identity)


async def answered(answer: Awaitable[object], url: str) -> None:
    """Raises :class:`RPCError` when the engine at ``url`` gives no answer."""
    try:
        await asyncio.wait_for(answer, CONNECT_TIMEOUT)
    except TimeoutError:
        raise RPCError(Unavailable(f"No engine answers at {url}; is the server running? (stepwell dev)")) from None
