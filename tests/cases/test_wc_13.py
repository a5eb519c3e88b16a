"""WC-13: zero, negative and near-zero durations."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.api.events import HistoryEvent, TimerCanceled, TimerFired, TimerStarted, WorkflowTaskFailed
from stepwell.replay.errors import NondeterminismError
from stepwell.replay.history import WorkflowHistory
from stepwell.replay.replayer import Replayer

from tests.support.cases import ATTEMPT, IN_PROCESS, Case, attributes, events_of, types

NOT_AT_ALL = (0.0, -1.0, -0.5, -1e9)
FOR_A_WHILE = (0.0004, 0.4, 1.0)
WITHOUT_A_TIMER = [
    "WorkflowExecutionStarted",
    "WorkflowTaskScheduled",
    "WorkflowTaskStarted",
    "WorkflowTaskCompleted",
    "ActivityTaskScheduled",
    "ActivityTaskStarted",
    "ActivityTaskCompleted",
    "WorkflowTaskScheduled",
    "WorkflowTaskStarted",
    "WorkflowTaskCompleted",
    "WorkflowExecutionCompleted",
]


@activity.defn
async def rest() -> str:
    return "rested"


async def then_rest() -> str:
    return await workflow.execute_activity(rest, start_to_close_timeout=ATTEMPT)


@workflow.defn
async def nap(seconds: float, how: str) -> str:
    if how == "timedelta":
        await workflow.sleep(timedelta(seconds=seconds))
    elif how == "asyncio":
        await asyncio.sleep(seconds)
    else:
        await workflow.sleep(seconds)
    return await then_rest()


@pytest.mark.parametrize("how", ["number", "timedelta", "asyncio"])
async def test_sleeps(case: Case, how: str) -> None:
    """Tried: sleeps of n from the input, then an activity: n = 0, -1, -0.5, -1e9, 0.0004, 0.4, 1 s; as a number, as a
    timedelta, and by ``asyncio.sleep``. All at once.

    Right: zero and below return at once without a timer, and all such histories have one shape; the others have one
    timer that fired, its length above zero and not rounded down, and not sooner than asked. No task fails.
    """
    async with case.worker([nap], [rest]):
        handles = {n: await case.start(nap, n, how, id=f"nap {n}") for n in (*NOT_AT_ALL, *FOR_A_WHILE)}
        for handle in handles.values():
            assert await handle.result() == "rested"
    for n, handle in handles.items():
        events = await events_of(handle)
        assert attributes(events, WorkflowTaskFailed) == []
        if n <= 0:
            assert types(events) == WITHOUT_A_TIMER
            continue
        (started,) = attributes(events, TimerStarted)
        assert abs(started.start_to_fire_timeout.total_seconds() - n) < 1e-6
        asked = next(event for event in events if isinstance(event.attributes, TimerStarted))
        fired = next(event for event in events if isinstance(event.attributes, TimerFired))
        assert fired.event_time - asked.event_time >= started.start_to_fire_timeout


@workflow.defn
async def condition(holds: bool, timeout: float) -> str:
    try:
        await workflow.wait_condition(lambda: holds, timeout=timeout)
    except TimeoutError:
        return "timed out"
    return "true"


@pytest.mark.parametrize("timeout", [0.0, -1.0])
async def test_a_condition_with_no_time(case: Case, timeout: float) -> None:
    """Tried: waiting for a condition with timeout 0 (and -1), which is true, or false.

    Right: true on the true one, timed out on the false one, at once and without a timer in the history.
    """
    async with case.worker([condition]):
        for holds, expected in ((True, "true"), (False, "timed out")):
            handle = await case.start(condition, holds, timeout, id=f"condition-{holds}")
            assert await handle.result() == expected
            events = await events_of(handle)
            assert attributes(events, TimerStarted) == attributes(events, WorkflowTaskFailed) == []


@workflow.defn
async def short_condition() -> str:
    """A condition that turns true before its short timeout: the timer is taken back."""
    ready: list[bool] = []

    async def later() -> None:
        await then_rest()
        ready.append(True)

    task = asyncio.create_task(later())
    await workflow.wait_condition(lambda: bool(ready), timeout=30)
    await task
    return "true"


async def test_a_timer_that_is_not_needed_is_taken_back(case: Case) -> None:
    """Tried: waiting for a condition that turns true within its timeout.

    Right: one timer started and canceled, none fired.
    """
    async with case.worker([short_condition], [rest]):
        handle = await case.start(short_condition, id="short")
        assert await handle.result() == "true"
    events = await events_of(handle)
    assert len(attributes(events, TimerStarted)) == len(attributes(events, TimerCanceled)) == 1
    assert attributes(events, TimerFired) == []


def sleeping(seconds: float) -> Any:
    @workflow.defn(name="nap")
    async def edited(n: float, how: str) -> str:
        await workflow.sleep(seconds)
        return await then_rest()

    return edited


async def replay(events: Sequence[HistoryEvent], seconds: float) -> None:
    await Replayer(workflows=[sleeping(seconds)]).replay_workflow(WorkflowHistory("nap", events))


async def test_edited_durations_in_replay(case: Case) -> None:
    """Tried: the history of n = 0 is replayed with code that now sleeps 1 s, and the reverse; 0 with -1, 0.05 with 1.

    Right: from none to a timer and back is one clear mismatch that names the event and both sides; without a timer
    before and after, or with one before and after, it passes.
    """
    async with case.worker([nap], [rest]):
        none = await case.start(nap, 0.0, "number", id="none")
        some = await case.start(nap, 0.05, "number", id="some")
        await none.result()
        await some.result()
    without, with_timer = await events_of(none), await events_of(some)
    for seconds in (0, -1, -0.5):
        await replay(without, seconds)
        with pytest.raises(NondeterminismError) as mismatch:
            await replay(with_timer, seconds)
        assert "event 5" in str(mismatch.value) and "TimerStarted" in str(mismatch.value)
        assert "ScheduleActivityTask" in str(mismatch.value)
    for seconds in (0.0004, 0.05, 1, 3600):
        await replay(with_timer, seconds)
        with pytest.raises(NondeterminismError) as mismatch:
            await replay(without, seconds)
        assert "event 5" in str(mismatch.value) and "ActivityTaskScheduled" in str(mismatch.value)
        assert "StartTimer" in str(mismatch.value)


@pytest.mark.parametrize("setting", IN_PROCESS[1:], ids=str, indirect=True)
async def test_an_edit_that_is_live(case: Case) -> None:
    """Tried: a run stands in its activity behind n = 0; the code that is deployed then sleeps 1 s at that place. Then
    the old code is back.

    Right: a visible failing task with the mismatch, tried again ever more slowly, never a hot loop; the run goes on
    once the code fits again.
    """
    async with case.worker([nap]):
        handle = await case.start(nap, 0.0, "number", id="live")
        async with asyncio.timeout(20):
            while not (await handle.describe()).pending_activities:
                await asyncio.sleep(0.01)
    async with case.worker([sleeping(1.0)], [rest]):
        async with asyncio.timeout(20):
            while (task := (await handle.describe()).pending_workflow_task) is None or task.last_failure is None:
                await asyncio.sleep(0.01)
        assert "StartTimer" in task.last_failure.message
        await asyncio.sleep(1)
        failing = (await handle.describe()).pending_workflow_task
        assert failing is not None and 1 < failing.attempt < 10, "it is tried again without a pause"
    async with case.worker([nap], [rest]):
        assert await handle.result() == "rested"
    assert len(attributes(await events_of(handle), WorkflowTaskFailed)) == 1, "only the first failure is recorded"
