"""From ``--address`` to an engine, and from what happens there to an exit code."""

import asyncio
import getpass
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TypeVar

import click

from ..api.errors import ApiError, Unavailable
from ..api.operations import Operation
from ..transport import Transport
from ..transport.address import SQLITE, check_address, http_transport, sqlite_path
from ..transport.in_process import ENTRY_POINT, ENTRY_POINT_GROUP, MEMORY, open_embedded
from .settings import IDENTITY
from .troubles import OutOfReach, Refused, Usage, trouble_of

Req = TypeVar("Req")
Resp = TypeVar("Resp")

PATIENCE = 2.0
"""Seconds for which a command tries to reach the engine before it gives up."""

OUTAGE = 60.0
"""Seconds for which a command that waits goes on while the engine is out of reach, such as during its restart."""

_OUTAGE_PAUSE = 0.5


@dataclass(frozen=True, slots=True)
class Target:
    """Where a command goes. ``as_json``: standard output carries JSON and nothing else."""

    address: str
    namespace: str
    as_json: bool
    sign: bool | None = None
    """Whether requests are signed; None: those to addresses of AWS are."""


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine that a command talks to."""

    transport: Transport
    target: Target

    async def call(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        return await self.transport.call(operation, request)

    async def call_through_outage(
        self, operation: Operation[Req, Resp], request: Req, note: Callable[[str], None]
    ) -> Resp:
        """Asks again for up to ``OUTAGE`` seconds while the engine is out of reach; ``note`` is told about it."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + OUTAGE
        while True:
            try:
                return await self.transport.call(operation, request)
            except Unavailable:
                if clock() >= deadline:
                    raise
                note("the engine is out of reach, trying again")
                await asyncio.sleep(_OUTAGE_PAUSE)


def run(target: Target, command: Callable[[Engine], Awaitable[None]], *, read_only: bool = False) -> None:
    """Runs ``command`` with an open engine. ``read_only``: a ``sqlite://`` file is only looked at, so that this works
    beside the process that owns it, and starts nothing. Raises :class:`~stepwell.cli.troubles.Trouble`."""
    try:
        asyncio.run(_run(target, command, read_only))
    except ApiError as error:
        raise trouble_of(error, target.address) from error


async def _run(target: Target, command: Callable[[Engine], Awaitable[None]], read_only: bool) -> None:
    async with _open(target, read_only) as transport:
        await command(Engine(transport, target))


@asynccontextmanager
async def _open(target: Target, read_only: bool) -> AsyncIterator[Transport]:
    transport = await _transport(target.address, target.sign, read_only)
    try:
        yield transport
    finally:
        await transport.close()


async def _transport(address: str, sign: bool | None, read_only: bool) -> Transport:
    try:
        check_address(address, sign)
        if address.startswith(SQLITE):
            path = sqlite_path(address)
            return await (_open_read_only(path) if read_only and path != MEMORY else open_embedded(path))
        return http_transport(address, sign=sign, total_wait=PATIENCE)
    except ValueError as error:
        raise Usage(f"--address {error}") from error
    except RuntimeError as error:
        raise Refused(str(error)) from error
    except OSError as error:
        raise OutOfReach(f"{address} cannot be opened: {error}") from error


async def _open_read_only(path: str) -> Transport:
    for entry_point in entry_points(group=ENTRY_POINT_GROUP, name=ENTRY_POINT):
        transport: Transport = await entry_point.load()(path, read_only=True)
        return transport
    return await open_embedded(path)  # which says what to install


def identity() -> str:
    """Who is at the terminal, as histories show it: as the profile says, else user and host."""
    context = click.get_current_context(silent=True)
    if context is not None and IDENTITY in context.meta:
        named: str = context.meta[IDENTITY]
        return named
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return f"cli:{user}@{socket.gethostname()}"
