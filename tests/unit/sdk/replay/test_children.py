"""Children and other workflows as workflow code sees them: starts, ends, cancellation, interceptors, replay."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from stepwell import workflow
from stepwell.api import events as ev
from stepwell.api.commands import (
    RequestCancelExternalWorkflowExecution,
    SignalExternalWorkflowExecution,
    StartChildWorkflowExecution,
)
from stepwell.api.common import WorkflowExecution
from stepwell.common import RetryPolicy, WorkflowIDConflictPolicy
from stepwell.exceptions import ApplicationError, ChildWorkflowError
from stepwell.replay.flags import LogicFlag, LogicFlags
from stepwell.workflow import ChildWorkflowCancellationType, ParentClosePolicy

from tests.support.histories import Driver, failure, payloads

WAITS = ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED


@workflow.defn(name="pack")
class Pack:
    @workflow.signal
    def hurry(self, why: str) -> None: ...

    @workflow.run
    async def run(self, what: str) -> int:
        return len(what)


def initiated(d: Driver, index: int = -1) -> tuple[int, Any]:
    found = [e for e in d.history.events if isinstance(e.attributes, ev.StartChildWorkflowExecutionInitiated)]
    return found[index].event_id, found[index].attributes


def about(d: Driver, index: int = -1) -> dict[str, Any]:
    event_id, asked = initiated(d, index)
    return {
        "initiated_event_id": event_id,
        "workflow_execution": WorkflowExecution(workflow_id=asked.workflow_id, run_id=f"run of {asked.workflow_id}"),
        "workflow_type": asked.workflow_type,
    }


def started(d: Driver, index: int = -1) -> None:
    d.history.add(ev.ChildWorkflowExecutionStarted(**about(d, index)))


def completed(d: Driver, value: Any, index: int = -1) -> None:
    d.history.add(
        ev.ChildWorkflowExecutionCompleted(
            result=payloads(value), started_event_id=len(d.history.events), **about(d, index)
        )
    )


def canceled(d: Driver) -> None:
    d.history.add(ev.ChildWorkflowExecutionCanceled(started_event_id=len(d.history.events), **about(d)))


def of(d: Driver, kind: type[Any]) -> list[Any]:
    return [command for command in d.result.commands if isinstance(command, kind)]


@workflow.defn
async def packs(child_id: str) -> int:
    child = await workflow.start_child_workflow(
        Pack.run,
        "flute",
        id=child_id,
        task_queue="packers",
        execution_timeout=timedelta(hours=2),
        run_timeout=timedelta(hours=1),
        task_timeout=timedelta(seconds=5),
        parent_close_policy=ParentClosePolicy.ABANDON,
        retry_policy=RetryPolicy(maximum_attempts=2),
        cron_schedule="@daily",
        memo={"note": "fragile"},
    )
    assert (child.id, child.first_execution_run_id) == (child_id, f"run of {child_id}")
    await child.signal(Pack.hurry, "late")
    return await child


@pytest.mark.parametrize("cache", [True, False])
def test_start_signal_and_result(cache: bool) -> None:
    d = Driver(packs, "kid", cache=cache)
    d.task()
    (command,) = d.result.commands
    assert command == StartChildWorkflowExecution(
        workflow_id="kid",
        workflow_type="pack",
        task_queue="packers",
        input=payloads("flute"),
        workflow_execution_timeout=timedelta(hours=2),
        workflow_run_timeout=timedelta(hours=1),
        workflow_task_timeout=timedelta(seconds=5),
        parent_close_policy=ParentClosePolicy.ABANDON,
        retry_policy=RetryPolicy(maximum_attempts=2).to_record(),
        cron_schedule="@daily",
        memo={"note": payloads("fragile")[0]},
    )
    started(d)
    d.task()
    (signal,) = d.result.commands
    assert signal == SignalExternalWorkflowExecution(
        execution=WorkflowExecution(workflow_id="kid", run_id="run of kid"),
        signal_name="hurry",
        input=payloads("late"),
        child_workflow_only=True,
    )
    d.history.add(
        ev.ExternalWorkflowExecutionSignaled(
            initiated_event_id=len(d.history.events), workflow_execution=signal.execution
        )
    )
    completed(d, 5)
    d.task()
    assert d.kinds() == ["CompleteWorkflowExecution"]
    d.replay()


@workflow.defn
async def random_ids() -> None:
    await asyncio.gather(*(workflow.execute_child_workflow("pack", "x") for _ in range(3)))


def test_ids_that_are_not_given_are_random_and_the_same_in_replay() -> None:
    d = Driver(random_ids, cache=False)
    d.task()
    assert len({command.workflow_id for command in d.result.commands}) == 3
    for index in range(3):
        started(d, index)
    d.task()
    for index in range(3):
        completed(d, 1, index)
    d.task()
    assert d.kinds() == ["CompleteWorkflowExecution"]
    d.replay()


@workflow.defn
async def catches() -> str:
    try:
        await workflow.execute_child_workflow(Pack.run, "x", id="kid")
    except ChildWorkflowError as error:
        return f"{error.message} <- {error.cause!r} {error.retry_state} {error.started_event_id}"
    return "completed"


def test_a_failure_says_whose_it_is() -> None:
    d = Driver(catches)
    d.task()
    started(d)
    d.task()
    d.history.add(
        ev.ChildWorkflowExecutionFailed(failure=failure(ApplicationError("torn")), started_event_id=6, **about(d))
    )
    d.task()
    (close,) = d.result.commands
    assert b"child workflow 'pack' failed <- ApplicationError('torn') RETRY_POLICY_NOT_SET 6" in close.result[0].data


@workflow.defn
async def three_in_one_batch() -> list[str]:
    ended: list[str] = []

    async def follow(child_id: str) -> None:
        await workflow.execute_child_workflow("pack", child_id, id=child_id)
        ended.append(child_id)

    await asyncio.gather(*(follow(child_id) for child_id in "abc"))
    return ended


def test_ends_of_one_batch_are_taken_in_the_order_of_their_events() -> None:
    d = Driver(three_in_one_batch, cache=False)
    d.task()
    for index in range(3):
        started(d, index)
    d.task()
    for index in (2, 0, 1):
        completed(d, 1, index)
    d.task()
    assert d.result.commands[0].result == payloads(["c", "a", "b"])
    d.replay()


@workflow.defn
async def gives_the_start_up(kind: str) -> str:
    task = asyncio.create_task(
        workflow.start_child_workflow("pack", "x", id="kid", cancellation_type=ChildWorkflowCancellationType(kind))
    )
    await workflow.wait_for_signal("go")
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return "given up"
    return "started"


@pytest.mark.parametrize("kind", list(ChildWorkflowCancellationType))
def test_cancelling_a_start_that_is_not_confirmed(kind: ChildWorkflowCancellationType) -> None:
    d = Driver(gives_the_start_up, kind, cache=False)
    d.task()
    d.history.signal("go")
    d.task()
    asked = of(d, RequestCancelExternalWorkflowExecution)
    if kind is ChildWorkflowCancellationType.ABANDON:
        assert not asked
    else:
        assert asked == [RequestCancelExternalWorkflowExecution(workflow_id="kid", child_workflow_only=True)]
    waits = kind not in (ChildWorkflowCancellationType.ABANDON, ChildWorkflowCancellationType.TRY_CANCEL)
    assert d.kinds()[-1] == ("RequestCancelExternalWorkflowExecution" if waits else "CompleteWorkflowExecution")
    if waits:
        started(d)
        d.task()
        assert d.kinds() == ["CompleteWorkflowExecution"]
    d.replay()


@workflow.defn
async def gives_an_execution_up(kind: str) -> str:
    task = asyncio.create_task(
        workflow.execute_child_workflow("pack", "x", id="kid", cancellation_type=ChildWorkflowCancellationType(kind))
    )
    await workflow.wait_for_signal("go")
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return "given up"
    return "done"


@pytest.mark.parametrize("end", [canceled, lambda d: completed(d, 3)], ids=["canceled", "completed"])
def test_an_execution_that_is_cancelled_before_the_start_is_confirmed_waits_for_the_end(end: Any) -> None:
    d = Driver(gives_an_execution_up, WAITS, cache=False)
    d.task()
    d.history.signal("go")
    d.task()
    assert d.kinds() == ["RequestCancelExternalWorkflowExecution"]
    started(d)
    d.task()
    assert d.kinds() == []
    end(d)
    d.task()
    assert d.result.commands[0].result == payloads("given up")
    d.replay()


def test_a_history_in_which_it_was_not_waited_for_goes_on_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a release without the logic flag."""
    d = Driver(gives_an_execution_up, WAITS, cache=False)
    with monkeypatch.context() as before:
        before.setattr(LogicFlags, "use", lambda self, flag, replaying: flag is not LogicFlag.CHILD_TO_ITS_END)
        d.task()
        d.history.signal("go")
        d.task()
        started(d)
        d.task()
    assert d.kinds() == ["CompleteWorkflowExecution"]
    d.replay()


def test_an_execution_that_ends_with_its_start_is_not_waited_for() -> None:
    d = Driver(gives_an_execution_up, WAITS, cache=False)
    d.task()
    d.history.signal("go")
    d.task()
    started(d)
    canceled(d)
    d.task()
    assert d.kinds() == ["CompleteWorkflowExecution"]
    d.replay()


@workflow.defn
async def gives_the_start_up_at_once() -> None:
    task = asyncio.create_task(workflow.start_child_workflow("pack", "x", id="kid"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_start_that_was_not_sent_is_taken_back() -> None:
    d = Driver(gives_the_start_up_at_once)
    d.task()
    assert d.kinds() == ["CompleteWorkflowExecution"]


@workflow.defn
async def times_out() -> str:
    child = await workflow.start_child_workflow("pack", "x", id="kid", cancellation_type=WAITS)
    try:
        async with asyncio.timeout(5):
            await child
    except TimeoutError:
        return "too slow"
    return "in time"


def test_a_timeout_around_a_child_cancels_it_and_is_a_timeout() -> None:
    d = Driver(times_out, cache=False)
    d.task()
    started(d)
    d.task()
    d.history.pass_time(6)
    d.history.timer_fired()
    d.task()
    assert d.kinds() == ["RequestCancelExternalWorkflowExecution"]
    canceled(d)
    d.task()
    assert d.result.commands[0].result == payloads("too slow")
    d.replay()


@workflow.defn
async def cancels_what_has_ended() -> str:
    child = await workflow.start_child_workflow("pack", "x", id="kid", cancellation_type=WAITS)
    await workflow.wait_for_signal("go")
    child.cancel()
    return await child


def test_one_whose_end_comes_along_is_not_asked_to_cancel() -> None:
    d = Driver(cancels_what_has_ended, cache=False)
    d.task()
    started(d)
    d.task()
    d.history.signal("go")
    completed(d, "well")
    d.task()
    assert d.kinds() == ["CompleteWorkflowExecution"] and d.result.commands[0].result == payloads("well")
    d.replay()


@workflow.defn
async def watches() -> str:
    child = await workflow.start_child_workflow(
        "pack", "x", id="kid", id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING
    )
    await child.signal("hurry")
    child.cancel()
    try:
        return await child
    except asyncio.CancelledError:
        return "not waited for"


def test_one_that_is_only_watched_is_signalled_as_any_other_and_not_cancelled() -> None:
    d = Driver(watches)
    d.task()
    started(d)
    d.task()
    (signal,) = d.result.commands
    assert not signal.child_workflow_only and not signal.execution.run_id
    d.history.add(
        ev.ExternalWorkflowExecutionSignaled(
            initiated_event_id=len(d.history.events), workflow_execution=signal.execution
        )
    )
    d.task()
    assert d.kinds() == ["CompleteWorkflowExecution"] and d.result.commands[0].result == payloads("not waited for")
