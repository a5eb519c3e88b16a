"""WC-08: a cancel that meets a completion gets swallowed."""

import asyncio
import logging
import random
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.api.events import (
    ActivityTaskCanceled,
    ActivityTaskCancelRequested,
    ActivityTaskCompleted,
    ActivityTaskScheduled,
    WorkflowExecutionCancelRequested,
    WorkflowTaskFailed,
)
from stepwell.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from stepwell.exceptions import CancelledError
from stepwell.replay.replayer import Replayer

from tests.support.cases import ATTEMPT, Case, attributes, events_of, until

REPETITIONS = 40
STEPS = "steps"
"""Task queue of the activities where they have a worker of their own."""


class Activities:
    def __init__(self) -> None:
        self.steps: Counter[str] = Counter()
        self.cleanups: Counter[str] = Counter()
        self.cleaned: Counter[str] = Counter()

    @activity.defn(name="step")
    async def step(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.steps[activity.info().workflow_id] += 1

    @activity.defn(name="cleanup")
    async def cleanup(self) -> str:
        self.cleanups[activity.info().workflow_id] += 1
        await asyncio.sleep(0.05)
        self.cleaned[activity.info().workflow_id] += 1
        return "clean"


def call(name: str, *args: Any, queue: str | None = None) -> workflow.ActivityHandle[Any]:
    return workflow.start_activity(name, args=list(args), start_to_close_timeout=ATTEMPT, task_queue=queue)


@workflow.defn
async def loop(durations: list[float], queue: str | None, shielded: bool) -> str:
    """One step after the other, for as long as it is let; then cleans up and waits for that."""
    try:
        for number in range(2000):
            await call("step", durations[number % len(durations)], queue=queue)
        return "never cancelled"
    finally:
        cleaning = call("cleanup", queue=queue)
        assert await (asyncio.shield(cleaning) if shielded else cleaning) == "clean"


@workflow.defn
async def gathered(width: int) -> str:
    """Waits for many at once."""
    try:
        await asyncio.gather(*(call("step", 0.3) for _ in range(width)))
        return "never cancelled"
    finally:
        await call("cleanup")


async def check_cancelled(handle: WorkflowHandle[Any], activities: Activities) -> None:
    """Closed as cancelled, cleaned up once and waited for that; nothing was asked twice, and no task failed."""
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    assert isinstance(failed.value.cause, CancelledError), failed.value.cause
    assert (await handle.describe()).status is WorkflowExecutionStatus.CANCELED
    assert activities.cleanups[handle.id] == activities.cleaned[handle.id] == 1
    events = await events_of(handle)
    assert attributes(events, WorkflowTaskFailed) == []
    cleanup = [
        event.event_id
        for event in events
        if isinstance(event.attributes, ActivityTaskScheduled) and event.attributes.activity_type == "cleanup"
    ]
    done = {completed.scheduled_event_id for completed in attributes(events, ActivityTaskCompleted)}
    assert len(cleanup) == 1 and cleanup[0] in done, "the cleanup was not waited for"
    asked = Counter(request.scheduled_event_id for request in attributes(events, ActivityTaskCancelRequested))
    assert all(count == 1 for count in asked.values()), asked
    assert cleanup[0] not in asked


def check_no_noise(caplog: pytest.LogCaptureFixture) -> None:
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("shielded", [False, True], ids=["plain cleanup", "shielded cleanup"])
async def test_cancel_at_any_moment(case: Case, shielded: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Tried (a, d, e): loops of activities of 1 to 4 ms, cancelled at a random moment of their first 150 ms, 40 times;
    a ``finally`` runs a cleanup activity; a second cancel is sent while that runs.

    Right: every run closes as cancelled, and within its loop; the cleanup ran once and was waited for; no more than one
    cancel request for an item; nothing at error level in the log. The histories can be replayed.
    """
    activities = Activities()
    moments = random.Random(8)

    async def one(number: int) -> WorkflowHandle[Any]:
        durations = [moments.uniform(0.001, 0.004) for _ in range(7)]
        pause = moments.uniform(0, 0.15)
        handle = await case.start(loop, durations, None, shielded, id=f"loop-{number}")
        await asyncio.sleep(pause)
        await handle.cancel(reason="enough")

        async def cleaning() -> bool:
            return activities.cleanups[handle.id] > 0

        await until(cleaning)
        await handle.cancel(reason="again")
        return handle

    async with case.worker([loop], [activities.step, activities.cleanup]):
        for start in range(0, REPETITIONS, 10):
            handles = await asyncio.gather(*(one(number) for number in range(start, start + 10)))
            for handle in handles:
                await check_cancelled(handle, activities)
                assert len(attributes(await events_of(handle), ActivityTaskScheduled)) < 2000
    check_no_noise(caplog)
    history = await handles[0].fetch_history()
    await Replayer(workflows=[loop]).replay_workflow(history)


async def test_cancel_behind_a_completion_in_one_task(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    """Tried (b): the workflow worker is down; the activity finishes, then the cancel comes, then the worker is back, so
    that both are in one task.

    Right: the result counts, and the cancel is raised at the next wait: the run closes as cancelled after its cleanup.
    What has ended is not asked to stop.
    """
    activities = Activities()
    async with case.worker([loop]):
        handle = await case.start(loop, [0.0], STEPS, False, id="behind")

        async def scheduled() -> bool:
            return bool((await handle.describe()).pending_activities)

        await until(scheduled)
    async with case.worker((), [activities.step, activities.cleanup], task_queue=STEPS):

        async def finished() -> bool:
            return activities.steps["behind"] == 1

        await until(finished)
        await handle.cancel()
        async with case.worker([loop]):
            await check_cancelled(handle, activities)
    events = await events_of(handle)
    first = next(event for event in events if isinstance(event.attributes, ActivityTaskScheduled))
    asked = {request.scheduled_event_id for request in attributes(events, ActivityTaskCancelRequested)}
    assert first.event_id not in asked
    assert attributes(events, ActivityTaskCanceled) == []
    check_no_noise(caplog)


async def test_cancel_before_any_worker(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    """Tried (c): cancelled, twice, before any worker has ever polled.

    Right: the body runs to its first wait, is cancelled there, cleans up once, and the run closes as cancelled. One
    cancel request is in the history.
    """
    activities = Activities()
    handle = await case.start(loop, [0.0], None, False, id="early")
    await handle.cancel(reason="too late")
    await handle.cancel(reason="really")
    async with case.worker([loop], [activities.step, activities.cleanup]):
        await check_cancelled(handle, activities)
    (request,) = attributes(await events_of(handle), WorkflowExecutionCancelRequested)
    assert request.cause == "too late"
    assert activities.steps["early"] <= 1
    check_no_noise(caplog)


async def test_one_request_for_each_pending_item(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    """Tried: a cancel while the run waits for eight activities at once.

    Right: each of the eight is asked to stop, once; the cleanup is not.
    """
    activities = Activities()
    options = {"graceful_shutdown_timeout": timedelta(0)}
    async with case.worker([gathered], [activities.step, activities.cleanup], **options):
        handle = await case.start(gathered, 8, id="wide")

        async def waits() -> bool:
            return len((await handle.describe()).pending_activities) == 8

        await until(waits)
        await handle.cancel()
        await check_cancelled(handle, activities)
    events = await events_of(handle)
    asked = [request.scheduled_event_id for request in attributes(events, ActivityTaskCancelRequested)]
    steps = [
        event.event_id
        for event in events
        if isinstance(event.attributes, ActivityTaskScheduled) and event.attributes.activity_type == "step"
    ]
    assert sorted(asked) == steps and len(steps) == 8
    check_no_noise(caplog)
