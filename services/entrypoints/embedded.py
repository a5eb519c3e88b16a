"""The engine inside the user's own process, for ``sqlite://`` addresses: no server, no HTTP, no serialisation.

The SDK finds :func:`open_transport` through the entry-point group ``stepwell.embedded``.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from stepwell.api.errors import ApiError, FailedPrecondition, Unavailable
from stepwell.api.operations import Operation

from ..adapters.embedded.connection import MEMORY
from ..adapters.embedded.errors import DatabaseRefused
from ..common.clock import Clock, IdSource
from ..frontend.limiting import Limiter
from ..frontend.refusals import api_error
from ..frontend.routes import HANDLERS
from ..history.callback_addresses import BadAddress
from ..history.engine import Engine
from .hosting import HostedEngine
from .inspecting import open_inspection

Req = TypeVar("Req")
Resp = TypeVar("Resp")


class InProcessTransport:
    """Hands requests to the handlers of an engine in this process. One per client; clients of a file share it."""

    def __init__(self, engine: Engine, limiter: Limiter, share: "_Share") -> None:
        self._engine = engine
        self._limiter = limiter
        self._share: _Share | None = share

    async def call(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        """Raises ``ApiError``, like every transport."""
        if self._share is None:
            raise Unavailable("this client is closed; connect again")
        try:
            handler = HANDLERS[operation.name]
            response: Resp
            if self._limiter.active:
                response = await self._limiter.carry_out(handler, self._engine, operation, request)
            else:
                response = await handler(self._engine, request)
        except ApiError:
            raise
        except Exception as error:
            raise api_error(error, operation.name) from error
        return response

    async def close(self) -> None:
        """The engine stops when the last of its clients is closed. May be called again."""
        share, self._share = self._share, None
        if share is not None:
            await share.leave()


@dataclass(slots=True)
class _Share:
    """A running engine and how many clients use it. ``starting`` and ``stopping`` are waited for by who comes then."""

    key: str | None
    loop: asyncio.AbstractEventLoop
    starting: "asyncio.Task[HostedEngine]"
    users: int = 0
    stopping: "asyncio.Task[None] | None" = None

    async def leave(self) -> None:
        self.users -= 1
        if self.users > 0:
            return
        self.stopping = self.loop.create_task(self._stop())
        await asyncio.shield(self.stopping)

    async def _stop(self) -> None:
        try:
            await asyncio.wait((self.starting,))
            if not self.starting.cancelled() and self.starting.exception() is None:
                await self.starting.result().stop()
        finally:
            self.forget()

    async def salvage(self) -> None:
        """Its event loop ended without closing it; the file is let go, so that it can be opened on this loop."""
        self.forget()
        if self.starting.done() and not self.starting.cancelled() and self.starting.exception() is None:
            await self.starting.result().backend.close()

    def forget(self) -> None:
        if self.key is not None and _shares.get(self.key) is self:
            del _shares[self.key]


_shares: dict[str, _Share] = {}


async def open_transport(
    path: str | Path, *, read_only: bool = False, clock: Clock | None = None, ids: IdSource | None = None
) -> Any:
    """A transport to the engine of the database at ``path``, which is started unless this process runs it already.

    ``:memory:`` gives every caller an engine of its own. ``read_only`` looks at a file beside its owner: reads only,
    and nothing is started. Raises ``FailedPrecondition`` when the file is not ours or another process owns it.
    """
    try:
        if read_only:
            return await open_inspection(path)
        return await _share(str(path), clock, ids)
    except (BadAddress, DatabaseRefused) as error:
        raise FailedPrecondition(str(error)) from error


async def _share(path: str, clock: Clock | None, ids: IdSource | None) -> InProcessTransport:
    loop = asyncio.get_running_loop()
    key = None if path == MEMORY else _resolved(path)
    share = None if key is None else await _running(key, loop)
    if share is None:
        share = _Share(key, loop, loop.create_task(HostedEngine.start(key or path, clock=clock, ids=ids)))
        if key is not None:
            _shares[key] = share
    share.users += 1
    try:
        hosted = await asyncio.shield(share.starting)
    except BaseException:
        await share.leave()
        raise
    return InProcessTransport(hosted.engine, hosted.limiter, share)


def _resolved(path: str) -> str:
    try:
        return str(Path(path).expanduser().resolve())
    except RuntimeError as error:  # links that lead round in a circle, the home of a user who is not there
        raise FailedPrecondition(f"cannot open {path}: {error}; choose another path") from error


async def _running(key: str, loop: asyncio.AbstractEventLoop) -> _Share | None:
    """The share to join, after one that is stopping has stopped."""
    while (share := _shares.get(key)) is not None:
        if share.loop.is_closed():
            await share.salvage()
        elif share.loop is not loop:
            raise FailedPrecondition(
                f"{key} is open in another event loop of this process; use one loop for all clients of a file, "
                "and close them before it ends"
            )
        elif share.stopping is None:
            return share
        else:
            await asyncio.wait((share.stopping,))
    return None
