"""LC-21, CH-09: a run ends and the next begins at once; messages, timeouts and what is asked for go along."""

from datetime import timedelta

import pytest
from stepwell.client import WorkflowContinuedAsNewError, WorkflowExecutionStatus, WorkflowFailureError
from stepwell.exceptions import TimeoutError

from tests.conformance.continue_as_new.workflow import (
    SHORT,
    Counter,
    First,
    FromHandler,
    GrowsLong,
    Inbox,
    Misfit,
    Second,
    double,
)
from tests.support.conformance import Feature


async def test_state_goes_on_in_the_arguments(feature: Feature) -> None:
    async with feature.worker([Counter], [double]):
        counter = await feature.start(Counter.run, 3)
        assert await counter.result() == 8
        with pytest.raises(WorkflowContinuedAsNewError) as end:
            await counter.result(follow_runs=False)
        first = await counter.describe()
        assert first.status is WorkflowExecutionStatus.CONTINUED_AS_NEW
        second = feature.client.get_workflow_handle(counter.id, run_id=end.value.new_execution_run_id)
        assert await second.result() == 8
        newest = await feature.client.get_workflow_handle(counter.id).describe()
        assert newest.status is WorkflowExecutionStatus.COMPLETED
        assert await feature.client.get_workflow_handle(counter.id, run_id=newest.run_id).result(follow_runs=False) == 8


async def test_signals_find_the_run_that_is_open(feature: Feature) -> None:
    async with feature.worker([Inbox]):
        inbox = await feature.start(Inbox.run, 3, [])
        for item in "abc":
            await feature.idle(feature.client.get_workflow_handle(inbox.id))
            await inbox.signal(Inbox.put, item)
        assert "".join(await inbox.result()) == "abc"


async def test_a_handler_may_ask_for_it(feature: Feature) -> None:
    async with feature.worker([FromHandler]):
        handle = await feature.start(FromHandler.run)
        await feature.idle(handle)
        await handle.signal(FromHandler.again, "from the handler")
        assert await handle.result() == "from the handler"


async def test_to_another_workflow_with_a_wait(feature: Feature) -> None:
    async with feature.worker([First, Second]):
        handle = await feature.start(First.run)
        assert await handle.result() == ["handed over", "kept", "Second"]
        second = await feature.client.get_workflow_handle(handle.id).fetch_history()
        assert second.events[1].event_time - second.events[0].event_time >= SHORT


async def test_arguments_that_do_not_fit_are_refused_at_the_call(feature: Feature) -> None:
    async with feature.worker([Misfit]):
        assert await (await feature.start(Misfit.run, 1)).result() == "ArgumentError"


async def test_cancel_reaches_whichever_run_is_open(feature: Feature) -> None:
    async with feature.worker([Inbox]):
        inbox = await feature.start(Inbox.run, 9, [])
        await feature.idle(inbox)
        await inbox.signal(Inbox.put, "a")
        await feature.idle(feature.client.get_workflow_handle(inbox.id))
        await inbox.cancel()
        with pytest.raises(WorkflowFailureError):
            await inbox.result()


async def test_the_execution_timeout_is_of_the_chain(feature: Feature) -> None:
    """ER-10: no run of the chain extends it."""
    async with feature.worker([Inbox]):
        inbox = await feature.start(Inbox.run, 9, [], execution_timeout=timedelta(seconds=2))
        await inbox.signal(Inbox.put, "a")
        with pytest.raises(WorkflowFailureError) as end:
            await inbox.result()
        assert isinstance(end.value.cause, TimeoutError)
        chain = [event async for event in inbox.fetch_history_events()]
        assert chain[-1].event_type == "WorkflowExecutionContinuedAsNew"
        newest = await feature.client.get_workflow_handle(inbox.id).fetch_history()
        expires = [run[0].attributes.workflow_execution_expiration_time for run in (chain, newest.events)]
        assert expires == [chain[0].event_time + timedelta(seconds=2)] * 2
        assert newest.events[-1].event_time >= expires[1]


async def test_a_workflow_is_told_when_to_go_on_as_new(feature: Feature) -> None:
    """LC-22: also in a step that shares its commit with the end of an activity, and in replay."""
    async with feature.worker([GrowsLong], [double]):
        assert await (await feature.start(GrowsLong.run)).result() == [1, 3]
