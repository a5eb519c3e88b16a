"""AC-21, AC-22, PM-32: an activity that others finish, by its token or by ids; the history is that of any activity."""

import asyncio

import pytest
from stepwell.activity import Info
from stepwell.client import AsyncActivityCancelledError, AsyncActivityHandle, WorkflowFailureError
from stepwell.exceptions import ApplicationError, CancelledError

from tests.conformance.async_completion import workflow
from tests.conformance.async_completion.workflow import approval, ask_a_person
from tests.support.conformance import Feature


async def handed_out() -> Info:
    return await asyncio.wait_for(workflow.HANDED_OUT.get(), 20)


@pytest.fixture(autouse=True)
async def _queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflow, "HANDED_OUT", asyncio.Queue())


async def test_by_token(feature: Feature) -> None:
    async with feature.worker([approval], [ask_a_person]):
        handle = await feature.start(approval, "may I?")
        info = await handed_out()
        await feature.client.get_async_activity_handle(task_token=info.task_token).complete("yes")
        assert await handle.result() == "yes"


async def test_by_ids_behind_a_failed_attempt(feature: Feature) -> None:
    async with feature.worker([approval], [ask_a_person]):
        handle = await feature.start(approval, "may I?")
        info = await handed_out()
        by_id = feature.client.get_async_activity_handle(workflow_id=handle.id, activity_id=info.activity_id)
        await by_id.fail(ApplicationError("out of office"))
        assert (await handed_out()).attempt == 2
        await by_id.complete("no")
        assert await handle.result() == "no"


async def test_it_hears_of_cancellation_and_says_that_it_stopped(feature: Feature) -> None:
    async with feature.worker([approval], [ask_a_person]):
        handle = await feature.start(approval, "may I?")
        outside = feature.client.get_async_activity_handle(task_token=(await handed_out()).task_token)
        await handle.cancel()
        with pytest.raises(AsyncActivityCancelledError):
            await asyncio.wait_for(_beat(outside), 20)
        await outside.report_cancellation()
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    assert isinstance(failed.value.cause, CancelledError)


async def _beat(outside: AsyncActivityHandle) -> None:
    while True:
        await outside.heartbeat()
