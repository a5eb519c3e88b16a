"""Updates at the ends of runs, in chains, at their limits, and asked for later."""

import asyncio
from datetime import timedelta

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import (
    ContinueAsNewWorkflowExecution,
)
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import CompletionOutcome, WorkflowIDConflictPolicy
from stepwell.api.errors import (
    FailedPrecondition,
    NotFound,
    ResourceExhausted,
    WorkflowExecutionClosed,
    WorkflowExecutionClosing,
)
from stepwell.api.events import WorkflowExecutionUpdateAccepted
from stepwell.api.updates import UpdateOutcome

from tests.simulation.history_rules import HistoryRules
from tests.support.engine import QUEUE, SHORT, payload, running, types
from tests.support.updates import (
    ACCEPTED,
    ADMITTED,
    COMPLETED,
    DONE,
    accepted,
    completed,
    idle,
    poll,
    rejected,
    update,
)


async def test_a_close_that_has_not_seen_one_is_refused_and_then_senders_wait():
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        asking = asyncio.create_task(update(driver))
        await update(driver, stage=ADMITTED)
        reply = await driver.complete(task.task_token, DONE)
        assert reply.outcome is CompletionOutcome.UNSEEN_EVENTS
        task = await driver.take()
        assert len(task.updates) == 1
        await update(driver, "v", ADMITTED)
        reply = await driver.complete(task.task_token, accepted(), completed(), DONE)
        assert reply.outcome is CompletionOutcome.FAILED
        failed = (await driver.history())[-2].attributes
        assert getattr(failed, "cause", "") == "UNHANDLED_UPDATE"
        with pytest.raises(WorkflowExecutionClosing, match="about to close"):
            await update(driver, "w", ADMITTED)
        task = await driver.take()
        await driver.complete(task.task_token, accepted(), completed(), rejected("v"), DONE)
        assert (await asking).stage is COMPLETED


async def test_at_the_end_of_the_run_every_caller_is_answered():
    async with running() as driver:
        await idle(driver)
        taken = asyncio.create_task(update(driver, "taken"))
        task = await driver.take()
        reply = await driver.complete(task.task_token, accepted("taken"))
        assert reply.outcome is CompletionOutcome.ACCEPTED
        waiting = asyncio.create_task(update(driver, "waiting"))
        await update(driver, "waiting", ADMITTED)
        await driver.engine.terminate_workflow(
            r.TerminateWorkflowRequest(execution=WorkflowExecution(workflow_id="order-1"), reason="enough")
        )
        answer = await taken
        assert answer.stage is COMPLETED and answer.outcome is not None and answer.outcome.failure is not None
        assert "was terminated before the update had ended" in answer.outcome.failure.message
        with pytest.raises(WorkflowExecutionClosed, match=r"was terminated .* did not take update 'waiting'"):
            await waiting
        # and whoever comes later hears the same
        assert (await update(driver, "taken")).outcome == answer.outcome
        assert (await poll(driver, "taken")).outcome == answer.outcome
        with pytest.raises(WorkflowExecutionClosed):
            await update(driver, "waiting")


async def test_admitted_ones_pass_to_the_next_run_of_the_chain():
    again = ContinueAsNewWorkflowExecution(workflow_type="order", task_queue="orders")
    async with running() as driver:
        run_id = await driver.start()
        task = await driver.take()
        waiting = [asyncio.create_task(update(driver, name)) for name in ("a", "b")]
        for name in ("a", "b"):
            await update(driver, name, ADMITTED)
        await driver.signal()
        reply = await driver.complete(task.task_token, again)
        assert reply.outcome is CompletionOutcome.ACCEPTED
        task = await driver.take()
        assert task.execution.run_id != run_id
        assert [shown.request.meta.update_id for shown in task.updates] == ["a", "b"]
        assert types(task.events)[:2] == ["WorkflowExecutionStarted", "WorkflowExecutionSignaled"]
        await driver.complete(task.task_token, accepted("a"), completed("a"), rejected("b", "not here"))
        first, second = await asyncio.gather(*waiting)
        assert first.run_id == task.execution.run_id and first.outcome == UpdateOutcome(success=payload("result"))
        assert second.outcome is not None and second.outcome.failure is not None
        assert second.outcome.failure.message == "not here"
        # who asks the run that it was sent to finds it in the one that has it
        assert (await poll(driver, "a", run_id=run_id)).run_id == task.execution.run_id
        assert (await update(driver, "a", run_id=run_id)).outcome == first.outcome


async def test_accepted_ones_end_with_their_run():
    again = ContinueAsNewWorkflowExecution(workflow_type="order", task_queue="orders")
    async with running() as driver:
        await idle(driver)
        asking = asyncio.create_task(update(driver))
        await driver.complete((await driver.take()).task_token, accepted(), again)
        answer = await asking
        assert answer.outcome is not None and answer.outcome.failure is not None
        assert "has continued as new before the update had ended" in answer.outcome.failure.message
        assert (await poll(driver, run_id=answer.run_id)).outcome == answer.outcome
        with pytest.raises(NotFound):
            await poll(driver)


async def test_a_start_that_replaces_the_run_does_not_get_its_updates():
    async with running() as driver:
        await idle(driver)
        asking = asyncio.create_task(update(driver))
        await update(driver, stage=ADMITTED)
        await driver.start(workflow_id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING)
        with pytest.raises(WorkflowExecutionClosed, match="was terminated"):
            await asking
        assert (await driver.take()).updates == ()


async def test_limits():
    async with running() as driver:
        await idle(driver)
        for number in range(10):
            await update(driver, f"u{number}", ADMITTED)
        with pytest.raises(ResourceExhausted, match="10 updates without an end") as refused:
            await update(driver, "u10", ADMITTED)
        assert refused.value.details["cause"] == "CONCURRENT_UPDATES"
        assert (await update(driver, "u3", ADMITTED)).stage is ADMITTED  # a repeat is none more


async def test_bytes_in_flight():
    async with running() as driver:
        await idle(driver)
        await update(driver, "one", ADMITTED, input=payload("x" * 1_100_000))
        with pytest.raises(ResourceExhausted, match="bytes together"):
            await update(driver, "two", ADMITTED, input=payload("x" * 1_100_000))


async def test_an_older_end_than_the_state_remembers_is_found_behind_its_claim():
    async with running() as driver:
        await idle(driver)
        for number in range(200):
            asking = asyncio.create_task(update(driver, f"u{number}"))
            await driver.complete(
                (await driver.take()).task_token, accepted(f"u{number}"), completed(f"u{number}", str(number))
            )
            await asking
        for number in (0, 1, 63, 64, 70, 135, 136, 199):
            answer = await update(driver, f"u{number}")
            assert answer.outcome == UpdateOutcome(success=payload(str(number)))
            assert (await poll(driver, f"u{number}")).outcome == answer.outcome
        accepted_events = [
            e for e in await driver.history() if isinstance(e.attributes, WorkflowExecutionUpdateAccepted)
        ]
        assert len(accepted_events) == 200
        with pytest.raises(NotFound):
            await poll(driver, "never")


async def test_nobody_is_there_to_take_it():
    async with running(query_no_poller=timedelta(0)) as driver:
        await idle(driver)
        with pytest.raises(FailedPrecondition, match="it is recorded and will be taken"):
            await update(driver, timeout=SHORT)
        assert (await poll(driver, stage=ADMITTED)).stage is ADMITTED


async def test_unknown_workflow_and_run():
    async with running() as driver:
        with pytest.raises(NotFound, match="no such workflow"):
            await update(driver)
        await idle(driver)
        with pytest.raises(NotFound, match="no run 'other'"):
            await update(driver, run_id="other")


async def test_a_task_that_keeps_failing_ends_the_wait_and_not_the_update():
    async with running() as driver:
        await idle(driver)
        asking = asyncio.create_task(update(driver))
        for _ in range(3):
            await driver.fail_task((await driver.take()).task_token, "a bug")
        with pytest.raises(
            FailedPrecondition, match=r"keeps failing .*a bug.* update 'u' does not get on; it is recorded"
        ):
            await asking
        assert (await poll(driver, stage=ADMITTED)).stage is ADMITTED


async def test_a_reset_shows_them_again_in_their_order():
    async with running() as driver:
        run_id = await driver.start()
        await driver.complete((await driver.take()).task_token)
        for name in ("a", "b", "c"):
            asking = asyncio.create_task(update(driver, name))
            await driver.complete((await driver.take()).task_token, accepted(name), completed(name))
            await asking
        await update(driver, "d", ADMITTED)
        reset = await driver.engine.reset_workflow(
            r.ResetWorkflowRequest(
                execution=WorkflowExecution(workflow_id="order-1", run_id=run_id),
                workflow_task_finish_event_id=4,
                request_id="reset",
            )
        )
        task = await driver.take()
        assert task.execution.run_id == reset.run_id
        assert [shown.request.meta.update_id for shown in task.updates] == ["a", "b", "c", "d"]
        reply = await driver.complete(
            task.task_token,
            accepted("a"),
            completed("a", "again"),
            rejected("b", "not any more"),
            accepted("c"),
            rejected("d", "nor this"),
        )
        assert reply.outcome is CompletionOutcome.ACCEPTED, reply.message
        assert (await poll(driver, "a")).outcome == UpdateOutcome(success=payload("again"))
        outcome = (await poll(driver, "b")).outcome
        assert outcome is not None and outcome.failure is not None and outcome.failure.message == "not any more"
        with pytest.raises(NotFound):
            await poll(driver, "d")  # no history has known it
        assert (await poll(driver, "c", ACCEPTED)).stage is ACCEPTED
        rules = HistoryRules()
        for event in await driver.history():
            rules.add(event)


async def test_a_worker_that_rejects_all_of_a_reset_leaves_their_ends():
    async with running() as driver:
        run_id = await driver.start()
        await driver.complete((await driver.take()).task_token)
        asking = asyncio.create_task(update(driver))
        await driver.complete((await driver.take()).task_token, accepted(), completed())
        await asking
        await driver.engine.reset_workflow(
            r.ResetWorkflowRequest(
                execution=WorkflowExecution(workflow_id="order-1", run_id=run_id),
                workflow_task_finish_event_id=4,
                request_id="reset",
            )
        )
        reply = await driver.complete((await driver.take()).task_token, rejected())
        assert reply.outcome is CompletionOutcome.ACCEPTED
        assert types(await driver.history())[-1] == "WorkflowExecutionUpdateCompleted"


@pytest.mark.parametrize("behind", [False, True], ids=["before it was accepted", "behind its end"])
async def test_a_reset_has_an_id_once_that_two_runs_of_the_chain_were_asked_for(behind: bool):
    """The base run took it, and the next run was asked for one of the same id and had not seen it."""
    async with running() as driver:
        run_id = await driver.start()
        asking = asyncio.create_task(update(driver))
        await update(driver, stage=ADMITTED)
        await driver.complete((await driver.take()).task_token, accepted(), completed())
        await asking
        await driver.signal()
        again = ContinueAsNewWorkflowExecution(workflow_type="order", task_queue=QUEUE)
        await driver.complete((await driver.take()).task_token, again)
        asking = asyncio.create_task(update(driver))
        await update(driver, stage=ADMITTED)
        history = await driver.history(run_id=run_id)
        tasks = [event.event_id for event in history if event.event_type == "WorkflowTaskStarted"]
        made = await driver.reset(tasks[behind], run_id)
        task = await driver.take()
        shown = [shown.request.meta.update_id for shown in task.updates]
        assert shown == ([] if behind else ["u"])
        reply = await driver.complete(task.task_token, *([accepted(), completed()] if shown else []))
        assert reply.outcome is CompletionOutcome.ACCEPTED, reply.message
        answer = await asking
        assert (answer.run_id, answer.outcome) == (made, UpdateOutcome(success=payload("result")))
        rules = HistoryRules()
        for event in await driver.history():
            rules.add(event)
