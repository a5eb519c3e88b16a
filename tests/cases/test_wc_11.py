"""WC-11: a renamed activity passes replay unnoticed."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.client import Client, WorkflowHandle, WorkflowHistory
from stepwell.common import RetryPolicy
from stepwell.replay.errors import NondeterminismError
from stepwell.replay.replayer import Replayer

from tests.support.cases_b import LIMIT, QUEUE, engine, failing_task, kinds, until, within, worker


@activity.defn
async def first(what: str) -> str:
    return f"first {what}"


@activity.defn
async def second(what: str) -> str:
    return f"second {what}"


async def _run(name: str, what: str = "x", **options: Any) -> Any:
    return await workflow.execute_activity(name, what, **{"start_to_close_timeout": LIMIT, **options})


@workflow.defn(name="Ship")
async def ship(what: str) -> str:
    return f"shipped {what}"


@workflow.defn(name="Send")
async def send(what: str) -> str:
    return f"sent {what}"


async def _ship(child: Any = ship, what: str = "x", id_suffix: str = "ship", **options: Any) -> str:
    child_id = f"{workflow.info().workflow_id}-{id_suffix}"
    shipped: str = await workflow.execute_child_workflow(child, what, id=child_id, **options)
    return shipped


@workflow.defn(name="Order")
async def recorded(seconds: float) -> list[str]:
    one = await _run("first")
    await workflow.sleep(seconds)
    return [one, await _run("second"), await _ship()]


@workflow.defn(name="Order")
async def other_child_type(seconds: float) -> None:
    await _run("first")
    await workflow.sleep(seconds)
    await _run("second")
    await _ship(send)


@workflow.defn(name="Order")
async def other_child_id(seconds: float) -> None:
    await _run("first")
    await workflow.sleep(seconds)
    await _run("second")
    await _ship(id_suffix="parcel")


@workflow.defn(name="Order")
async def renamed(seconds: float) -> None:
    await _run("initial")
    await workflow.sleep(seconds)
    await _run("second")
    await _ship()


@workflow.defn(name="Order")
async def swapped(seconds: float) -> None:
    await _run("second")
    await workflow.sleep(seconds)
    await _run("first")
    await _ship()


@workflow.defn(name="Order")
async def no_sleep(seconds: float) -> None:
    await _run("first")
    await _run("pause")
    await _run("second")
    await _ship()


@workflow.defn(name="Order")
async def last_removed(seconds: float) -> None:
    await _run("first")
    await workflow.sleep(seconds)
    await _ship()


@workflow.defn(name="Order")
async def one_more(seconds: float) -> None:
    await _run("first")
    await workflow.sleep(seconds)
    await _run("second")
    await _ship()
    await _run("third")


@workflow.defn(name="Order")
async def other_arguments(seconds: float) -> None:
    await _run("first", "other")
    await workflow.sleep(seconds)
    await _run("second", "other")
    await _ship(what="other")


@workflow.defn(name="Order")
async def other_options(seconds: float) -> None:
    options = {"start_to_close_timeout": LIMIT * 2, "retry_policy": RetryPolicy(maximum_attempts=7)}
    await _run("first", **options)
    await workflow.sleep(seconds)
    await _run("second", **options)
    await _ship(run_timeout=LIMIT)


@workflow.defn(name="Order")
async def other_sleep(seconds: float) -> None:
    await _run("first")
    await workflow.sleep(seconds * 2 + 1)
    await _run("second")
    await _ship()


@workflow.defn(name="Order")
async def more_logging(seconds: float) -> None:
    workflow.logger.info("begins")
    await _run("first")
    workflow.logger.warning("waits")
    await workflow.sleep(seconds)
    await _run("second")
    workflow.logger.info("ends")
    await _ship()


async def _open_and_closed(client: Client) -> tuple[WorkflowHistory, WorkflowHistory]:
    async with worker(client, [recorded, ship], [first, second]):
        waiting = await client.start_workflow(recorded, 3600, id="open", task_queue=QUEUE)
        closed = await client.start_workflow(recorded, 0.05, id="closed", task_queue=QUEUE)
        assert await within(20, closed.result()) == ["first x", "second x", "shipped x"]
        await _in_the_sleep(waiting)
        return await waiting.fetch_history(), await closed.fetch_history()


async def _in_the_sleep(handle: WorkflowHandle[Any]) -> None:
    async def waits() -> bool:
        return "TimerStarted" in await kinds(handle)

    await until(waits)


# What was changed, the event where it shows, what is recorded there, what the code asks for, seen in an open history.
STRUCTURAL = [
    (renamed, "ActivityTaskScheduled", "first", "initial", True),
    (swapped, "ActivityTaskScheduled", "first", "second", True),
    (no_sleep, "TimerStarted", "timer", "pause", True),
    (last_removed, "ActivityTaskScheduled", "second", "startchildworkflowexecution", False),
    (other_child_type, "StartChildWorkflowExecutionInitiated", "'ship'", "'send'", False),
    (other_child_id, "StartChildWorkflowExecutionInitiated", "closed-ship", "closed-parcel", False),
    (one_more, "WorkflowExecutionCompleted", "complete", "third", False),
]


async def test_structural_changes_are_reported_for_open_and_closed_histories(tmp_path: Path) -> None:
    """Replay an open and a closed history against changed code. Each change is reported with the number of the event,
    what was recorded and what the code asks for. In the open history, which stands in the sleep, a change behind the
    sleep is none yet."""
    async with engine(tmp_path) as client:
        waiting, closed = await _open_and_closed(client)
    for code, event_type, was, asked, shows_in_open in STRUCTURAL:
        for history, shows in ((waiting, shows_in_open), (closed, True)):
            result = await Replayer(workflows=[code]).replay_workflow(history, raise_on_replay_failure=False)
            if not shows:
                assert result.replay_failure is None, (code, result.report())
                continue
            assert isinstance(result.replay_failure, NondeterminismError), (code, result.report())
            said = str(result.replay_failure)
            candidates = [event for event in history.events if type(event.attributes).__name__ == event_type]
            assert any(f"event {event.event_id}" in said for event in candidates), said
            assert event_type in said, said
            assert was in said.lower() and asked in said.lower(), said


@pytest.mark.parametrize("code", [recorded, other_arguments, other_options, other_sleep, more_logging])
async def test_harmless_changes_pass(tmp_path: Path, code: Any) -> None:
    """Other arguments, timeouts, retry policy, another positive sleep, more logging: replay passes (the documentation
    lists what is not compared)."""
    async with engine(tmp_path) as client:
        histories = await _open_and_closed(client)
    for history in histories:
        await Replayer(workflows=[code]).replay_workflow(history)


async def _bad_deployment(client: Client, bad: Any, cache: int) -> None:
    name = f"{bad.__name__}-{cache}"
    queue = {"task_queue": name}
    async with worker(client, [recorded, ship], [first, second], cache, **queue):
        handle = await client.start_workflow(recorded, 1, id=name, **queue)
        await _in_the_sleep(handle)
    async with worker(client, [bad, ship], [first, second], cache, **queue):
        pending = await failing_task(handle)
        assert pending.last_cause == "NON_DETERMINISTIC_ERROR"
        assert pending.last_failure is not None and "recorded" in pending.last_failure.message
        assert (await handle.describe()).status == "RUNNING"
    async with worker(client, [recorded, ship], [first, second], cache, **queue):
        assert await within(20, handle.result()) == ["first x", "second x", "shipped x"]
    assert (await kinds(handle)).count("WorkflowTaskFailed") == 1


async def test_a_bad_deployment_live_and_its_rollback(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Deploy changed code under a run in its sleep, and roll it back once the timer has fired; with and without
    cache. In between the run is open, describe shows the failing task and why, and a warning names the run. After the
    rollback it carries on to its right result."""
    caplog.set_level(logging.WARNING)
    async with engine(tmp_path) as client:
        deployments = [(bad, cache) for bad in (renamed, swapped, no_sleep) for cache in (1000, 0)]
        await asyncio.gather(*(_bad_deployment(client, bad, cache) for bad, cache in deployments))
    for bad, cache in deployments:
        assert f"{bad.__name__}-{cache}" in caplog.text
