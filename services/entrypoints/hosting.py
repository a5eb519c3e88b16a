"""An embedded engine with everything around it: store, engine, retention; started and stopped in the right order."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

from ..adapters.backend import Backend
from ..adapters.embedded.backend import embedded_backend
from ..adapters.embedded.errors import DatabaseRefused
from ..common.clock import Clock, IdSource
from ..common.settings import EngineSettings
from ..frontend.limiting import Limiter
from ..history.engine import Engine
from ..history.ports import StoreUnavailable
from .making import callback_addresses_of, make_engine, server_version
from .retention_loop import keep_retention


class HostedEngine:
    """One running engine on one database. ``start`` makes it; ``stop`` may be called again."""

    def __init__(self, backend: Backend, engine: Engine) -> None:
        self.backend = backend
        self.engine = engine
        self.limiter = Limiter(engine.namespaces)
        """Of callers in this process: they are held to what is registered, and to nothing else."""
        self._sweeping: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        path: str | Path,
        *,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        require_registered_namespaces: bool = False,
        minimum_between_runs: timedelta = timedelta(0),
        id_starts_per_second: float = 0.0,
        callback_addresses: tuple[str, ...] = (),
    ) -> "HostedEngine":
        """Opens the database (``:memory:`` for none) and goes on with what is in it.

        ``callback_addresses`` (LC-10) are those of the environment unless they are given. Raises ``BadAddress`` for one
        that is none, ``DatabaseRefused``, also when another process owns the file.
        """
        backend = embedded_backend(path, clock=clock, ids=ids)
        settings = EngineSettings(
            server_version=server_version(),
            database=backend.database,
            require_registered_namespaces=require_registered_namespaces,
            minimum_between_runs=minimum_between_runs,
            id_starts_per_second=id_starts_per_second,
            callback_addresses=callback_addresses or callback_addresses_of(os.environ),
        )
        hosted = cls(backend, make_engine(backend, settings))
        try:
            await hosted.engine.start()
        except StoreUnavailable as error:
            await hosted.stop()
            raise DatabaseRefused(f"cannot open {path}: {error}; check the disk, or restore a backup") from error
        except BaseException:
            await hosted.stop()
            raise
        retention = keep_retention(backend, hosted.engine, settings.default_retention)
        hosted._sweeping = asyncio.get_running_loop().create_task(retention)
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
