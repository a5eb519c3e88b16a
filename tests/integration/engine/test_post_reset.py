"""LC-18: what a reset does to the run that it makes, before the first workflow task of it."""

import pytest
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import ResetReapplyExcludeType
from stepwell.api.errors import InvalidArgument, Unavailable
from stepwell.api.events import WorkflowExecutionSignaled
from stepwell.api.limits import MAX_SIGNALS_PER_RUN

from stepwell_server.history.ports import StoreUnavailable
from tests.integration.engine.test_resets import KEY, checked, signals, two_steps
from tests.support.engine import payload, running, types


def bring(*names: str) -> tuple[r.PostResetOperation, ...]:
    given = [r.PostResetSignal(signal_name=name, input=payload(name)) for name in names]
    return tuple([r.PostResetOperation(signal_workflow=signal) for signal in given])


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
        (r.PostResetOperation(update_workflow_options=r.PostResetOptions()), "has update_workflow_options"),
        (r.PostResetOperation(), "names no operation"),
        (
            r.PostResetOperation(
                signal_workflow=r.PostResetSignal(signal_name="a"), update_workflow_options=r.PostResetOptions()
            ),
            "has update_workflow_options",
        ),
    ],
)
async def test_what_there_is_not_is_refused_by_name(operation: r.PostResetOperation, named: str) -> None:
    async with running() as driver:
        first = await two_steps(driver)
        before = await driver.store.head(KEY)
        with pytest.raises(InvalidArgument, match=rf"post_reset_operations\[1\] {named}") as refused:
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
