"""Runs the collector of blobs from time to time, for a while each time: in a container by a loop, in the function that
is called once a minute with every tenth call.
"""

import asyncio
import logging
from datetime import timedelta

from ..adapters.backend import Backend
from ..history.ports import StoreUnavailable

log = logging.getLogger(__name__)

INTERVAL = timedelta(minutes=10)
SECONDS = 30.0
"""How long a container collects each time."""


async def collect_some(backend: Backend, seconds: float) -> int:
    """The number of blobs deleted. A store that cannot be reached now is tried again the next time."""
    if backend.collect is None:
        return 0
    try:
        collected = await backend.collect(seconds)
    except StoreUnavailable as error:
        log.warning("Collecting blobs is postponed: %s", error)
        return 0
    if collected.deleted:
        log.info("Deleted %d blobs that no run needs; looked at %d runs", collected.deleted, collected.runs)
    return collected.deleted


async def keep_collecting(backend: Backend, *, interval: timedelta = INTERVAL, seconds: float = SECONDS) -> None:
    """Until cancelled. What is refused (missing rights) is told each time, and serving goes on."""
    while True:
        await asyncio.sleep(interval.total_seconds())
        try:
            await collect_some(backend, seconds)
        except Exception:
            log.exception("Blobs cannot be collected")
