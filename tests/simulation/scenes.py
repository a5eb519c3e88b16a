"""Scenes of the embedded engine: in each, the one order of things in which a rule of the product counts."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from stepwell.api import requests as r
from stepwell.api.commands import StartTimer
from stepwell.api.common import WorkflowExecution

from stepwell_server.history.commit import ExecutionKey
from tests.simulation.faults import CALM
from tests.simulation.loop import Process
from tests.simulation.stage import Machine, Stage
from tests.simulation.violation import Violation
from tests.support.engine import activity

KEY = ExecutionKey("default", "order-1")
SECOND = timedelta(seconds=1)


async def two_polls_take_one_attempt_at_the_same_moment(stage: Stage) -> None:
    """Of one worker, which make equal items; its task was offered twice."""
    stage.faults.rates = replace(CALM, offer_repeated=1.0)
    engine = await stage.engine()
    driver = engine.driver
    task = await _first_task(engine)
    polls = [engine.begin(driver.poll_activities()) for _ in range(2)]
    await asyncio.sleep(1.0)
    with stage.holding(engine, "put_activity", "STARTED") as put:
        await engine.do(driver.complete(task.task_token, activity("1", eager=False)))
        await put.comes(times=2)
        put.arrive()
        taken = [attempt for poll in polls for attempt in await poll]
    if len(taken) > 1:
        raise Violation(f"attempt {taken[0].attempt} was given to two polls")


async def a_task_is_done_when_the_clock_is_back_before_a_timer_that_it_was_left(stage: Stage) -> None:
    """The timer was due while the task was outstanding, and left to it; it is not due when the task is done."""
    engine = await stage.engine()
    driver = engine.driver
    task = await _first_task(engine)
    await engine.do(driver.complete(task.task_token, StartTimer(timer_id="1", start_to_fire_timeout=5 * SECOND)))
    await engine.do(driver.signal())
    task = await engine.do(driver.take())
    await stage.until(lambda: _has_fired(stage), 10.0, "the timer's deadline was not fired")
    stage.jump(-4 * SECOND)
    await engine.do(driver.complete(task.task_token))
    await engine.do(driver.take(10 * SECOND))


async def the_clock_goes_back_between_a_deadline_and_its_firing(stage: Stage) -> None:
    """The firing waits for a signal's write; when that has landed, it is a minute before the deadline."""
    engine = await stage.engine()
    await engine.do(engine.driver.start(workflow_run_timeout=10 * SECOND))
    await asyncio.sleep(9.0)
    with stage.holding(engine, "append", "Signal") as write:
        signal = engine.begin(engine.driver.signal())
        await write.comes()
        await asyncio.sleep(2.0)
        stage.jump(-60 * SECOND)
        write.arrive()
        await signal
    await stage.ends("order-1", within=90.0)


async def the_clock_is_back_before_what_an_item_had_armed_and_has_fired(stage: Stage) -> None:
    """A heartbeat needs a deadline behind that one, and before all others."""
    engine = await stage.engine()
    driver = engine.driver
    task = await _first_task(engine)
    work = activity("1", eager=False, seconds=1_000.0, heartbeat_timeout=20 * SECOND)
    await engine.do(driver.complete(task.task_token, work))
    (attempt,) = await engine.do(driver.poll_activities())
    await asyncio.sleep(19.0)
    await engine.do(_heartbeat(engine, attempt))
    await asyncio.sleep(3.0)
    stage.jump(-17 * SECOND)
    await engine.do(_heartbeat(engine, attempt))


async def a_run_begins_before_what_the_closed_one_had_armed(stage: Stage) -> None:
    """That is struck off with the close."""
    engine = await stage.engine()
    await engine.do(engine.driver.start(workflow_run_timeout=10 * SECOND))
    await asyncio.sleep(1.0)
    terminate = r.TerminateWorkflowRequest(execution=WorkflowExecution(workflow_id="order-1"))
    await engine.do(engine.engine.terminate_workflow(terminate))
    await engine.do(engine.driver.start(workflow_run_timeout=20 * SECOND))
    await stage.ends("order-1", within=30.0)


async def a_poll_ends_at_the_moment_of_a_match(stage: Stage) -> None:
    """Its caller is gone, and what it left has not run since; another poll waits."""
    engine = await stage.engine()
    driver, caller = engine.driver, Process("caller")
    gone = caller.spawn(driver.take())
    await asyncio.sleep(1.0)
    other = engine.begin(driver.as_worker("other").take())
    await asyncio.sleep(1.0)
    caller.stand_still()
    gone.cancel()
    await engine.do(driver.start())
    caller.go_on()
    await stage.until(other.done, 5.0, "the workflow task came to nobody")


def _has_fired(stage: Stage) -> bool:
    return stage.model.heads[KEY].kind == "FireDeadline"


async def _first_task(engine: Machine) -> r.WorkflowTask:
    await engine.do(engine.driver.start())
    return await engine.do(engine.driver.take())


async def _heartbeat(engine: Machine, task: r.ActivityTask) -> None:
    await engine.engine.record_activity_heartbeat(r.RecordActivityHeartbeatRequest(task_token=task.task_token))
