"""Code that changes under open runs, by what the worker is told of it (ER-04, VE-03, VE-04)."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.api.events import WorkflowTaskCompleted
from stepwell.client import Client, WorkflowFailureError, WorkflowHandle
from stepwell.exceptions import ApplicationError
from stepwell.testing import DevEnvironment
from stepwell.worker import PatchActivationInput, Worker

TIMEOUT = timedelta(seconds=10)


@activity.defn
async def name(value: str) -> str:
    return value


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with await DevEnvironment.start() as environment:
        yield environment.client


def worker(client: Client, *workflows: Any, **options: Any) -> Worker:
    return Worker(client, task_queue="q", workflows=workflows, activities=[name], **options)


async def first_task_done(handle: WorkflowHandle[Any]) -> None:
    async with asyncio.timeout(30):
        async for event in handle.fetch_history_events(wait_new_event=True):
            if isinstance(event.attributes, WorkflowTaskCompleted):
                return


async def test_changed_code_fails_the_workflow_where_a_worker_says_so(client: Client) -> None:
    @workflow.defn(name="Changing")
    async def first() -> None:
        await workflow.wait_for_signal("go")

    @workflow.defn(name="Changing")
    async def changed() -> None:
        await workflow.execute_activity(name, "x", start_to_close_timeout=TIMEOUT)

    async with worker(client, first):
        handle = await client.start_workflow(first, id="w", task_queue="q")
        await first_task_done(handle)
    async with worker(client, changed, workflow_failure_exception_types=[workflow.NondeterminismError]):
        await handle.signal("go")
        with pytest.raises(WorkflowFailureError) as caught:
            await asyncio.wait_for(handle.result(), 30)
    cause = caught.value.cause
    assert isinstance(cause, ApplicationError) and cause.type == "NondeterminismError"
    assert "asked for ScheduleActivityTask" in str(cause)


@pytest.mark.parametrize("cached", [0, 100])
async def test_versions_over_two_releases(client: Client, cached: int) -> None:
    def release(newest: int) -> Any:
        @workflow.defn(name="Versioned")
        async def versioned() -> list[str]:
            said = []
            for _ in range(2):
                number = workflow.version("greeting", workflow.DEFAULT_VERSION, newest)
                said.append(await workflow.execute_activity(name, f"v{number}", start_to_close_timeout=TIMEOUT))
                await workflow.wait_for_signal("go")
            return said

        return versioned

    results = {}
    async with worker(client, release(1), max_cached_workflows=cached):
        handle = await client.start_workflow("Versioned", id="first", task_queue="q")
        await first_task_done(handle)
    async with worker(client, release(2), max_cached_workflows=cached):
        later = await client.start_workflow("Versioned", id="second", task_queue="q")
        for run in (handle, later):
            await run.signal("go")
            await run.signal("go")
            results[run.id] = await asyncio.wait_for(run.result(), 30)
    assert results == {"first": ["v1", "v1"], "second": ["v2", "v2"]}


async def test_a_patch_waits_for_the_workers_callback(client: Client) -> None:
    @workflow.defn(name="Activated")
    async def patched() -> bool:
        return workflow.patched("p")

    asked: list[PatchActivationInput] = []

    def active(given: PatchActivationInput) -> bool:
        asked.append(given)
        return given.workflow_info.workflow_id == "new"

    async with worker(client, patched, patch_activation_callback=active):
        results = [await client.execute_workflow(patched, id=key, task_queue="q") for key in ("old", "new")]
    assert results == [False, True] and [given.patch_id for given in asked] == ["p", "p"]
