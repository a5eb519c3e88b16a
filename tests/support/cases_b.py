"""For the field cases: an engine on a file of its own, workers with and without a cache, and waits with a limit."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from stepwell.api.events import EventAttributes
from stepwell.api.requests import PendingWorkflowTaskInfo
from stepwell.client import Client, WorkflowHandle
from stepwell.worker import Worker

from tests.support.api_server import served_api

T = TypeVar("T")

QUEUE = "cases"
LIMIT = timedelta(seconds=30)
"""Start-to-close of activities that have no reason to be slow: long enough never to matter."""

cache_on_and_off = pytest.mark.parametrize("cache", [1000, 0], ids=["cache", "no-cache"])
"""``max_cached_workflows``; with 0 every workflow task is a full replay."""


@asynccontextmanager
async def engine(folder: Path) -> AsyncIterator[Client]:
    """A client of an engine in this process, on a file in ``folder``."""
    async with await Client.connect(f"sqlite:///{folder / 'case.db'}") as client:
        yield client


@asynccontextmanager
async def served() -> AsyncIterator[Client]:
    """A client, over HTTP, of a server in this process."""
    async with served_api() as api, await Client.connect(api.address) as client:
        yield client


def worker(
    client: Client, workflows: Sequence[Any] = (), activities: Sequence[Any] = (), cache: int = 1000, **options: Any
) -> Worker:
    """A worker of the task queue that all cases use. Its workflow code may take long, as a busy machine makes it."""
    options.setdefault("deadlock_timeout", LIMIT)
    return Worker(
        client,
        task_queue=options.pop("task_queue", QUEUE),
        workflows=workflows,
        activities=activities,
        max_cached_workflows=cache,
        **options,
    )


async def within(seconds: float, work: Awaitable[T]) -> T:
    """The result; a hang fails the test instead of the whole run."""
    return await asyncio.wait_for(work, seconds)


async def until(found: Callable[[], Awaitable[T]], seconds: float = 20) -> T:
    """The first answer that is true."""

    async def look() -> T:
        while not (answer := await found()):
            await asyncio.sleep(0.02)
        return answer

    return await asyncio.wait_for(look(), seconds)


async def failing_task(handle: WorkflowHandle[Any], attempt: int = 2, seconds: float = 20) -> PendingWorkflowTaskInfo:
    """The outstanding workflow task, once it is at this attempt: the ones before have failed."""

    async def look() -> PendingWorkflowTaskInfo | None:
        pending = (await handle.describe()).pending_workflow_task
        return pending if pending is not None and pending.attempt >= attempt else None

    return await until(look, seconds)  # type: ignore[return-value] # None is not an answer


async def attributes(handle: WorkflowHandle[Any]) -> list[EventAttributes]:
    """The history so far."""
    return [event.attributes async for event in handle.fetch_history_events()]


async def kinds(handle: WorkflowHandle[Any]) -> list[str]:
    """The history so far, as names of events."""
    return [type(found).__name__ for found in await attributes(handle)]
