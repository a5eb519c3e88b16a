"""Runs retention from time to time: closed runs older than the retention period are deleted (MT-02)."""

import asyncio
import logging
from datetime import timedelta

from ..adapters.backend import Backend
from ..common import spaces
from ..history.engine import Engine
from ..history.ports import StoreUnavailable

log = logging.getLogger(__name__)

INTERVAL = timedelta(hours=1)
FIRST = timedelta(seconds=30)
"""Not at once, so that a restart serves first."""


async def keep_retention(
    backend: Backend,
    engine: Engine,
    retention: timedelta,
    *,
    first: timedelta = FIRST,
    interval: timedelta = INTERVAL,
) -> None:
    """Until cancelled. A store that cannot be written now is tried again at the next interval."""
    await asyncio.sleep(first.total_seconds())
    while True:
        try:
            now = backend.clock.now()
            own = {name: now - config.retention for name, config in backend.namespaces.known.items()}
            own |= {spaces.of_activities(name): closed_before for name, closed_before in own.items()}
            deleted = await backend.sweep(now - retention, own)
        except StoreUnavailable as error:
            log.warning("Retention is postponed: %s", error)
        else:
            if deleted:
                engine.forget(deleted)
                log.info("Retention deleted closed runs of %d workflow ids", len(set(deleted)))
        await asyncio.sleep(interval.total_seconds())
