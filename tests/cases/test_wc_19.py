"""WC-19: the worker dies after an update was accepted. WC-20: an update is pending when the workflow ends."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.api.events import WorkflowExecutionUpdateAccepted, WorkflowExecutionUpdateCompleted
from stepwell.api.limits import POLL_TIMEOUT
from stepwell.client import (
    RPCError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateStage,
)
from stepwell.exceptions import ApplicationError
from stepwell.replay.replayer import Replayer

from tests.support.cases import ATTEMPT, Case, attributes, events_of, until

calls: list[str] = []
released = asyncio.Event()


@activity.defn
async def slow_double(amount: int) -> int:
    await released.wait()
    return 2 * amount


@workflow.defn
class Account:
    def __init__(self) -> None:
        self.balance = 0
        self.ended = ""

    @workflow.run
    async def run(self) -> int:
        await workflow.wait_condition(lambda: self.ended != "")
        if self.ended == "fail":
            raise ApplicationError("broke")
        return self.balance

    @workflow.update
    async def deposit(self, amount: int) -> int:
        calls.append(f"handler {amount}")
        self.balance += await workflow.execute_activity(
            slow_double, amount, task_queue="elsewhere", start_to_close_timeout=ATTEMPT
        )
        return self.balance

    @deposit.validator
    def check(self, amount: int) -> None:
        calls.append(f"validator {amount}")
        if amount <= 0:
            raise ApplicationError("an amount is above zero")

    @workflow.update
    async def never(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.signal
    def end(self, how: str) -> None:
        self.ended = how


async def test_worker_dies_after_acceptance(case: Case) -> None:
    """Tried: the update is accepted, its handler waits for an activity of another worker; the workflow's worker ends,
    the activity finishes, another worker begins. The same id is sent in progress, after completion, after the close.

    Right: one acceptance, one completion; the validator ran once, replay runs the handler only; all get one outcome.
    """
    calls.clear()
    released.clear()
    handle = await case.start(Account.run, id="account")
    async with case.worker([], [slow_double], task_queue="elsewhere"):
        async with case.worker([Account]):
            sent = await handle.start_update(
                Account.deposit, 5, id="pay-1", wait_for_stage=WorkflowUpdateStage.ACCEPTED
            )
        released.set()
        async with case.worker([Account]):
            again = asyncio.create_task(handle.execute_update(Account.deposit, 5, id="pay-1"))
            assert await sent.result() == 10
            assert await again == 10
            assert await handle.execute_update(Account.deposit, 5, id="pay-1") == 10
            await handle.signal(Account.end, "well")
            assert await handle.result() == 10
    assert await handle.execute_update(Account.deposit, 5, id="pay-1") == 10
    assert await handle.get_update_handle_for(Account.deposit, "pay-1").result() == 10
    events = await events_of(handle)
    assert len(attributes(events, WorkflowExecutionUpdateAccepted)) == 1
    assert len(attributes(events, WorkflowExecutionUpdateCompleted)) == 1
    assert calls.count("validator 5") == 1
    before = list(calls)
    await Replayer(workflows=[Account]).replay_workflow(await handle.fetch_history())
    assert calls == [*before, "handler 5"]


async def test_a_rejected_update_leaves_nothing(case: Case) -> None:
    async with case.worker([Account]):
        handle = await case.start(Account.run, id="account")
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update(Account.deposit, -1)
        assert isinstance(refused.value.__cause__, ApplicationError)
        assert refused.value.__cause__.message == "an amount is above zero"
        with pytest.raises(WorkflowUpdateFailedError, match="no handler for update 'depose'; it has: deposit, never"):
            await handle.execute_update("depose", 1)
        await handle.signal(Account.end, "well")
        assert await handle.result() == 0
    events = await events_of(handle)
    assert not [event for event in events if "Update" in event.event_type]
    assert [event.event_type for event in events].count("WorkflowTaskCompleted") == 2, "none for what was rejected"


async def end(handle: WorkflowHandle[Any], how: str) -> None:
    if how == "cancel":
        await handle.cancel()
    elif how == "terminate":
        await handle.terminate(reason="enough")
    elif how in ("well", "fail"):
        await handle.signal(Account.end, how)


ENDS = {
    "well": "has completed",
    "fail": "has failed",
    "cancel": "was cancelled",
    "terminate": "was terminated",
    "time out": "has timed out",
}


@pytest.mark.parametrize("how", ENDS)
async def test_update_pending_at_the_end(case: Case, how: str) -> None:
    """Tried: a handler that never finishes; with one update accepted, and for an end by the server one that nobody has
    seen, the run ends.

    Right: each caller is told at once, not when its long poll ends, that the workflow has ended, and how;
    whoever asks later hears the same.
    """
    run_timeout = timedelta(seconds=3) if how == "time out" else None
    handle = await case.start(Account.run, id="account", run_timeout=run_timeout)
    waiting: list[asyncio.Task[Any]] = []
    async with case.worker([Account]):
        taken = await handle.start_update(Account.never, id="taken", wait_for_stage=WorkflowUpdateStage.ACCEPTED)
        waiting.append(asyncio.create_task(taken.result()))
        if how not in ("terminate", "time out"):
            await end(handle, how)
            await until(lambda: closed(handle))
    if how in ("terminate", "time out"):
        await handle.start_update("never", id="sent", wait_for_stage=WorkflowUpdateStage.ADMITTED)
        waiting.append(asyncio.create_task(handle.execute_update("never", id="sent")))
        await until(lambda: asked(case, waiting[1]))
        await end(handle, how)
        await until(lambda: closed(handle))
    async with asyncio.timeout(POLL_TIMEOUT.total_seconds() / 2):
        with pytest.raises(WorkflowUpdateFailedError, match=f"the workflow {ENDS[how]} before the update had ended"):
            await waiting[0]
        for each in waiting[1:]:
            with pytest.raises(RPCError) as refused:
                await each
            status = "TERMINATED" if how == "terminate" else "TIMED_OUT"
            assert (refused.value.code, refused.value.details["status"]) == ("WORKFLOW_EXECUTION_CLOSED", status)
    with pytest.raises(WorkflowUpdateFailedError, match=ENDS[how]):
        await handle.get_update_handle("taken").result()
    with pytest.raises(RPCError, match=f"{ENDS[how]} .* did not take update 'unknown'"):
        await handle.get_update_handle("unknown").result()


async def test_update_over_continue_as_new(case: Case) -> None:
    """Tried: one update accepted, whose handler never finishes, and one just sent, when the run continues as new.

    Right: the accepted one fails, saying so; the other one is answered by the next run, without its caller noticing.
    """
    handle = await case.start(Chapters.run, 1, id="chapters")
    async with case.worker([Chapters]):
        taken = await handle.start_update("never", id="taken", wait_for_stage=WorkflowUpdateStage.ACCEPTED)
    await handle.signal("turn")
    unseen = await handle.start_update("chapter", id="unseen", wait_for_stage=WorkflowUpdateStage.ADMITTED)
    async with case.worker([Chapters]):
        with pytest.raises(WorkflowUpdateFailedError, match="has continued as new before the update had ended"):
            await taken.result()
        assert await unseen.result() in (1, 2)
        assert await handle.execute_update("chapter") == 2
        assert await handle.execute_update("chapter", id="unseen") in (1, 2)
        await handle.signal("end")
        assert await handle.result() == 2


@workflow.defn
class Chapters:
    def __init__(self) -> None:
        self.number = 0
        self.turned = self.ended = False

    @workflow.run
    async def run(self, number: int) -> int:
        self.number = number
        await workflow.wait_condition(lambda: self.turned or self.ended)
        if self.turned:
            workflow.continue_as_new(number + 1)
        return number

    @workflow.update
    async def never(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.update
    async def chapter(self) -> int:
        await workflow.wait_condition(lambda: self.number > 0)
        return self.number

    @workflow.signal
    def turn(self) -> None:
        self.turned = True

    @workflow.signal
    def end(self) -> None:
        self.ended = True


async def closed(handle: WorkflowHandle[Any]) -> bool:
    return (await handle.describe()).close_time is not None


async def asked(case: Case, call: "asyncio.Task[Any]") -> bool:
    """The call has reached the engine: another one behind it has been answered."""
    await case.client.system_info()
    return not call.done()
