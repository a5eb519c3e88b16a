"""A poll that waits while a test does something."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

from stepwell.api.requests import WorkerInfo

from stepwell_server.matching.service import Matching, QueueName


@asynccontextmanager
async def polling(
    matching: Matching, name: QueueName, worker: WorkerInfo
) -> AsyncIterator["asyncio.Future[Hashable | None]"]:
    poll = asyncio.ensure_future(matching.poll(name, worker, 5.0))
    while not matching.has_waiting_poller(name):
        await asyncio.sleep(0)
    try:
        yield poll
    finally:
        poll.cancel()
        await asyncio.wait([poll])
