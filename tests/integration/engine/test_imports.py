"""Import of a history: a run from elsewhere is here as it was there, and goes on if it is open (LC-46)."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from stepwell.api import requests as r
from stepwell.api.callbacks import Callback
from stepwell.api.commands import StartTimer
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.errors import (
    ApiError,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    Unavailable,
    WorkflowExecutionAlreadyStarted,
)
from stepwell.api.events import ActivityTaskCompleted, HistoryEvent, WorkflowTaskCompleted

from stepwell_server.frontend.handlers import workflows
from stepwell_server.history.apply import durable_part, rebuild
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.ports import StoreUnavailable
from tests.simulation.history_rules import HistoryRules
from tests.support.cases import until
from tests.support.engine import Driver, ShiftedClock, activity, running, types

KEY = ExecutionKey("default", "order-1")
TIMER = StartTimer(timer_id="1", start_to_fire_timeout=timedelta(hours=1))


async def brought_in(driver: Driver, events: Sequence[HistoryEvent] = (), **more: Any) -> str:
    execution = WorkflowExecution(workflow_id="order-1")
    values = {"execution": execution, "events": tuple(events)} | more
    request = r.ImportWorkflowRequest(**values)
    return (await workflows.import_workflow(driver.engine, request)).run_id


async def closed() -> list[HistoryEvent]:
    async with running() as there:
        await there.start()
        task = await there.take()
        await there.complete(task.task_token, activity("1", eager=False))
        (charge,) = await there.poll_activities()
        await there.done(charge)
        await there.finish(await there.take())
        return await there.history()


async def waiting(pause: bool = False) -> list[HistoryEvent]:
    """One activity is done; another and a timer of an hour are waited for."""
    async with running() as there:
        await there.start()
        task = await there.take()
        await there.complete(task.task_token, activity("1", eager=False))
        (charge,) = await there.poll_activities()
        await there.done(charge)
        task = await there.take()
        await there.complete(task.task_token, activity("2", eager=False), TIMER)
        if pause:
            execution = WorkflowExecution(workflow_id="order-1")
            await there.engine.pause_workflow(r.PauseWorkflowRequest(execution=execution, reason="moving"))
        return await there.history()


async def listed(driver: Driver) -> list[tuple[str, str]]:
    found = await driver.engine.list_workflows(r.ListWorkflowsRequest())
    return [(info.execution.run_id, info.status.value) for info in found.executions]


async def test_a_closed_run_is_there_as_it_was() -> None:
    events = await closed()
    async with running() as driver:
        run_id = await brought_in(driver, events)
        assert driver.store.writes == {"append": 1}
        assert await driver.history() == events and await driver.result() == events[-1]
        info = (await driver.describe()).info
        assert (info.status, info.history_length) == (WorkflowExecutionStatus.COMPLETED, len(events))
        assert (info.start_time, info.close_time) == (events[0].event_time, events[-1].event_time)
        assert await listed(driver) == [(run_id, "COMPLETED")]
        commit = await driver.store.head(KEY)
        assert commit is not None
        assert durable_part(commit.state) == durable_part(rebuild(events, "default"))


async def test_an_open_run_goes_on() -> None:
    events = await waiting()
    clock = ShiftedClock()
    async with running(clock=clock) as driver:
        run_id = await brought_in(driver, events)
        assert await driver.history() == events and await listed(driver) == [(run_id, "RUNNING")]
        (second,) = await driver.poll_activities()
        assert second.activity_id == "2"
        await driver.done(second)
        task = await driver.take()
        assert types(task.events)[:2] == ["ActivityTaskScheduled", "TimerStarted"]
        await driver.complete(task.task_token)
        clock.shift = timedelta(hours=2)
        await driver.signal()
        task = await driver.take()
        assert "TimerFired" in types(task.events)
        await driver.finish(task)
        rules = HistoryRules()
        for event in await driver.history():
            rules.add(event)
        assert rules.closed


async def test_an_open_run_waits_for_its_worker_and_calls_nobody_back() -> None:
    async with running() as there:
        await there.start()
        events = await there.history()
    asked = (Callback(url="https://shop.example/done"),)
    async with running() as driver:
        await brought_in(driver, changed(events, 1, completion_callbacks=asked))
        commit = await driver.store.head(KEY)
        assert commit is not None and commit.state.callbacks == ()
        task = await driver.take()
        assert types(task.events) == ["WorkflowExecutionStarted", "WorkflowTaskScheduled", "WorkflowTaskStarted"]
        await driver.finish(task)


async def test_what_a_history_was_cut_behind_is_shown() -> None:
    events = await waiting()
    end = next(event for event in events if isinstance(event.attributes, ActivityTaskCompleted))
    async with running() as driver:
        await brought_in(driver, events[: end.event_id])
        task = await driver.take()
        assert types(task.events)[-3:] == ["ActivityTaskCompleted", "WorkflowTaskScheduled", "WorkflowTaskStarted"]


async def test_a_paused_run_stays_paused() -> None:
    events = await waiting(pause=True)
    async with running() as driver:
        await brought_in(driver, events)
        info = (await driver.describe()).info
        assert info.status is WorkflowExecutionStatus.PAUSED
        assert await driver.poll_activities(timeout=timedelta(0)) == ()
        await driver.engine.unpause_workflow(
            r.UnpauseWorkflowRequest(execution=WorkflowExecution(workflow_id="order-1"))
        )
        assert [task.activity_id for task in await driver.poll_activities()] == ["2"]


async def test_a_run_that_a_reset_made_keeps_its_id() -> None:
    async with running() as there:
        await there.start()
        await there.complete((await there.take()).task_token, TIMER)
        second = await there.reset()
        events = await there.history()
    async with running() as driver:
        assert await brought_in(driver, events) == second
        assert await driver.history() == events
        assert types((await driver.take()).events)[-1] == "WorkflowTaskStarted"


async def test_runs_of_one_id_in_the_order_of_their_starts() -> None:
    first, second = await closed(), await closed()
    async with running() as driver:
        later = await brought_in(driver, second)
        with pytest.raises(FailedPrecondition, match="in the order of their starts"):
            await brought_in(driver, first)
    async with running() as driver:
        earlier = await brought_in(driver, first)
        assert await brought_in(driver, second) == later
        assert await driver.history(run_id=earlier) == first and await driver.history() == second
        assert len(await listed(driver)) == 2


async def test_a_run_is_brought_in_once() -> None:
    events = await closed()
    async with running() as driver:
        run_id = await brought_in(driver, events, request_id="move-1")
        driver.store.reset()
        assert await brought_in(driver, events, request_id="move-1") == run_id
        for request_id in ("", "move-2"):
            with pytest.raises(WorkflowExecutionAlreadyStarted, match="already; delete it there first"):
                await brought_in(driver, events, request_id=request_id)
        await driver.start()
        driver.store.reset()
        with pytest.raises(WorkflowExecutionAlreadyStarted, match="two runs of one id are never open"):
            await brought_in(driver, await waiting())
        assert driver.store.writes == {}


async def test_a_run_that_was_deleted_may_come_again() -> None:
    events = await closed()
    async with running() as driver:
        run_id = await brought_in(driver, events, request_id="move-1")
        execution = WorkflowExecution(workflow_id="order-1", run_id=run_id)
        await driver.engine.delete_workflow(r.DeleteWorkflowRequest(execution=execution))
        with pytest.raises(NotFound):
            await driver.history()

        async def is_gone() -> bool:
            return await driver.store.find_run(KEY, run_id) is None

        await until(is_gone)
        for _ in range(2):
            assert await brought_in(driver, events, request_id="move-1") == run_id
            assert await driver.history() == events


async def test_nothing_is_there_before_the_commit_and_all_of_it_behind() -> None:
    events = await waiting()
    async with running() as driver:
        driver.store.refuse.append(StoreUnavailable("the disk is full"))
        with pytest.raises(Unavailable):
            await brought_in(driver, events, request_id="move-1")
        assert await listed(driver) == [] and await driver.store.head(KEY) is None
        driver.store.lose_kinds.add("ImportRun")
        with pytest.raises(Unavailable):
            await brought_in(driver, events, request_id="move-1")
        await brought_in(driver, events, request_id="move-1")
        assert await driver.history() == events
        assert [task.activity_id for task in await driver.poll_activities()] == ["2"]


async def test_a_run_whose_time_is_over_is_not_brought_in_to_be_deleted() -> None:
    events = await closed()
    async with running(clock=(clock := ShiftedClock())) as driver:
        clock.shift = timedelta(days=8)
        with pytest.raises(FailedPrecondition, match="raise the retention"):
            await brought_in(driver, events)
        clock.shift = timedelta(days=-1)
        with pytest.raises(InvalidArgument, match="correct the clock"):
            await brought_in(driver, events)


def changed(events: list[HistoryEvent], number: int, **values: Any) -> list[HistoryEvent]:
    """With other attributes of one event."""
    event = events[number - 1]
    attributes = msgspec.structs.replace(event.attributes, **values)
    return [*events[: number - 1], msgspec.structs.replace(event, attributes=attributes), *events[number:]]


def naive(events: list[HistoryEvent]) -> list[HistoryEvent]:
    first = events[0]
    return [msgspec.structs.replace(first, event_time=first.event_time.replace(tzinfo=None)), *events[1:]]


BAD: dict[str, tuple[Callable[[list[HistoryEvent]], list[HistoryEvent]], str]] = {
    "nothing": (lambda events: [], "events is empty"),
    "no start": (lambda events: events[1:], "do not begin with WorkflowExecutionStarted"),
    "a gap": (lambda events: [*events[:3], *events[4:]], "comes after event 3"),
    "twice": (lambda events: [*events, events[-1]], "comes after event 11"),
    "out of order": (lambda events: [*events[:2], events[3], events[2], *events[4:]], "comes after event 2"),
    "a task that is open": (lambda events: events[:3], "leaves a started workflow task open"),
    "an activity without its end": (lambda events: events[:6], "is shown before its end"),
    "an unknown activity": (lambda events: changed(events, 6, scheduled_event_id=99), "never scheduled"),
    "another task": (lambda events: changed(events, 4, scheduled_event_id=99), "closes no scheduled task"),
    "no zone": (naive, r"events\[0\].event_time is .* without a zone"),
    "a queue without a name": (
        lambda events: changed(events, 1, task_queue="a\nb"),
        r"events\[0\].attributes.task_queue contains the control character",
    ),
    "no time at all": (
        lambda events: changed(events, 5, start_to_close_timeout=timedelta(0)),
        r"events\[4\].attributes.start_to_close_timeout is 0 s",
    ),
    "never timing out": (
        lambda events: changed(events, 5, start_to_close_timeout=None, schedule_to_close_timeout=None),
        "neither start_to_close_timeout",
    ),
    "no cron": (lambda events: changed(events, 1, cron_schedule="now and then"), "cron_schedule"),
    "another workflow": (lambda events: changed(events, 1, workflow_id="order-2"), "a run keeps its id"),
}


@pytest.mark.parametrize("name", BAD)
async def test_what_is_no_history_is_refused_before_anything_is_written(name: str) -> None:
    spoil, message = BAD[name]
    events = await closed()
    assert isinstance(events[3].attributes, WorkflowTaskCompleted) and len(events) == 11
    async with running() as driver:
        with pytest.raises(InvalidArgument, match=message) as refused:
            await brought_in(driver, spoil(events))
        assert not refused.value.retryable and refused.value.details["field"]
        assert driver.store.writes == {}


async def test_it_is_refused_by_names_and_size() -> None:
    events = await closed()
    large = changed(events, 7, result=(msgspec.structs.replace(events[6].attributes.result[0], data=b"x" * 5_000_000),))  # type: ignore[union-attr]
    bad: list[tuple[dict[str, Any], str, str]] = [
        ({"events": tuple(large)}, "events", "more than 4194304 bytes"),
        ({"execution": WorkflowExecution(workflow_id="")}, "execution.workflow_id", "is empty"),
        ({"execution": WorkflowExecution(workflow_id="order-1", run_id="r2")}, "execution.run_id", "leave it out"),
        ({"namespace": "a#b"}, "namespace", "reserved"),
        ({"request_id": "x" * 1_001}, "request_id", "above the limit"),
    ]
    async with running() as driver:
        for values, field, message in bad:
            with pytest.raises(ApiError, match=message) as refused:
                await brought_in(driver, **({"events": tuple(events)} | values))
            assert refused.value.details["field"] == field
        assert driver.store.writes == {}
