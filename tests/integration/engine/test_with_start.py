"""Signals and updates that start their workflow when it is not open (MS-09, MS-32, WC-03)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import AcceptUpdate, CompleteUpdate, CompleteWorkflowExecution
from stepwell.api.enums import (
    WorkflowExecutionStatus,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
    WorkflowUpdateStage,
)
from stepwell.api.errors import InvalidArgument, WorkflowExecutionAlreadyStarted, WorkflowExecutionClosed
from stepwell.api.events import WorkflowExecutionSignaled
from stepwell.api.updates import UpdateOutcome

from stepwell_server.history.commit import ExecutionKey
from tests.support.engine import QUEUE, Driver, payload, running, types

ADMITTED, ACCEPTED, COMPLETED = WorkflowUpdateStage
ORDER = ExecutionKey("default", "order-1")


async def signal(driver: Driver, request_id: str, **more: Any) -> r.SignalWithStartWorkflowResponse:
    return await driver.engine.signal_with_start_workflow(
        r.SignalWithStartWorkflowRequest(
            workflow_id="order-1",
            workflow_type="order",
            task_queue=QUEUE,
            request_id=request_id,
            signal_name="ship",
            signal_input=payload(request_id),
            **more,
        )
    )


async def update(
    driver: Driver, request_id: str = "one", update_id: str = "u", stage: WorkflowUpdateStage = COMPLETED, **more: Any
) -> r.UpdateWithStartWorkflowResponse:
    return await driver.engine.update_with_start_workflow(
        r.UpdateWithStartWorkflowRequest(
            workflow_id="order-1",
            workflow_type="order",
            task_queue=QUEUE,
            request_id=request_id,
            update_id=update_id,
            update_name="add",
            update_input=payload(update_id),
            wait_for_stage=stage,
            timeout=timedelta(seconds=5),
            **more,
        )
    )


async def signals(driver: Driver, run_id: str = "") -> int:
    history = await driver.history(run_id=run_id)
    return sum(isinstance(event.attributes, WorkflowExecutionSignaled) for event in history)


async def test_both_events_precede_the_first_task_in_one_commit():
    async with running() as driver:
        answer = await signal(driver, "one")
        assert answer.started and answer.first_execution_run_id == answer.run_id
        assert driver.store.writes == {"append": 1, "arm": 1}
        assert types(await driver.history()) == [
            "WorkflowExecutionStarted",
            "WorkflowExecutionSignaled",
            "WorkflowTaskScheduled",
        ]


async def test_an_open_run_is_signalled():
    async with running() as driver:
        run_id = await driver.start()
        await driver.complete((await driver.take()).task_token)
        answer = await signal(driver, "one")
        assert (answer.run_id, answer.started) == (run_id, False)
        assert await signals(driver) == 1
        assert (await signal(driver, "one")).run_id == run_id
        assert await signals(driver) == 1


@pytest.mark.parametrize("closed_before", [False, True])
async def test_fifty_at_once_make_one_run_with_fifty_signals(closed_before: bool):
    async with running() as driver:
        if closed_before:
            await driver.start()
            await driver.finish(await driver.take())
        driver.store.reset()
        answers = await asyncio.gather(*(signal(driver, f"s{number}") for number in range(50)))
        assert len({answer.run_id for answer in answers}) == 1
        assert [answer.started for answer in answers].count(True) == 1
        assert await signals(driver) == 1 and (await driver.describe()).buffered_events == 49
        assert driver.store.counts["append"] <= 3


async def test_a_repeat_behind_the_close_gets_the_first_run_and_adds_nothing():
    async with running() as driver:
        first = await signal(driver, "one")
        second = await signal(driver, "two")
        await driver.finish(await driver.take())
        for _ in range(2):
            again = await signal(driver, "one")
            assert (again.run_id, again.started) == (first.run_id, True)
            assert (await signal(driver, "two")).run_id == second.run_id
        assert await signals(driver) == 2
        assert (await driver.describe()).info.execution.run_id == first.run_id
        fresh = await signal(driver, "three")
        assert fresh.started and fresh.run_id != first.run_id


async def test_policies():
    async with running() as driver:
        first = await signal(driver, "one")
        await driver.finish(await driver.take())
        with pytest.raises(WorkflowExecutionAlreadyStarted):
            await signal(driver, "two", workflow_id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE)
        with pytest.raises(WorkflowExecutionAlreadyStarted):
            await signal(driver, "two", workflow_id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY)
        second = await signal(driver, "two")
        terminating = {"workflow_id_conflict_policy": WorkflowIDConflictPolicy.TERMINATE_EXISTING}
        third, fourth = await asyncio.gather(*(signal(driver, name, **terminating) for name in ("three", "four")))
        assert len({answer.run_id for answer in (first, second, third, fourth)}) == 4
        for answer in (second, third):
            described = await driver.describe(run_id=answer.run_id)
            assert described.info.status is WorkflowExecutionStatus.TERMINATED
        assert await signals(driver, fourth.run_id) == 1


async def test_one_over_an_open_run_is_the_next_commit():
    async with running() as driver:
        await signal(driver, "one")
        before = await driver.store.head(ORDER)
        await signal(driver, "two", workflow_id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING)
        after = await driver.store.head(ORDER)
        assert before is not None and after is not None
        assert after.seq == before.seq + 1, "a log has no gaps"


@pytest.mark.parametrize("between", [3, 20])
async def test_a_repeat_is_told_that_it_started_its_run_behind_any_number_of_others(between: int):
    async with running() as driver:
        first = await signal(driver, "first")
        met = await signal(driver, "met")
        for number in range(between):
            await driver.finish(await driver.take())
            assert (await signal(driver, f"s{number}")).started
        again = await signal(driver, "first")
        assert (again.run_id, again.started, again.first_execution_run_id) == (first.run_id, True, first.run_id)
        again = await signal(driver, "met")
        assert (again.run_id, again.started) == (met.run_id, False)


async def test_a_repeat_gets_the_run_that_took_the_signal_behind_others():
    async with running() as driver:
        first = await signal(driver, "one")
        met = await signal(driver, "two")
        assert (met.started, met.run_id) == (False, first.run_id)
        terminating = {"workflow_id_conflict_policy": WorkflowIDConflictPolicy.TERMINATE_EXISTING}
        for name in ("three", "four"):
            await signal(driver, name, **terminating)
        assert await signal(driver, "two") == met
        assert await signals(driver) == 1


async def test_update_with_start_is_one_commit_and_its_marker():
    async with running() as driver:
        answer = await update(driver, stage=ADMITTED)
        assert answer.started and answer.stage is ADMITTED
        assert driver.store.writes == {"append": 1, "arm": 1, "put_marker": 1}
        task = await driver.take()
        assert [shown.request.meta.update_id for shown in task.updates] == ["u"]
        assert types(task.events) == ["WorkflowExecutionStarted", "WorkflowTaskScheduled", "WorkflowTaskStarted"]


def answers(update_id: str = "u") -> tuple[AcceptUpdate, CompleteUpdate]:
    outcome = UpdateOutcome(success=payload("result"))
    return AcceptUpdate(update_id=update_id), CompleteUpdate(update_id=update_id, outcome=outcome)


async def test_update_with_start_and_its_repeats():
    async with running() as driver:
        asking = asyncio.create_task(update(driver))
        await driver.complete((await driver.take()).task_token, *answers())
        first = await asking
        assert first.started and first.outcome == UpdateOutcome(success=payload("result"))
        assert await update(driver) == first
        await driver.signal()
        await driver.finish(await driver.take())
        assert await update(driver) == first
        # another run of the id in between changes nothing for the repeat
        await driver.start()
        assert await update(driver) == first


async def test_update_of_an_open_run_by_policy():
    async with running() as driver:
        run_id = await driver.start()
        await driver.complete((await driver.take()).task_token)
        with pytest.raises(WorkflowExecutionAlreadyStarted):
            await update(driver, stage=ADMITTED)
        using = {"workflow_id_conflict_policy": WorkflowIDConflictPolicy.USE_EXISTING}
        answer = await update(driver, stage=ADMITTED, **using)
        assert (answer.run_id, answer.started) == (run_id, False)
        terminating = {"workflow_id_conflict_policy": WorkflowIDConflictPolicy.TERMINATE_EXISTING}
        other = await update(driver, "two", "v", ADMITTED, **terminating)
        assert other.started and other.run_id != run_id
        assert [shown.request.meta.update_id for shown in (await driver.take()).updates] == ["v"]


async def test_the_started_run_ends_before_it_takes_the_update():
    async with running() as driver:
        asking = asyncio.create_task(update(driver))
        task = await driver.take()
        await driver.complete(task.task_token, CompleteWorkflowExecution(result=payload("done")))
        answer = await asking  # a worker that knows no updates
        assert answer.outcome is not None and answer.outcome.failure is not None
        with pytest.raises(WorkflowExecutionClosed):
            await update(driver)


@pytest.mark.parametrize("reuse", [WorkflowIDReusePolicy.ALLOW_DUPLICATE, WorkflowIDReusePolicy.REJECT_DUPLICATE])
async def test_an_update_that_its_run_cut_off_is_no_outcome_for_another_start(reuse: WorkflowIDReusePolicy):
    policy = {"workflow_id_reuse_policy": reuse}
    async with running() as driver:
        asking = asyncio.create_task(update(driver, stage=ACCEPTED, **policy))
        end = CompleteWorkflowExecution(result=payload("done"))
        await driver.complete((await driver.take()).task_token, answers()[0], end)
        first = await asking
        assert (await update(driver, **policy)).run_id == first.run_id  # a repeat of the same start
        if reuse is WorkflowIDReusePolicy.REJECT_DUPLICATE:
            with pytest.raises(WorkflowExecutionAlreadyStarted):
                await update(driver, "two", **policy)
            return
        again = asyncio.create_task(update(driver, "two", **policy))
        await driver.complete((await driver.take()).task_token, *answers())
        second = await again
        assert second.started and second.run_id != first.run_id
        assert second.outcome == UpdateOutcome(success=payload("result"))
        assert await update(driver, "two", **policy) == second
        await driver.signal()
        await driver.finish(await driver.take())
        third = await update(driver, "three", **policy)  # of one that has ended, the outcome is told
        assert (third.run_id, third.started, third.outcome) == (second.run_id, False, second.outcome)


async def test_what_would_hold_workflow_code_back_is_refused():
    async with running() as driver:
        for more in ({"cron_schedule": "@daily"}, {"workflow_start_delay": timedelta(seconds=1)}):
            with pytest.raises(InvalidArgument, match="cannot go with an update"):
                await update(driver, **more)
        with pytest.raises(InvalidArgument, match="cron_schedule 'often'"):
            await signal(driver, "one", cron_schedule="often")
        assert driver.store.writes == {}


async def test_a_start_delay_outlasts_the_signal_that_comes_with_it():
    async with running() as driver:
        answer = await signal(driver, "one", workflow_start_delay=timedelta(minutes=1))
        assert types(await driver.history()) == ["WorkflowExecutionStarted", "WorkflowExecutionSignaled"]
        assert (await signal(driver, "two")).run_id == answer.run_id  # as any other signal, it ends the delay
        assert types(await driver.history())[-1] == "WorkflowTaskScheduled"
