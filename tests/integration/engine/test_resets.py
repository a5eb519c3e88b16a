"""Reset: a run goes on from an earlier point of its history, in one commit, with what has come in since (LC-13 ff.)."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from stepwell.api import requests as r
from stepwell.api.commands import CompleteWorkflowExecution, StartTimer
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import (
    CompletionOutcome,
    ResetReapplyExcludeType,
    ResetType,
    WorkflowExecutionStatus,
    WorkflowIDConflictPolicy,
    WorkflowTaskFailedCause,
)
from stepwell.api.errors import InvalidArgument, NotFound, Unavailable, WorkflowExecutionClosed
from stepwell.api.events import (
    HistoryEvent,
    WorkflowExecutionSignaled,
    WorkflowExecutionTerminated,
    WorkflowTaskFailed,
)

from stepwell_server.history.apply import durable_part, rebuild
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.ports import StoreUnavailable
from tests.simulation.history_rules import HistoryRules
from tests.support.engine import Driver, activity, payload, running, types

KEY = ExecutionKey("default", "order-1")
SIGNAL, CANCEL = ResetReapplyExcludeType.SIGNAL, ResetReapplyExcludeType.CANCEL_REQUEST
FAILED = WorkflowTaskFailedCause.RESET_WORKFLOW


def signals(events: Sequence[HistoryEvent]) -> list[str]:
    return [event.attributes.signal_name for event in events if isinstance(event.attributes, WorkflowExecutionSignaled)]


async def checked(driver: Driver, run_id: str) -> list[HistoryEvent]:
    """The run's history, which obeys the rules and tells its state."""
    events = await driver.history(run_id=run_id)
    rules = HistoryRules()
    for event in events:
        rules.add(event)
    commit = await driver.store.find_run(KEY, run_id)
    state = None if commit is None else commit.state_of(run_id)
    assert state is not None
    told, known = (
        msgspec.structs.asdict(durable_part(rebuild(events, "default", run_id))),
        msgspec.structs.asdict(durable_part(state)),
    )
    assert {name: value for name, value in told.items() if value != known[name]} == {}
    return events


async def two_steps(driver: Driver) -> str:
    """Events 1 to 10: a task that scheduled an activity (5), its end (6, 7), and a task that started a timer."""
    run_id = await driver.start()
    task = await driver.take()
    await driver.complete(task.task_token, activity("1", eager=False))
    (charge,) = await driver.poll_activities()
    await driver.done(charge)
    task = await driver.take()
    await driver.complete(task.task_token, StartTimer(timer_id="1", start_to_fire_timeout=timedelta(seconds=3_600)))
    return run_id


async def test_it_ends_the_run_and_goes_on_from_the_point_in_one_commit() -> None:
    async with running() as driver:
        first = await two_steps(driver)
        before = await checked(driver, first)
        await driver.signal(name="late")
        driver.store.reset()
        second = await driver.reset(reason="bad deploy")
        assert driver.store.writes == {"append": 1, "arm": 1, "put_prefix": 1}
        old, new = await checked(driver, first), await checked(driver, second)
        assert types(old)[-1] == "WorkflowExecutionTerminated"
        terminated = old[-1].attributes
        assert isinstance(terminated, WorkflowExecutionTerminated)
        assert terminated.new_execution_run_id == second and "bad deploy" in terminated.reason
        assert new[:9] == before[:9] and before[9].event_type == "WorkflowTaskCompleted"
        assert types(new)[9:] == ["WorkflowTaskFailed", "WorkflowExecutionSignaled", "WorkflowTaskScheduled"]
        failed = new[9].attributes
        assert isinstance(failed, WorkflowTaskFailed) and failed.failure is not None
        assert (failed.cause, failed.base_run_id, failed.new_run_id) == (FAILED, first, second)
        assert failed.failure.message == "bad deploy"
        described = await driver.describe()
        assert described.info.execution.run_id == second and described.info.first_run_id == first
        assert described.info.history_length == 12
        assert (await driver.describe(run_id=first)).info.status is WorkflowExecutionStatus.TERMINATED


async def test_the_new_run_is_worked_off_to_its_end() -> None:
    async with running() as driver:
        await two_steps(driver)
        second = await driver.reset()
        task = await driver.take()
        assert task.execution.run_id == second
        assert (task.previous_started_event_id, types(task.events)) == (
            3,
            [
                "ActivityTaskScheduled",
                "ActivityTaskStarted",
                "ActivityTaskCompleted",
                "WorkflowTaskScheduled",
                "WorkflowTaskStarted",
                "WorkflowTaskFailed",
                "WorkflowTaskScheduled",
                "WorkflowTaskStarted",
            ],
        )
        answer = await driver.complete(task.task_token, activity("2"), slots=1)
        (lease,) = answer.leases
        await driver.done(lease)
        await driver.finish(await driver.take())
        assert types(await checked(driver, second))[-1] == "WorkflowExecutionCompleted"


async def test_the_worker_of_the_old_run_is_told_that_its_task_is_stale() -> None:
    async with running() as driver:
        await two_steps(driver)
        await driver.signal()
        task = await driver.take()
        second = await driver.reset()
        answer = await driver.complete(task.task_token, CompleteWorkflowExecution())
        assert answer.outcome is CompletionOutcome.STALE
        assert (await driver.take()).execution.run_id == second


async def test_an_activity_that_was_pending_at_the_point_starts_over() -> None:
    async with running() as driver:
        await driver.start()
        await driver.signal()
        task = await driver.take()
        answer = await driver.complete(
            task.task_token,
            activity("1"),
            StartTimer(timer_id="1", start_to_fire_timeout=timedelta(seconds=0.01)),
            slots=1,
        )
        task = await driver.take()
        answer = await driver.complete(task.task_token, CompleteWorkflowExecution())
        assert answer.outcome is CompletionOutcome.ACCEPTED
        await driver.reset()
        (charge,) = await driver.poll_activities()
        assert (charge.activity_id, charge.attempt, charge.input) == ("1", 1, payload("1"))
        await driver.done(charge)
        task = await driver.take()
        assert "ActivityTaskCompleted" in types(task.events)
        await driver.finish(task)


@pytest.mark.parametrize(
    ("excluded", "kept"),
    [((), ["a", "b", "c"]), ((SIGNAL,), ["a"]), ((CANCEL,), ["a", "b", "c"])],
    ids=["all", "no signals", "no cancel"],
)
async def test_what_came_in_since_comes_in_again(
    excluded: tuple[ResetReapplyExcludeType, ...], kept: list[str]
) -> None:
    async with running() as driver:
        first = await driver.start()
        await driver.signal(name="a")
        task = await driver.take()
        await driver.signal(name="b")
        await driver.engine.cancel_workflow(
            r.CancelWorkflowRequest(execution=WorkflowExecution(workflow_id="order-1"), reason="enough")
        )
        await driver.complete(task.task_token)
        await driver.take()
        await driver.signal(name="c")  # is in the buffer when the reset comes
        second = await driver.reset(5, run_id=first, reset_reapply_exclude_types=excluded)
        events = await checked(driver, second)
        assert signals(events) == kept
        assert ("WorkflowExecutionCancelRequested" in types(events)) == (CANCEL not in excluded)
        assert signals(await checked(driver, first)) == ["a", "b", "c"]


async def test_what_comes_in_while_the_prefix_is_written_is_not_lost() -> None:
    async with running() as driver:
        first = await two_steps(driver)

        async def meanwhile() -> None:
            driver.store.behind_prefix = None
            await driver.signal(name="numbered")
            await driver.take()
            await driver.signal(name="buffered")

        driver.store.behind_prefix = meanwhile
        second = await driver.reset()
        assert signals(await checked(driver, second)) == ["numbered", "buffered"]
        assert signals(await checked(driver, first)) == ["numbered", "buffered"]


async def test_a_reset_again_of_the_first_run_takes_each_message_once() -> None:
    """What was sent to the run that the first reset made is for the workflow as well."""
    async with running() as driver:
        first = await two_steps(driver)
        await driver.signal(name="one")
        second = await driver.reset(run_id=first)
        await driver.signal(name="two")
        third = await driver.reset(3, run_id=first)
        assert signals(await checked(driver, third)) == ["one", "two"]
        assert signals(await checked(driver, second)) == ["one", "two"]
        fourth = await driver.reset(3, run_id=second)
        assert signals(await checked(driver, fourth)) == ["one", "two"]
        described = await driver.describe()
        assert (described.info.execution.run_id, described.info.first_run_id) == (fourth, first)


async def test_strangers_messages_are_not_taken_and_their_run_is_ended_all_the_same() -> None:
    async with running() as driver:
        first = await two_steps(driver)
        await driver.signal(name="mine")
        other = await driver.start(workflow_id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING)
        await driver.signal(name="other's")
        second = await driver.reset(10, run_id=first)
        assert signals(await checked(driver, second)) == ["mine"]
        assert (await driver.describe(run_id=other)).info.status is WorkflowExecutionStatus.TERMINATED
        terminated = (await checked(driver, other))[-1].attributes
        assert isinstance(terminated, WorkflowExecutionTerminated) and terminated.new_execution_run_id == ""


async def test_a_closed_run_is_reset_to_its_first_task() -> None:
    async with running() as driver:
        first = await driver.start()
        await driver.finish(await driver.take())
        second = await driver.reset(0, run_id=first, reset_type=ResetType.FIRST_WORKFLOW_TASK)
        assert types(await checked(driver, first))[-1] == "WorkflowExecutionCompleted"
        assert types(await checked(driver, second))[2:] == [
            "WorkflowTaskStarted",
            "WorkflowTaskFailed",
            "WorkflowTaskScheduled",
        ]
        await driver.finish(await driver.take())


@pytest.mark.parametrize("again_in", ["at once", "behind a restart", "behind nine others"])
async def test_a_repeat_finds_the_first_ones_run(tmp_path: Path, again_in: str) -> None:
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        await two_steps(driver)
        second = await driver.reset(3, request_id="mine")
        if again_in == "behind nine others":
            for _ in range(9):
                await driver.reset(3)
        if again_in != "behind a restart":
            driver.store.reset()
            assert await driver.reset(3, request_id="mine") == second
            assert not driver.store.writes
            return
    async with running(path) as driver:
        assert await driver.reset(3, request_id="mine") == second
        assert (await driver.take()).execution.run_id == second


async def test_of_two_at_once_with_one_request_id_one_run_is_made() -> None:
    async with running() as driver:
        await two_steps(driver)
        made = await asyncio.gather(*(driver.reset(3, request_id="mine") for _ in range(5)))
        assert len(set(made)) == 1
        listed = await driver.engine.list_workflows(r.ListWorkflowsRequest())
        assert len(listed.executions) == 2


@pytest.mark.parametrize("fault", ["before the prefix", "before the switch", "answer lost"])
async def test_a_crash_leaves_the_old_run_or_the_new_one(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        first = await two_steps(driver)
        trouble = StoreUnavailable("gone")
        if fault == "before the prefix":
            driver.store.refuse_prefix.append(trouble)
        elif fault == "before the switch":
            driver.store.refuse_kinds.add("Reset")
        else:
            driver.store.lose_kinds.add("Reset")
        with pytest.raises(Unavailable):
            await driver.reset(3, request_id="mine")
    async with running(path) as driver:
        made = (await driver.describe()).info.execution.run_id
        assert (made == first) == (fault != "answer lost")
        second = await driver.reset(3, request_id="mine")
        assert (made == second) == (fault == "answer lost")
        await checked(driver, second)
        assert (await driver.take()).execution.run_id == second


async def test_a_restart_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        await driver.start()
        task = await driver.take()
        await driver.complete(task.task_token, activity("1", eager=False))
        await driver.signal()
        await driver.complete((await driver.take()).task_token)
        second = await driver.reset()
    async with running(path) as driver:
        events = await checked(driver, second)
        (charge,) = await driver.poll_activities()
        assert charge.input == payload("1")
        task = await driver.take()
        assert task.events[:1] == tuple(events[task.previous_started_event_id + 1 :])[:1]
        await driver.done(charge)
        await driver.finish(await driver.take() if (await driver.complete(task.task_token)) else task)
        await checked(driver, second)


@pytest.mark.parametrize(
    ("event_id", "words"),
    [(2, "is WorkflowTaskScheduled"), (5, "the last one before it is event 4"), (99, "is not in the history")],
)
async def test_what_is_no_point_is_refused_before_anything_is_written(event_id: int, words: str) -> None:
    async with running() as driver:
        await two_steps(driver)
        driver.store.reset()
        with pytest.raises(InvalidArgument, match=words):
            await driver.reset(event_id)
        assert not driver.store.writes


async def test_points_that_are_not_there() -> None:
    async with running() as driver:
        with pytest.raises(NotFound):
            await driver.reset(3)
        first = await driver.start()
        with pytest.raises(NotFound):
            await driver.reset(3, run_id="another")
        with pytest.raises(InvalidArgument, match="no workflow task that was started"):
            await driver.reset()
        with pytest.raises(InvalidArgument, match="build 'b7'"):
            await driver.reset(reset_type=ResetType.BUILD_ID, build_id="b7")
        with pytest.raises(InvalidArgument, match="first of its chain"):
            await driver.reset(reset_type=ResetType.LAST_CONTINUED_AS_NEW)
        assert (await driver.describe()).info.execution.run_id == first


async def test_messages_to_the_old_run_are_refused_and_to_the_id_reach_the_new_one() -> None:
    async with running() as driver:
        first = await two_steps(driver)
        second = await driver.reset()
        with pytest.raises((NotFound, WorkflowExecutionClosed)):
            await driver.signal(run_id=first)
        await driver.signal(name="new")
        task = await driver.take()
        assert task.execution.run_id == second and signals(task.events) == ["new"]
