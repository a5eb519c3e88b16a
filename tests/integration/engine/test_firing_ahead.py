"""Timers whose workflow task is handed out before their firing is written (``firing_ahead``)."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from stepwell.api.commands import CompleteWorkflowExecution, StartTimer
from stepwell.api.enums import WorkflowIDConflictPolicy
from stepwell.api.errors import Unavailable
from stepwell.api.requests import WorkflowTask

from stepwell_server.history import firing
from stepwell_server.history.ports import StoreUnavailable
from tests.support.engine import Driver, running, types

FIRED = ["TimerFired", "WorkflowTaskScheduled", "WorkflowTaskStarted"]
DONE = [*FIRED, "WorkflowTaskCompleted", "WorkflowExecutionCompleted"]


def timer(milliseconds: int = 60, timer_id: str = "1") -> StartTimer:
    return StartTimer(timer_id=timer_id, start_to_fire_timeout=timedelta(milliseconds=milliseconds))


async def sleeping(driver: Driver, *timers: StartTimer) -> None:
    await driver.start()
    task = await driver.take()
    await driver.complete(task.task_token, *(timers or (timer(),)))
    driver.store.reset()


async def until_written(driver: Driver, event_type: str) -> None:
    async with asyncio.timeout(30):
        while event_type not in types(await driver.history()):
            await asyncio.sleep(0.01)


async def test_what_the_worker_is_shown_is_in_the_history_once_it_answers() -> None:
    async with running() as driver:
        await sleeping(driver)
        task = await driver.take()
        assert types(task.events)[-3:] == FIRED
        assert "TimerFired" not in types(await driver.history())
        await driver.finish(task)
        history = await driver.history()
        assert types(history)[-5:] == DONE
        first = task.events[0].event_id
        assert list(task.events) == history[first - 1 : task.started_event_id]
        assert driver.store.writes == {"append": 1}


async def test_a_timer_behind_a_timer_costs_one_commit_and_its_arm() -> None:
    async with running() as driver:
        await sleeping(driver)
        for number in range(2, 5):
            task = await driver.take()
            await driver.complete(task.task_token, timer(60, str(number)))
        await driver.finish(await driver.take())
        assert driver.store.writes == {"append": 4, "arm": 3}
        assert types(await driver.history()).count("TimerFired") == 4


async def test_a_slow_worker_s_answer_counts_behind_the_firing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firing, "_WAIT_FOR_WORKER", 0.05)
    async with running() as driver:
        await sleeping(driver)
        task = await driver.take()
        await until_written(driver, "TimerFired")
        await driver.finish(task)
        assert types(await driver.history())[-5:] == DONE
        assert driver.store.writes == {"append": 2, "arm": 1}


async def test_a_signal_meanwhile_is_buffered_behind_the_firing() -> None:
    async with running() as driver:
        await sleeping(driver)
        task = await driver.take()
        await driver.signal()
        refused = await driver.complete(task.task_token, CompleteWorkflowExecution())
        assert refused.outcome == "UNSEEN_EVENTS"
        again = await driver.take()
        assert types(again.events)[-4:] == [*FIRED[:2], "WorkflowExecutionSignaled", FIRED[2]]
        await driver.finish(again)
        history = types(await driver.history())
        assert history.count("TimerFired") == history.count("WorkflowExecutionSignaled") == 1


async def test_an_answer_that_goes_on_takes_a_signal_meanwhile_along() -> None:
    async with running() as driver:
        await sleeping(driver)
        task = await driver.take()
        await driver.signal()
        accepted = await driver.complete(task.task_token, timer(60_000, "2"))
        assert accepted.outcome == "ACCEPTED", accepted.message
        await driver.finish(await driver.take())
        assert types(await driver.history()).count("TimerFired") == 1


async def test_termination_meanwhile_has_the_firing_and_its_close() -> None:
    async with running() as driver:
        await sleeping(driver)
        task = await driver.take()
        await driver.start(workflow_id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING)
        run_id = task.execution.run_id
        events = types(await driver.history(run_id=run_id))
        assert events[-3:] == ["TimerFired", "WorkflowTaskScheduled", "WorkflowExecutionTerminated"]
        refused = await driver.complete(task.task_token, CompleteWorkflowExecution())
        assert refused.outcome == "STALE"
        assert types(await driver.history())[:1] == ["WorkflowExecutionStarted"]


async def test_a_failed_task_is_recorded_with_the_firing_and_tried_again() -> None:
    async with running() as driver:
        await sleeping(driver)
        task = await driver.take()
        await driver.fail_task(task.task_token, "a bug")
        assert types(await driver.history())[-4:] == [*FIRED, "WorkflowTaskFailed"]
        await driver.finish(await driver.take())


async def test_a_repeated_answer_is_answered_the_same() -> None:
    async with running() as driver:
        await sleeping(driver)
        task = await driver.take()
        first = await driver.complete(task.task_token, timer(60_000, "2"), nonce="n")
        again = await driver.complete(task.task_token, timer(60_000, "2"), nonce="n")
        assert (first.outcome, first.started_event_id) == (again.outcome, again.started_event_id)
        other = await driver.complete(task.task_token, timer(60_000, "3"), nonce="other")
        assert other.outcome == "STALE"
        assert driver.store.writes["append"] == 1


async def test_after_a_restart_the_timer_fires_again_and_the_token_counts_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        await sleeping(driver)
        lost = await driver.take()
        assert types(lost.events)[-3:] == FIRED
    async with running(path) as driver:
        task = await driver.take()
        assert (await driver.complete(lost.task_token, CompleteWorkflowExecution())).outcome == "STALE"
        await driver.finish(task)
        assert types(await driver.history()).count("TimerFired") == 1


async def test_a_worker_that_is_gone_leaves_its_task_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(firing, "_WAIT_FOR_WORKER", 0.05)
    async with running() as driver:
        await driver.start(workflow_task_timeout=timedelta(seconds=1))
        await driver.complete((await driver.take()).task_token, timer())
        await driver.take()
        task = await driver.take(timedelta(seconds=5))
        assert types(task.events)[-3:] == FIRED
        await driver.finish(task)
        assert types(await driver.history()).count("TimerFired") == 1


async def test_without_a_worker_the_firing_is_written_at_once() -> None:
    async with running() as driver:
        await sleeping(driver, timer(600))
        await until_written(driver, "TimerFired")
        assert driver.store.writes["append"] == 1


@pytest.mark.parametrize("landed", [False, True], ids=["refused", "its answer is lost"])
async def test_a_store_that_fails_under_the_answer_loses_nothing(landed: bool) -> None:
    async with running() as driver:
        await sleeping(driver)
        task: WorkflowTask = await driver.take()
        if landed:
            driver.store.lose_answer.append(StoreUnavailable("the disk is gone"))
        else:
            driver.store.refuse.append(StoreUnavailable("the disk is gone"))
        with pytest.raises(Unavailable):
            await driver.complete(task.task_token, CompleteWorkflowExecution(), nonce="n")
        again = await driver.complete(task.task_token, CompleteWorkflowExecution(), nonce="n")
        assert again.outcome == ("ACCEPTED" if landed else "STALE")
        if not landed:
            await driver.finish(await driver.take())
        assert types(await driver.history())[-5:] == DONE


async def test_an_answer_to_a_firing_that_was_given_up_does_not_count_for_the_next() -> None:
    async with running() as driver:
        await sleeping(driver)
        first = await driver.take()
        driver.store.refuse.append(StoreUnavailable("the disk is full"))
        with pytest.raises(Unavailable):
            await driver.signal()
        second = await driver.take()
        assert second.events != first.events
        assert (await driver.complete(first.task_token, timer(60_000, "2"))).outcome == "STALE"
        await driver.finish(second)
