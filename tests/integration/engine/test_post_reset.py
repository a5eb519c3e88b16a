"""LC-18: what a reset does to the run that it makes, before the first workflow task of it."""

from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import FailWorkflowExecution
from stepwell.api.common import Priority, RetryPolicy, WorkflowExecution
from stepwell.api.enums import ResetReapplyExcludeType
from stepwell.api.errors import InvalidArgument, Unavailable
from stepwell.api.events import (
    ActivityTaskScheduled,
    HistoryEvent,
    WorkflowExecutionOptionsUpdated,
    WorkflowExecutionSignaled,
    WorkflowExecutionStarted,
)
from stepwell.api.limits import MAX_SIGNALS_PER_RUN

from stepwell_server.history.ports import StoreUnavailable
from tests.integration.engine.test_resets import KEY, checked, signals, two_steps
from tests.support.engine import activity, failure, payload, running, types


def bring(*names: str) -> tuple[r.PostResetOperation, ...]:
    given = [r.PostResetSignal(signal_name=name, input=payload(name)) for name in names]
    return tuple([r.PostResetOperation(signal_workflow=signal) for signal in given])


def change(mask: str, **priority: Any) -> r.PostResetOperation:
    options = r.WorkflowExecutionOptions(priority=Priority(**priority) if priority else None)
    return r.PostResetOperation(
        update_workflow_options=r.PostResetOptions(workflow_execution_options=options, update_mask=mask)
    )


def priorities(events: list[HistoryEvent]) -> list[Priority | None]:
    return [
        event.attributes.priority
        for event in events
        if isinstance(event.attributes, WorkflowExecutionOptionsUpdated) and not event.attributes.attached_request_id
    ]


async def test_options_are_changed_before_the_first_task_and_only_what_is_named() -> None:
    async with running() as driver:
        given = Priority(priority_key=4, fairness_key="tenant")
        first = await driver.start(priority=given)
        await driver.complete((await driver.take()).task_token)
        operations = (
            change("priority.priority_key, priority.fairness_weight", priority_key=1, fairness_key="not named"),
            change("priority.priority_key", priority_key=1),  # is so by now
            *bring("a"),
            change("priority.fairness_key"),
        )
        second = await driver.reset(run_id=first, identity="ops", post_reset_operations=operations)
        events = await checked(driver, second)
        assert types(events)[-4:] == [
            "WorkflowExecutionOptionsUpdated",
            "WorkflowExecutionSignaled",
            "WorkflowExecutionOptionsUpdated",
            "WorkflowTaskScheduled",
        ]
        assert priorities(events) == [Priority(priority_key=1, fairness_key="tenant"), Priority(priority_key=1)]
        changed = events[-4].attributes
        assert isinstance(changed, WorkflowExecutionOptionsUpdated)
        assert (changed.identity, changed.reset_run_id) == ("ops", second)
        third = await driver.reset(3, run_id=second, post_reset_operations=(change("priority"),))
        assert priorities(await checked(driver, third)) == [*priorities(events), Priority()]
        head = await driver.store.head(KEY)
        assert head is not None and head.state.priority == Priority()
        fourth = await driver.reset(3, run_id=first)
        assert priorities(await checked(driver, fourth)) == [*priorities(events), Priority()]


async def test_options_that_are_so_already_leave_no_event() -> None:
    async with running() as driver:
        first = await two_steps(driver)
        second = await driver.reset(run_id=first, post_reset_operations=(change("priority"),))
        assert priorities(await checked(driver, second)) == []


async def test_what_comes_behind_goes_by_the_new_priority() -> None:
    """What the run schedules, and the next run of its chain."""
    async with running() as driver:
        first = await driver.start(retry_policy=RetryPolicy(maximum_attempts=3))
        await driver.complete((await driver.take()).task_token)
        await driver.reset(run_id=first, post_reset_operations=(change("priority", priority_key=2),))
        task = await driver.take()
        await driver.complete(task.task_token, activity("a"), slots=0)
        scheduled = (await driver.history())[-1].attributes
        assert isinstance(scheduled, ActivityTaskScheduled) and scheduled.priority == Priority(priority_key=2)
        await driver.signal()
        task = await driver.take()
        await driver.complete(task.task_token, FailWorkflowExecution(failure=failure("no")))
        started = (await driver.history())[0].attributes
        assert isinstance(started, WorkflowExecutionStarted)
        assert (started.attempt, started.priority) == (2, Priority(priority_key=2))


async def test_the_signal_is_there_before_the_first_task_and_once() -> None:
    async with running() as driver:
        first = await two_steps(driver)
        await driver.signal(name="old")
        second = await driver.reset(
            run_id=first, request_id="once", identity="ops", post_reset_operations=bring("a", "b")
        )
        again = await driver.reset(
            run_id=first, request_id="once", identity="ops", post_reset_operations=bring("a", "b")
        )
        assert again == second
        events = await checked(driver, second)
        assert signals(events) == ["old", "a", "b"]
        assert types(events)[-4:] == [*["WorkflowExecutionSignaled"] * 3, "WorkflowTaskScheduled"]
        brought = events[-2].attributes
        assert isinstance(brought, WorkflowExecutionSignaled)
        assert (brought.signal_name, brought.input, brought.identity) == ("b", payload("b"), "ops")
        task = await driver.take()
        assert signals(task.events) == ["old", "a", "b"]


async def test_a_later_reset_takes_it_over_once() -> None:
    """Of whichever run, and however often; what a reset took over stands beside what it brought."""
    async with running() as driver:
        first = await two_steps(driver)
        await driver.signal(name="one")
        second = await driver.reset(run_id=first, post_reset_operations=bring("brought"))
        await driver.signal(name="two")
        await driver.take()
        await driver.signal(name="in the buffer")
        every = ["one", "brought", "two", "in the buffer"]
        third = await driver.reset(3, run_id=first, post_reset_operations=bring("also"))
        assert signals(await checked(driver, third)) == [*every, "also"]
        fourth = await driver.reset(3, run_id=second)
        assert signals(await checked(driver, fourth)) == [*every, "also"]
        fifth = await driver.reset(3, run_id=first)
        assert signals(await checked(driver, fifth)) == [*every, "also"]
        sixth = await driver.reset(3, run_id=third)
        assert signals(await checked(driver, sixth)) == [*every, "also"]


async def test_it_is_taken_over_from_runs_that_were_closed_before_their_resets() -> None:
    async with running() as driver:
        first = await driver.start()
        await driver.finish(await driver.take())
        await driver.reset(3, run_id=first, post_reset_operations=bring("brought"))
        await driver.signal(name="two")
        await driver.finish(await driver.take())
        third = await driver.reset(3, run_id=first, post_reset_operations=bring("also"))
        assert signals(await checked(driver, third)) == ["brought", "two", "also"]
        await driver.finish(await driver.take())
        fourth = await driver.reset(3, run_id=first)
        assert signals(await checked(driver, fourth)) == ["brought", "two", "also"]


async def test_exclusions_are_for_what_came_in_since() -> None:
    async with running() as driver:
        first = await two_steps(driver)
        await driver.signal(name="old")
        exclude = (ResetReapplyExcludeType.SIGNAL,)
        second = await driver.reset(
            run_id=first, reset_reapply_exclude_types=exclude, post_reset_operations=bring("new")
        )
        assert signals(await checked(driver, second)) == ["new"]
        third = await driver.reset(3, run_id=first, reset_reapply_exclude_types=exclude)
        assert signals(await checked(driver, third)) == []


async def test_a_switch_that_fails_brings_nothing_and_its_repeat_does() -> None:
    async with running() as driver:
        first = await two_steps(driver)

        async def fails() -> None:
            driver.store.behind_prefix = None
            raise StoreUnavailable("no disk")

        driver.store.behind_prefix = fails
        with pytest.raises(Unavailable):
            await driver.reset(run_id=first, request_id="once", post_reset_operations=bring("a"))
        assert signals(await driver.history()) == []
        second = await driver.reset(run_id=first, request_id="once", post_reset_operations=bring("a"))
        assert signals(await checked(driver, second)) == ["a"]


@pytest.mark.parametrize(
    ("operation", "named"),
    [
        (r.PostResetOperation(update_workflow_options=r.PostResetOptions()), "update_mask is empty"),
        (change("versioning_override", priority_key=1), "update_mask names 'versioning_override'"),
        (change("priority", priority_key=6), "priority_key is 6"),
        (r.PostResetOperation(), "names no operation"),
        (
            r.PostResetOperation(
                signal_workflow=r.PostResetSignal(signal_name="a"), update_workflow_options=r.PostResetOptions()
            ),
            "names two operations",
        ),
    ],
)
async def test_what_there_is_not_is_refused_by_name(operation: r.PostResetOperation, named: str) -> None:
    async with running() as driver:
        first = await two_steps(driver)
        before = await driver.store.head(KEY)
        with pytest.raises(InvalidArgument, match=rf"post_reset_operations\[1\].*{named}") as refused:
            await driver.reset(run_id=first, post_reset_operations=(*bring("a"), operation))
        assert refused.value.details["field"] == "post_reset_operations"
        assert await driver.store.head(KEY) == before


async def test_more_signals_than_a_run_takes_are_refused() -> None:
    async with running() as driver:
        first = await two_steps(driver)
        before = await driver.store.head(KEY)
        request = r.ResetWorkflowRequest(
            execution=WorkflowExecution(workflow_id="order-1", run_id=first),
            workflow_task_finish_event_id=3,
            post_reset_operations=bring("a") * (MAX_SIGNALS_PER_RUN + 1),
        )
        with pytest.raises(InvalidArgument, match="more signals than one run takes"):
            await driver.engine.reset_workflow(request)
        assert await driver.store.head(KEY) == before
