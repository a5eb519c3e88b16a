"""Cancel requests: raised where the main function waits, cleanup runs, nothing is swallowed (WC-08)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from stepwell import activity, workflow

from tests.support.histories import Driver

SHORT = timedelta(seconds=10)


@activity.defn
async def work(n: int) -> int:
    return n


@activity.defn
async def clean_up() -> None: ...


@workflow.defn
class Careful:
    @workflow.run
    async def run(self) -> str:
        try:
            for n in range(100):
                await workflow.execute_activity(work, n, start_to_close_timeout=SHORT)
            return "finished"
        finally:
            await workflow.execute_activity(clean_up, start_to_close_timeout=SHORT)


def finish(d: Driver) -> None:
    """Run the cleanup and expect the run to close as cancelled."""
    d.history.activity_completed("clean_up", None)
    d.task()
    assert d.kinds() == ["CancelWorkflowExecution"]
    d.replay()


@pytest.mark.parametrize("cache", [True, False])
def test_cancel_while_an_activity_runs(cache: bool) -> None:
    d = Driver(Careful, cache=cache)
    d.task()
    d.history.cancel_requested("enough")
    d.task()
    assert d.kinds() == ["RequestCancelActivityTask", "ScheduleActivityTask"]
    finish(d)


@pytest.mark.parametrize("cancel_first", [True, False])
def test_cancel_together_with_a_completion(cancel_first: bool) -> None:
    d = Driver(Careful, cache=False)
    d.task()
    if cancel_first:
        d.history.cancel_requested()
    d.history.activity_completed("work", 0)
    if not cancel_first:
        d.history.cancel_requested()
    d.task()
    assert d.kinds() == ["ScheduleActivityTask"], "what has ended is not asked to stop"
    finish(d)


def test_cancel_before_the_first_task_runs_the_body_to_its_first_wait() -> None:
    d = Driver(Careful)
    d.history.cancel_requested()
    d.task()
    assert d.kinds() == ["ScheduleActivityTask"], "the activity that was never sent is dropped, cleanup is asked for"
    finish(d)


def test_only_the_first_request_counts() -> None:
    d = Driver(Careful)
    d.task()
    d.history.cancel_requested()
    d.history.cancel_requested()
    d.task()
    d.history.cancel_requested()
    d.task()
    assert d.kinds() == []
    finish(d)


@workflow.defn
async def swallows() -> str:
    try:
        await workflow.sleep(10)
    except asyncio.CancelledError:
        return f"caught: {workflow.cancellation_reason()}"
    return "slept"


def test_a_caught_cancel_is_the_workflows_own_affair() -> None:
    d = Driver(swallows)
    d.task()
    d.history.cancel_requested("why")
    d.task()
    assert d.kinds() == ["CancelTimer", "CompleteWorkflowExecution"]
    assert d.value() == "caught: why"


def test_cancel_together_with_the_timer_it_waits_for() -> None:
    d = Driver(swallows, cache=False)
    d.task()
    d.history.cancel_requested("why")
    d.history.timer_fired()
    d.task()
    assert d.kinds() == ["CompleteWorkflowExecution"]
    d.replay()


@workflow.defn
async def shielded() -> str:
    handle = workflow.start_activity(work, 1, start_to_close_timeout=SHORT)
    try:
        await asyncio.shield(handle)
    except asyncio.CancelledError:
        return f"shielded {await handle}"
    return "not cancelled"


def test_shield() -> None:
    d = Driver(shielded, cache=False)
    d.task()
    d.history.cancel_requested()
    assert d.task().commands == ()
    d.history.activity_completed("work", 5)
    d.task()
    assert d.value() == "shielded 5"


def driven(kind: workflow.ActivityCancellationType) -> Driver:
    @workflow.defn(name=f"cancelling_{kind.name}")
    async def cancelling() -> str:
        handle = workflow.start_activity(work, 1, start_to_close_timeout=SHORT, cancellation_type=kind)
        try:
            await handle
        except asyncio.CancelledError:
            return f"cancelled, handle {'cancelled' if handle.cancelled() else handle.result()}"
        return "done"

    d = Driver(cancelling)
    d.task()
    d.history.cancel_requested()
    d.task()
    return d


def test_try_cancel_does_not_wait() -> None:
    d = driven(workflow.ActivityCancellationType.TRY_CANCEL)
    assert d.kinds() == ["RequestCancelActivityTask", "CompleteWorkflowExecution"]


def test_abandon_does_not_ask() -> None:
    assert driven(workflow.ActivityCancellationType.ABANDON).kinds() == ["CompleteWorkflowExecution"]


def test_wait_for_the_cancellation_to_be_completed() -> None:
    d = driven(workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED)
    assert d.kinds() == ["RequestCancelActivityTask"]
    d.history.activity_canceled("work")
    d.task()
    assert d.value() == "cancelled, handle cancelled"


def test_a_result_in_spite_of_the_request_does_not_swallow_the_cancel() -> None:
    d = driven(workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED)
    d.history.activity_completed("work", 9)
    d.task()
    assert d.value() == "cancelled, handle 9"


def test_cancel_reaches_every_task_of_a_gather() -> None:
    @workflow.defn
    async def fan() -> Any:
        calls = [workflow.execute_activity(work, n, start_to_close_timeout=SHORT) for n in range(3)]
        return await asyncio.gather(*calls)

    d = Driver(fan, cache=False)
    d.task()
    d.history.activity_completed("2", 1)
    d.history.cancel_requested()
    d.task()
    assert d.kinds() == ["RequestCancelActivityTask", "RequestCancelActivityTask", "CancelWorkflowExecution"]
    d.replay()
