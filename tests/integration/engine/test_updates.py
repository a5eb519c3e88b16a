"""Updates as clients send them and workers answer them: stages, repeats, rejection, ends of the run."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import (
    AcceptUpdate,
    Command,
    CompleteUpdate,
    CompleteWorkflowExecution,
    ContinueAsNewWorkflowExecution,
    RejectUpdate,
    StartTimer,
)
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import CompletionOutcome, WorkflowIDConflictPolicy, WorkflowUpdateStage
from stepwell.api.errors import (
    FailedPrecondition,
    NotFound,
    ResourceExhausted,
    WorkflowExecutionClosed,
    WorkflowExecutionClosing,
)
from stepwell.api.events import WorkflowExecutionUpdateAccepted
from stepwell.api.updates import UpdateOutcome

from tests.support.engine import SHORT, Driver, failure, payload, running, types

ADMITTED, ACCEPTED, COMPLETED = WorkflowUpdateStage
DONE = CompleteWorkflowExecution(result=payload("done"))


async def update(
    driver: Driver,
    update_id: str = "u",
    stage: WorkflowUpdateStage = COMPLETED,
    *,
    timeout: timedelta = timedelta(seconds=5),
    run_id: str = "",
    **more: Any,
) -> r.UpdateWorkflowResponse:
    return await driver.engine.update_workflow(
        r.UpdateWorkflowRequest(
            execution=WorkflowExecution(workflow_id="order-1", run_id=run_id),
            update_id=update_id,
            **({"update_name": "add", "input": payload(update_id)} | more),
            wait_for_stage=stage,
            timeout=timeout,
        )
    )


async def poll(
    driver: Driver, update_id: str = "u", stage: WorkflowUpdateStage = COMPLETED, *, run_id: str = ""
) -> r.PollWorkflowUpdateResponse:
    return await driver.engine.poll_workflow_update(
        r.PollWorkflowUpdateRequest(
            execution=WorkflowExecution(workflow_id="order-1", run_id=run_id),
            update_id=update_id,
            wait_for_stage=stage,
            timeout=timedelta(seconds=5),
        )
    )


async def idle(driver: Driver, *commands: Command) -> r.RespondWorkflowTaskCompletedResponse:
    """A started run whose first task is done."""
    await driver.start()
    return await driver.complete((await driver.take()).task_token, *commands)


def accepted(update_id: str = "u") -> AcceptUpdate:
    return AcceptUpdate(update_id=update_id)


def completed(update_id: str = "u", result: str = "result") -> CompleteUpdate:
    return CompleteUpdate(update_id=update_id, outcome=UpdateOutcome(success=payload(result)))


def rejected(update_id: str = "u", why: str = "no") -> RejectUpdate:
    return RejectUpdate(update_id=update_id, failure=failure(why))


async def test_accepted_and_completed_in_one_task():
    async with running() as driver:
        await idle(driver)
        asking = asyncio.create_task(update(driver))
        task = await driver.take()
        (shown,) = task.updates
        assert shown.request.meta.update_id == "u" and shown.request.input.args == payload("u")
        assert types(task.events)[-2:] == ["WorkflowTaskScheduled", "WorkflowTaskStarted"]
        reply = await driver.complete(task.task_token, accepted(), completed())
        assert reply.outcome is CompletionOutcome.ACCEPTED
        answer = await asking
        assert answer.stage is COMPLETED
        assert answer.outcome == UpdateOutcome(success=payload("result"))
        history = await driver.history()
        assert types(history)[4:] == [
            "WorkflowTaskScheduled",
            "WorkflowTaskStarted",
            "WorkflowTaskCompleted",
            "WorkflowExecutionUpdateAccepted",
            "WorkflowExecutionUpdateCompleted",
        ]
        event = history[7].attributes
        assert isinstance(event, WorkflowExecutionUpdateAccepted)
        assert event.accepted_request == shown.request
        assert event.accepted_request_sequencing_event_id == shown.sequencing_event_id
        # the same call again, and a poll, get the one outcome, also behind the close
        assert await update(driver) == answer
        assert (await poll(driver)).outcome == answer.outcome
        await driver.signal()
        await driver.finish(await driver.take())
        assert await update(driver) == answer
        assert (await poll(driver)).outcome == answer.outcome


async def test_each_stage_is_waited_for():
    async with running() as driver:
        await idle(driver)
        assert (await update(driver, stage=ADMITTED)).stage is ADMITTED
        waiting = [asyncio.create_task(update(driver, stage=stage)) for stage in (ACCEPTED, COMPLETED)]
        await driver.complete(
            (await driver.take()).task_token, accepted(), StartTimer(timer_id="1", start_to_fire_timeout=SHORT)
        )
        assert (await waiting[0]).stage is ACCEPTED
        assert not waiting[1].done()
        assert (await update(driver, stage=COMPLETED, timeout=SHORT)).stage is ACCEPTED
        await driver.complete((await driver.take()).task_token, completed())
        assert (await waiting[1]).stage is COMPLETED


async def test_a_rejected_one_leaves_nothing():
    async with running() as driver:
        await idle(driver)
        before = await driver.history()
        asking = asyncio.create_task(update(driver))
        task = await driver.take()
        reply = await driver.complete(task.task_token, rejected(why="too much"), nonce="n")
        assert reply.outcome is CompletionOutcome.DROPPED
        answer = await asking
        assert answer.stage is COMPLETED and answer.outcome is not None and answer.outcome.failure is not None
        assert answer.outcome.failure.message == "too much"
        assert await driver.history() == before
        again = await driver.complete(task.task_token, rejected(why="too much"), nonce="n")
        assert again.outcome is CompletionOutcome.DROPPED
        with pytest.raises(NotFound, match="knows no update 'u'"):
            await poll(driver)


async def test_the_token_of_a_dropped_task_is_worth_nothing_for_the_next():
    async with running() as driver:
        await idle(driver)
        await update(driver, stage=ADMITTED)
        first = await driver.take()
        await driver.complete(first.task_token, rejected())
        await update(driver, "v", ADMITTED)
        stale = await driver.complete(first.task_token, rejected())
        assert stale.outcome is CompletionOutcome.STALE
        second = await driver.take()
        assert [shown.request.meta.update_id for shown in second.updates] == ["v"]
        assert (await driver.complete(second.task_token, accepted("v"), completed("v"))).outcome == "ACCEPTED"


async def test_a_signal_in_the_meantime_keeps_the_task():
    async with running() as driver:
        await idle(driver)
        await update(driver, stage=ADMITTED)
        task = await driver.take()
        await driver.signal()
        reply = await driver.complete(task.task_token, rejected())
        assert reply.outcome is CompletionOutcome.ACCEPTED
        assert types(await driver.history())[4:] == [
            "WorkflowTaskScheduled",
            "WorkflowTaskStarted",
            "WorkflowTaskCompleted",
            "WorkflowExecutionSignaled",
            "WorkflowTaskScheduled",
        ]


async def test_one_that_comes_in_behind_a_task_that_is_dropped_gets_a_task_of_its_own():
    async with running() as driver:
        await idle(driver)
        await update(driver, stage=ADMITTED)
        task = await driver.take()
        await update(driver, "v", ADMITTED)
        assert (await driver.complete(task.task_token, rejected())).outcome is CompletionOutcome.DROPPED
        following = await driver.take()
        assert [shown.request.meta.update_id for shown in following.updates] == ["v"]
        await driver.complete(following.task_token, accepted("v"), completed("v"))
        assert (await poll(driver, "v")).stage is COMPLETED


async def test_messages_are_shown_in_the_order_in_which_they_came():
    async with running() as driver:
        await driver.start()
        first = await driver.take()
        await update(driver, "a", ADMITTED)
        await driver.signal()
        await update(driver, "b", ADMITTED)
        await driver.complete(first.task_token)
        task = await driver.take()
        signal = next(
            event.event_id for event in task.events if type(event.attributes).__name__ == "WorkflowExecutionSignaled"
        )
        a, b = task.updates
        assert (a.request.meta.update_id, b.request.meta.update_id) == ("a", "b")
        assert b.sequencing_event_id >= signal


async def test_a_failed_task_shows_it_again():
    async with running() as driver:
        await idle(driver)
        await update(driver, stage=ADMITTED)
        await driver.fail_task((await driver.take()).task_token, "bug")
        assert types(await driver.history())[4:] == [
            "WorkflowTaskScheduled",
            "WorkflowTaskStarted",
            "WorkflowTaskFailed",
        ]
        task = await driver.take()
        assert len(task.updates) == 1
        await driver.complete(task.task_token, accepted(), completed())
        assert (await poll(driver)).stage is COMPLETED


async def test_what_a_worker_does_not_answer_is_rejected():
    async with running() as driver:
        await idle(driver)
        asking = asyncio.create_task(update(driver))
        reply = await driver.complete((await driver.take()).task_token)
        assert reply.outcome is CompletionOutcome.DROPPED
        answer = await asking
        assert answer.outcome is not None and answer.outcome.failure is not None
        assert "was not processed" in answer.outcome.failure.message


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


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        ([accepted("x")], "AcceptUpdate names update 'x': this workflow task has not shown it"),
        ([rejected("x")], "RejectUpdate names update 'x'"),
        ([completed("u")], "CompleteUpdate names update 'u': it is not accepted"),
        ([accepted(), accepted()], "AcceptUpdate names update 'u'"),
        ([accepted(), completed(), completed()], "it is not accepted, or has ended"),
    ],
)
async def test_bad_commands_fail_the_task(commands: list[Command], message: str):
    async with running() as driver:
        await idle(driver)
        await update(driver, stage=ADMITTED)
        reply = await driver.complete((await driver.take()).task_token, *commands)
        assert reply.outcome is CompletionOutcome.FAILED
        assert message in reply.message
        task = await driver.take()
        await driver.complete(task.task_token, accepted(), completed())
        assert (await poll(driver)).stage is COMPLETED


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
