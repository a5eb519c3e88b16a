"""ER-08: what a worker would send is more than one request may hold (over HTTP, where requests have a limit)."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from stepwell import activity, workflow
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.api.events import HistoryEvent, WorkflowTaskFailed
from stepwell.client import Client, WorkflowHandle
from stepwell.worker import Worker

from stepwell_server.frontend import asgi
from tests.support.api_server import served_api

TIMEOUT = timedelta(seconds=30)
LIMIT = 30_000
TEXT = "x" * 15_000
"""One fits into a request, two do not."""


@activity.defn
async def read(text: str) -> str:
    return text or TEXT


@workflow.defn
class Writes:
    """Asks for one activity with a text of that many characters."""

    @workflow.run
    async def run(self, size: int) -> int:
        return len(await workflow.execute_activity(read, "x" * size, start_to_close_timeout=TIMEOUT))


@workflow.defn
class Gathers:
    @workflow.run
    async def run(self) -> int:
        texts = await asyncio.gather(
            *(workflow.execute_activity(read, "", start_to_close_timeout=TIMEOUT) for _ in range(4))
        )
        return sum(map(len, texts))


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with served_api() as served, await Client.connect(f"http://127.0.0.1:{served.port}") as client:
        yield client


async def failures(handle: WorkflowHandle[int]) -> list[WorkflowTaskFailed]:
    history = await handle.fetch_history()
    events: list[HistoryEvent] = list(history.events)
    return [event.attributes for event in events if isinstance(event.attributes, WorkflowTaskFailed)]


async def test_commands_that_do_not_fit_fail_the_task_by_name(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on once the limit, or the code, is another."""
    monkeypatch.setattr(asgi, "MAX_REQUEST_BYTES", LIMIT)
    async with Worker(client, task_queue="q", workflows=[Writes], activities=[read]):
        handle = await client.start_workflow(Writes.run, 2 * len(TEXT), id="w", task_queue="q")
        async with asyncio.timeout(30):
            while not (failed := await failures(handle)):
                await asyncio.sleep(0.01)
        monkeypatch.undo()
        assert await asyncio.wait_for(handle.result(), 30) == 2 * len(TEXT)
    assert failed[0].cause is WorkflowTaskFailedCause.REQUEST_TOO_LARGE
    assert failed[0].failure is not None and f"above the limit of {LIMIT}" in failed[0].failure.message


async def test_results_that_do_not_fit_together_are_sent_apart(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "MAX_REQUEST_BYTES", LIMIT)
    async with Worker(client, task_queue="q", workflows=[Gathers], activities=[read]):
        handle = await client.start_workflow(Gathers.run, id="w", task_queue="q")
        assert await asyncio.wait_for(handle.result(), 30) == 4 * len(TEXT)
    assert await failures(handle) == []
