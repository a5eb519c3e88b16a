"""The engine inside this process, for ``sqlite://`` addresses: records are handed over without HTTP in between.

The engine comes with the distribution ``stepwell-server``, found through the entry-point group ``stepwell.embedded``;
this package never names server code. One file has one engine per process: clients of the same file share it.
"""

import asyncio
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

from ..api.operations import Operation
from . import Transport

Req = TypeVar("Req")
Resp = TypeVar("Resp")

ENTRY_POINT_GROUP = "stepwell.embedded"
ENTRY_POINT = "sqlite"
MEMORY = ":memory:"


@dataclass(slots=True)
class _Shared:
    loop: asyncio.AbstractEventLoop
    opening: "asyncio.Future[Transport]"
    users: int = 0


_engines: dict[str, _Shared] = {}


class EmbeddedTransport:
    """One client's share of an embedded engine; the engine stops when the last share is closed."""

    def __init__(self, engine: Transport, key: str | None) -> None:
        self._engine = engine
        self._key = key
        self._closed = False
        self.call = engine.call
        """The engine's own method: a call in process costs no extra frame."""

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._key is not None:
            shared = _engines[self._key]
            shared.users -= 1
            if shared.users > 0:
                return
            del _engines[self._key]
        await self._engine.close()


async def open_embedded(path: str) -> Transport:
    """Open the SQLite file at ``path`` (or ``:memory:``, which every caller gets for itself).

    Raises ``RuntimeError`` when the engine is not installed or the file is in use by another event loop of this process, and
    what the engine raises when the file is not ours or belongs to another process.
    """
    if path == MEMORY:
        return EmbeddedTransport(await _open(path), None)
    key = str(Path(path).expanduser().resolve())
    loop = asyncio.get_running_loop()
    shared = _engines.get(key)
    if shared is not None and shared.loop.is_closed():
        del _engines[key]
        shared = None
    if shared is None:
        shared = _engines[key] = _Shared(loop, loop.create_task(_open(key)))
    if shared.loop is not loop:
        raise RuntimeError(f"{key} is already open in another event loop of this process; use one loop for all clients of a file")
    shared.users += 1
    try:
        engine = await asyncio.shield(shared.opening)
    except BaseException:
        shared.users -= 1
        if shared.users == 0 and _engines.get(key) is shared:
            del _engines[key]
        raise
    return EmbeddedTransport(engine, key)


async def _open(path: str) -> Any:
    found = list(entry_points(group=ENTRY_POINT_GROUP, name=ENTRY_POINT))
    if not found:
        raise RuntimeError(
            "sqlite:// addresses run the engine inside this process, and it is not installed; "
            "install stepwell-server, or connect to a server by http://"
        )
    open_transport = found[0].load()
    return await open_transport(path)
