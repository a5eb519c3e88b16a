"""An embedded engine with everything around it: store, engine, retention; started and stopped in the right order."""

import asyncio
import logging
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..adapters.backend import Backend
from ..adapters.embedded.backend import embedded_backend
from ..common.clock import Clock, IdSource
from ..common.settings import EngineSettings
from ..history.engine import Engine
from ..history.ports import StoreUnavailable

log = logging.getLogger(__name__)

RETENTION_INTERVAL = timedelta(hours=1)
_FIRST_SWEEP = timedelta(seconds=30)
"""Not at once, so that a restart serves first."""


def server_version() -> str:
    try:
        return version("stepwell-server")
    except PackageNotFoundError:
        return "unknown"


class HostedEngine:
    """One running engine on one database. ``start`` makes it; ``stop`` may be called again."""

    def __init__(self, backend: Backend, engine: Engine, retention: timedelta) -> None:
        self.backend = backend
        self.engine = engine
        self._retention = retention
        self._sweeping: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls, path: str | Path, *, clock: Clock | None = None, ids: IdSource | None = None
    ) -> "HostedEngine":
        """Opens the database (``:memory:`` for none) and goes on with what is in it.

        Raises ``DatabaseRefused``, also when another process owns the file.
        """
        backend = embedded_backend(path, clock=clock, ids=ids)
        try:
            settings = EngineSettings(server_version=server_version(), database=backend.database)
            hosted = cls(backend, make_engine(backend, settings), settings.default_retention)
            await hosted.engine.start()
        except BaseException:
            await backend.close()
            raise
        hosted._sweeping = asyncio.get_running_loop().create_task(hosted._sweep())
        return hosted

    async def stop(self) -> None:
        """Ends long polls, lets what is being committed finish, and closes the database."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.wait((self._sweeping,))
            self._sweeping = None
        try:
            await self.engine.stop()
        finally:
            await self.backend.close()

    async def _sweep(self) -> None:
        await asyncio.sleep(_FIRST_SWEEP.total_seconds())
        while True:
            try:
                deleted = await self.backend.sweep(self.backend.clock.now() - self._retention)
            except StoreUnavailable as error:
                log.warning("retention is postponed: %s", error)
            else:
                if deleted:
                    self.engine.forget(deleted)
                    log.info("retention deleted closed runs of %d workflow ids", len(set(deleted)))
            await asyncio.sleep(RETENTION_INTERVAL.total_seconds())


def make_engine(backend: Backend, settings: EngineSettings) -> Engine:
    """The engine on a backend's ports."""
    return Engine(
        log=backend.log,
        timers=backend.timers,
        visibility=backend.visibility,
        clock=backend.clock,
        ids=backend.ids,
        token_key=backend.token_key,
        settings=settings,
    )
