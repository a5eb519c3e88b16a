"""Updates as clients send them and workers answer them: stages, repeats, rejection, ends of the run."""

import asyncio

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import (
    Command,
    StartTimer,
)
from stepwell.api.enums import CompletionOutcome
from stepwell.api.errors import (
    NotFound,
)
from stepwell.api.events import WorkflowExecutionUpdateAccepted
from stepwell.api.updates import UpdateOutcome

from tests.support.engine import SHORT, activity, payload, running, types
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
        assert reply.outcome is CompletionOutcome.DROPPED and reply.started_event_id == before[-1].event_id - 1
        answer = await asking
        assert answer.stage is COMPLETED and answer.outcome is not None and answer.outcome.failure is not None
        assert answer.outcome.failure.message == "too much"
        assert await driver.history() == before
        again = await driver.complete(task.task_token, rejected(why="too much"), nonce="n")
        assert again.outcome is CompletionOutcome.DROPPED and again.started_event_id == reply.started_event_id
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


async def test_what_runs_meanwhile_goes_on_behind_a_dropped_task():
    """The worker may go on from there with a fused step: nothing has happened."""
    async with running() as driver:
        await driver.start()
        last = await driver.complete((await driver.take()).task_token, activity("1"), slots=1)
        await update(driver, stage=ADMITTED)
        task = await driver.take()
        stale = await driver.fused(last, now=task.started_time)
        assert stale.outcome is CompletionOutcome.STALE, "a workflow task is outstanding"


async def test_a_fused_step_behind_a_dropped_task():
    async with running() as driver:
        await driver.start()
        last = await driver.complete((await driver.take()).task_token, activity("1"), slots=1)
        await update(driver, stage=ADMITTED)
        task = await driver.take()
        dropped = await driver.complete(task.task_token, rejected())
        assert dropped.outcome is CompletionOutcome.DROPPED and dropped.fusible
        outcomes = [r.ActivityCompleted(task_token=last.leases[0].task_token, result=payload("1"))]
        reply = await driver.fused(dropped, DONE, now=task.started_time, outcomes=outcomes)
        assert reply.outcome is CompletionOutcome.ACCEPTED
        assert types(await driver.history())[-1] == "WorkflowExecutionCompleted"
