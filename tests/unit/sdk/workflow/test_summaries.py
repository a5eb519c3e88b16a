"""Texts for people beside timers, activities and workflows (PM-27, TM-06)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.api.commands import ScheduleActivityTask, StartTimer
from stepwell.api.common import UserMetadata
from stepwell.api.errors import PayloadTooLarge
from stepwell.api.events import ActivityTaskScheduled, HistoryEvent, MarkerRecorded, TimerStarted
from stepwell.api.operations import START_WORKFLOW
from stepwell.api.requests import StartWorkflowRequest
from stepwell.common import WorkflowIDConflictPolicy
from stepwell.replay.errors import WorkflowTaskError
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker

from tests.support.histories import CONVERTER, Driver

LONG = timedelta(seconds=30)


@activity.defn
async def nothing() -> None:
    pass


@workflow.defn
async def speaks() -> None:
    await workflow.sleep(0, summary="no timer, so nothing")
    await asyncio.sleep(0.01)
    await workflow.sleep(0.01, summary="a nap")
    try:
        await workflow.wait_condition(lambda: False, timeout=0.01, timeout_summary="no hope")
    except TimeoutError:
        pass
    await workflow.sleep_until(workflow.now() + timedelta(milliseconds=10), summary="a moment")
    await workflow.execute_activity(nothing, start_to_close_timeout=LONG, summary="said of an activity")
    await workflow.execute_local_activity(nothing, start_to_close_timeout=LONG, summary="said of a local one")


def said(event: HistoryEvent) -> Any:
    metadata = event.user_metadata
    return None if metadata is None else CONVERTER.payload_converter.from_payload(metadata.summary)  # type: ignore[arg-type]


@pytest.mark.parametrize("cached", [1000, 0])
async def test_they_are_in_the_history(cached: int) -> None:
    async with (
        await DevEnvironment.start() as env,
        Worker(env.client, task_queue="q", workflows=[speaks], activities=[nothing], max_cached_workflows=cached),
    ):
        handle = await env.client.start_workflow(speaks, id="w", task_queue="q")
        await handle.result()
        events = (await handle.fetch_history()).events
    timers = [said(event) for event in events if isinstance(event.attributes, TimerStarted)]
    assert timers == [None, "a nap", "no hope", "a moment"]
    activities = [said(e) for e in events if isinstance(e.attributes, ActivityTaskScheduled | MarkerRecorded)]
    assert activities == ["said of an activity", "said of a local one"]


def test_they_go_with_the_commands() -> None:
    @workflow.defn
    async def both() -> None:
        handle = workflow.start_activity("a", start_to_close_timeout=LONG, summary="x" * 400)
        await workflow.sleep(5, summary="y")
        await handle

    first, second = Driver(both).task().commands
    assert isinstance(first, ScheduleActivityTask) and first.user_metadata is not None
    assert isinstance(second, StartTimer) and second.user_metadata is not None


@workflow.defn
async def too_much(how: str) -> None:
    if how == "timer":
        await workflow.sleep(5, summary="x" * 401)
    if how == "condition":
        await workflow.wait_condition(lambda: False, timeout=5, timeout_summary="x" * 401)
    if how == "type":
        await workflow.sleep(5, summary=5)  # type: ignore[arg-type]
    await workflow.execute_activity("a", start_to_close_timeout=LONG, summary="x" * 401)


@pytest.mark.parametrize("how", ["timer", "condition", "activity", "type"])
def test_limits(how: str) -> None:
    with pytest.raises(WorkflowTaskError) as raised:
        Driver(too_much, how).task()
    expected = "must be text, not int" if how == "type" else "401 bytes, the limit is 400"
    assert expected in raised.value.failure.message


async def test_what_a_run_was_started_with_is_described() -> None:
    async with await DevEnvironment.start() as env:
        client = env.client
        handle = await client.start_workflow(
            "speaks", id="w", task_queue="q", static_summary="order 42", static_details="a flute\nin golden paper"
        )
        described = await handle.describe()
        assert await described.static_summary() == "order 42"
        assert await described.static_details() == "a flute\nin golden paper"
        (started,) = [event async for event in handle.fetch_history_events() if event.event_id == 1]
        assert said(started) == "order 42"
        plain = await (await client.start_workflow("speaks", id="plain", task_queue="q")).describe()
        assert await plain.static_summary() is None and await plain.static_details() is None
        again = await client.start_workflow(
            "speaks",
            id="w",
            task_queue="q",
            static_summary="order 43",
            id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING,
        )
        described = await again.describe()
        assert (await described.static_summary(), await described.static_details()) == ("order 43", None)
        earlier = client.get_workflow_handle("w", run_id=handle.result_run_id)
        assert await (await earlier.describe()).static_summary() == "order 42"


@pytest.mark.parametrize(("field", "limit"), [("static_summary", 400), ("static_details", 20_000)])
async def test_limits_of_a_start(field: str, limit: int) -> None:
    async with await DevEnvironment.start() as env:
        with pytest.raises(ValueError, match=f"{field} has {limit + 1} bytes, the limit is {limit}"):
            await env.client.start_workflow("w", id="w", task_queue="q", **{field: "x" * (limit + 1)})  # type: ignore[call-overload]
        with pytest.raises(TypeError, match=f"{field} must be text"):
            await env.client.start_workflow("w", id="w", task_queue="q", **{field: 1})  # type: ignore[call-overload]
        name = field.removeprefix("static_")
        metadata = UserMetadata(**{name: CONVERTER.payload_converter.to_payload("x" * (5 * limit))})
        request = StartWorkflowRequest(workflow_id="w", workflow_type="w", task_queue="q", user_metadata=metadata)
        with pytest.raises(PayloadTooLarge, match=f"user_metadata.{name}"):
            await env.client.transport.call(START_WORKFLOW, request)


async def test_a_reset_keeps_them() -> None:
    async with (
        await DevEnvironment.start() as env,
        Worker(env.client, task_queue="q", workflows=[speaks], activities=[nothing]),
    ):
        handle = await env.client.start_workflow(speaks, id="w", task_queue="q", static_summary="order 42")
        await handle.result()
        again = await handle.reset(event_id=4)
        assert await (await again.describe()).static_summary() == "order 42"
        await again.result()
