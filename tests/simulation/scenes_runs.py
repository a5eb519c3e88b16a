"""Scenes of workers that are late, and of runs that others follow; as those of ``scenes``."""

from dataclasses import replace
from datetime import timedelta

from stepwell.api.commands import FailWorkflowExecution, StartTimer
from stepwell.api.common import RetryPolicy
from stepwell.api.enums import CompletionOutcome, WorkflowExecutionStatus, WorkflowIDConflictPolicy
from stepwell.api.requests import ActivityCompleted

from stepwell_server.history.commit import ExecutionKey
from tests.simulation.stage import Stage
from tests.simulation.violation import Violation
from tests.support.engine import activity, failure

KEY = ExecutionKey("default", "order-1")
SECOND = timedelta(seconds=1)


async def a_worker_answers_a_task_that_another_has_done(stage: Stage) -> None:
    """It was given the task before, and has taken too long; by now the other one has the next task."""
    engine = await stage.engine()
    slow, quick = engine.driver, engine.driver.as_worker("quick")
    await engine.do(slow.start(workflow_task_timeout=SECOND))
    late = await engine.do(slow.take())
    task = await engine.do(quick.take())
    await engine.do(quick.complete(task.task_token, _timer("quick")))
    await engine.do(quick.signal())
    await engine.do(quick.take())
    answer = await engine.do(slow.complete(late.task_token, _timer("late")))
    if answer.outcome is not CompletionOutcome.STALE:
        raise Violation(f"the completion of a task that another worker has done is {answer.outcome}")


async def a_result_is_reported_again_when_the_workflow_was_not_told(stage: Stage) -> None:
    """Who took it at first died before that. Only deadlines would make up for it."""
    stage.scenario = replace(stage.scenario, engines=2)
    one, other = await stage.engine(), await stage.engine()
    driver = one.driver
    await one.do(driver.start())
    task = await one.do(driver.take())
    await one.do(driver.complete(task.task_token, activity("1", eager=False)))
    (attempt,) = await one.do(driver.poll_activities())
    done = ActivityCompleted(task_token=attempt.task_token)
    with stage.holding(one, "append") as wake_up:
        one.begin(driver.report(done))
        await wake_up.comes()
        one.die()
    await other.do(other.driver.report(done))
    await stage.until(
        lambda: stage.model.heads[KEY].state.workflow_task is not None, 5.0, "the workflow was not told of a result"
    )


async def a_run_is_asked_for_that_another_follows(stage: Stage) -> None:
    """One commit has ended it and begun the next."""
    engine = await stage.engine()
    driver = engine.driver
    first = await engine.do(driver.start())
    over = WorkflowIDConflictPolicy.TERMINATE_EXISTING
    await engine.do(driver.start(workflow_id_conflict_policy=over))
    shown = (await engine.do(driver.describe(run_id=first))).info
    if shown.status is not WorkflowExecutionStatus.TERMINATED:
        raise Violation(f"a run that has ended and is followed by another is shown as {shown.status}")


async def a_workflow_fails_as_often_as_it_may(stage: Stage) -> None:
    engine = await stage.engine()
    driver = engine.driver
    policy = RetryPolicy(initial_interval=SECOND, maximum_attempts=2)
    await engine.do(driver.start(retry_policy=policy))
    for _ in range(2):
        task = await engine.do(driver.take())
        await engine.do(driver.complete(task.task_token, FailWorkflowExecution(failure=failure("no"))))
    await stage.ends("order-1", within=10.0)


def _timer(timer_id: str) -> StartTimer:
    return StartTimer(timer_id=timer_id, start_to_fire_timeout=timedelta(days=1))
