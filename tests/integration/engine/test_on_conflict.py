"""LC-04: starts that meet an open run, and have it remember them."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import CompleteWorkflowExecution
from stepwell.api.enums import WorkflowIDConflictPolicy, WorkflowUpdateStage
from stepwell.api.errors import Unavailable
from stepwell.api.events import WorkflowExecutionOptionsUpdated

from stepwell_server.history.recent_signals import REPEATED_FOR
from tests.integration.engine.test_resets import checked
from tests.integration.engine.test_with_start import answers
from tests.support.engine import QUEUE, Driver, ShiftedClock, payload, running, types

MEETS: dict[str, Any] = {
    "workflow_id": "order-1",
    "workflow_type": "order",
    "task_queue": QUEUE,
    "workflow_id_conflict_policy": WorkflowIDConflictPolicy.USE_EXISTING,
    "on_conflict_options": r.OnConflictOptions(attach_request_id=True),
}
Answer = tuple[str, bool, str]


async def meet(driver: Driver, request_id: str) -> Answer:
    done = await driver.engine.start_workflow(r.StartWorkflowRequest(request_id=request_id, **MEETS))
    return done.run_id, done.started, done.first_execution_run_id


async def meet_with_signal(driver: Driver, request_id: str) -> Answer:
    asked = r.SignalWithStartWorkflowRequest(
        request_id=request_id, signal_name="ship", signal_input=payload(request_id), **MEETS
    )
    done = await driver.engine.signal_with_start_workflow(asked)
    return done.run_id, done.started, done.first_execution_run_id


async def meet_with_update(driver: Driver, request_id: str, update_id: str = "u") -> Answer:
    asked = r.UpdateWithStartWorkflowRequest(
        request_id=request_id,
        update_id=update_id,
        update_name="add",
        wait_for_stage=WorkflowUpdateStage.ADMITTED,
        timeout=timedelta(seconds=5),
        **MEETS,
    )
    done = await driver.engine.update_with_start_workflow(asked)
    return done.run_id, done.started, done.first_execution_run_id


def attached(events: list[Any]) -> list[str]:
    return [
        event.attributes.attached_request_id
        for event in events
        if isinstance(event.attributes, WorkflowExecutionOptionsUpdated)
    ]


async def idle(driver: Driver) -> str:
    run_id = await driver.start()
    await driver.complete((await driver.take()).task_token)
    return run_id


async def close(driver: Driver) -> None:
    await driver.signal(name="end")
    await driver.finish(await driver.take())


async def test_it_costs_one_write_and_wakes_no_worker() -> None:
    async with running() as driver:
        run_id = await idle(driver)
        driver.store.reset()
        assert await meet(driver, "one") == (run_id, False, run_id)
        assert driver.store.writes == {"append": 1}
        assert await driver.poll_workflow(timedelta(milliseconds=50)) is None
        assert await meet(driver, "one") == (run_id, False, run_id)
        assert driver.store.writes == {"append": 1}
        assert attached(await driver.history()) == ["one"]


async def test_a_task_that_is_out_is_completed_and_its_close_goes_through() -> None:
    async with running() as driver:
        run_id = await driver.start()
        task = await driver.take()
        await meet(driver, "one")
        assert attached(await driver.history()) == []
        await driver.finish(task)
        assert types(await driver.history())[-3:] == [
            "WorkflowTaskCompleted",
            "WorkflowExecutionOptionsUpdated",
            "WorkflowExecutionCompleted",
        ]
        assert await meet(driver, "one") == (run_id, False, run_id)


async def test_a_repeat_behind_the_close_begins_nothing_also_after_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path / "lc04.db") as driver:
        first = await idle(driver)
        answer = await meet(driver, "one")
        await close(driver)
        second = await driver.start()
    async with running(tmp_path / "lc04.db") as driver:
        assert await meet(driver, "one") == answer == (first, False, first)
        assert (await driver.describe()).info.execution.run_id == second


@pytest.mark.parametrize("closed", [False, True])
async def test_what_the_ring_has_lost_is_found_for_as_long_as_a_call_is_repeated(closed: bool) -> None:
    clock = ShiftedClock()
    async with running(clock=clock) as driver:
        await idle(driver)
        answers = {f"r{number}": await meet(driver, f"r{number}") for number in range(100)}
        if closed:
            await close(driver)
        length = len(await driver.history())
        for request_id in ("r0", "r1", "r50", "r99"):
            assert await meet(driver, request_id) == answers[request_id]
        assert len(await driver.history()) == length
        clock.shift = REPEATED_FOR + timedelta(seconds=1)
        driver.store.reset()
        again = await meet(driver, "r0")
        assert (again[1], driver.store.counts["get"]) == (closed, 0)


async def test_starts_that_the_ring_has_lost_are_found_as_well() -> None:
    async with running() as driver:
        made = []
        for number in range(20):
            made.append(await driver.start(request_id=f"s{number}"))
            await driver.finish(await driver.take())
        answer = await driver.engine.start_workflow(
            r.StartWorkflowRequest(workflow_id="order-1", workflow_type="order", task_queue=QUEUE, request_id="s0")
        )
        assert (answer.run_id, answer.started, answer.first_execution_run_id) == (made[0], True, made[0])


async def test_a_lost_answer_is_asked_for_again() -> None:
    async with running() as driver:
        run_id = await idle(driver)
        driver.store.lose_kinds = {"Start"}
        with pytest.raises(Unavailable, match="is lost"):
            await meet(driver, "one")
        assert await meet(driver, "one") == (run_id, False, run_id)
        assert attached(await driver.history()) == ["one"]


async def test_with_a_signal() -> None:
    async with running() as driver:
        run_id = await idle(driver)
        answers = await asyncio.gather(*(meet_with_signal(driver, f"s{number}") for number in range(30)))
        assert set(answers) == {(run_id, False, run_id)}
        await driver.complete((await driver.take()).task_token)
        assert sorted(attached(await driver.history())) == sorted(f"s{number}" for number in range(30))
        assert await meet_with_signal(driver, "s0") == answers[0]
        await close(driver)
        await driver.start()
        assert await meet_with_signal(driver, "s1") == answers[0]


async def test_with_an_update() -> None:
    async with running() as driver:
        run_id = await idle(driver)
        there = (run_id, False, run_id)
        assert await meet_with_update(driver, "one") == there
        assert attached(await driver.history()) == []  # the update's task is out
        assert await meet_with_update(driver, "one") == there
        assert await meet_with_update(driver, "two") == there  # the same update, asked for by another start
        task = await driver.take()
        await driver.complete(task.task_token, *answers())
        assert attached(await driver.history()) == ["one", "two"]
        await close(driver)
        await driver.start()
        assert await meet_with_update(driver, "one") == there


async def test_a_reset_takes_it_over_and_repeats_name_the_run_that_they_met() -> None:
    async with running() as driver:
        first = await idle(driver)
        await meet(driver, "one")
        second = await driver.reset(3, run_id=first)
        assert attached(await checked(driver, second)) == ["one"]
        task = await driver.take()
        await meet(driver, "two")
        third = await driver.reset(3, run_id=first)
        assert attached(await checked(driver, third)) == ["one", "two"]
        assert await meet(driver, "one") == (first, False, first)
        assert await meet(driver, "two") == (second, False, first)
        stale = await driver.complete(task.task_token, CompleteWorkflowExecution())
        assert stale.outcome == "STALE"
