"""Session workers: what they refuse, and which queues they serve; how sessions go is in ``conformance/sessions``."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.client import Client, WorkflowFailureError
from stepwell.exceptions import ApplicationError, SessionFailedError
from stepwell.testing import ActivityEnvironment, DevEnvironment
from stepwell.worker import Worker
from stepwell.worker.sessions import HeldSessions


@activity.defn
async def act() -> str:
    return activity.info().task_queue


@workflow.defn
async def misuses() -> list[str]:
    said = []
    session = workflow.session()
    try:
        _ = session.task_queue
    except RuntimeError as error:
        said.append(str(error))
    async with session:
        said.append(
            await workflow.execute_activity(
                act, task_queue=session.task_queue, start_to_close_timeout=timedelta(seconds=10)
            )
        )
    try:
        async with session:
            pass
    except RuntimeError as error:
        said.append(str(error))
    try:
        async with workflow.session(heartbeat_timeout=timedelta(0)):
            pass
    except ValueError as error:
        said.append(str(error))
    return said


@workflow.defn
async def uncaught() -> None:
    async with workflow.session(creation_timeout=timedelta(milliseconds=50)):
        pass


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_concurrent_sessions": -1, "activities": [act]}, "max_concurrent_sessions must not be negative, not -1"),
        ({"max_concurrent_sessions": 1, "workflows": [misuses]}, "is for workers with activities"),
    ],
)
async def test_bad_options(options: dict[str, Any], message: str) -> None:
    async with await Client.connect("sqlite://:memory:") as client:
        with pytest.raises(ValueError, match=message):
            Worker(client, task_queue="q", **options)


async def test_misuse_of_a_session() -> None:
    async with await DevEnvironment.start() as env:
        async with Worker(env.client, task_queue="q", workflows=[misuses], activities=[act], max_concurrent_sessions=1):
            early, queue, twice, beat = await env.client.execute_workflow(misuses, id="m", task_queue="q")
    assert early.startswith("the session has not begun")
    assert queue.startswith("q:session:")
    assert twice.startswith("a session is for one block")
    assert "heartbeat_timeout must be above zero" in beat


async def test_uncaught_it_fails_the_workflow_under_its_name() -> None:
    async with await DevEnvironment.start() as env:
        async with Worker(env.client, task_queue="q", workflows=[uncaught]):
            handle = await env.client.start_workflow(uncaught, id="u", task_queue="q")
            with pytest.raises(WorkflowFailureError) as caught:
                await handle.result()
    cause = caught.value.cause
    assert isinstance(cause, ApplicationError) and cause.type == SessionFailedError.__name__


async def test_a_second_attempt_of_a_hold_ends_the_session() -> None:
    """The first was put back by a worker that could not say how it ended."""
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=2)
    held = HeldSessions("q:session:key")
    with pytest.raises(ApplicationError, match="begun on another worker") as caught:
        await environment.run(held.hold)
    assert caught.value.non_retryable and len(held) == 0
