"""What the engine tells of how it is doing: how long tasks wait, what disagrees with its history, what is stuck.
Nothing of it costs a write."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from stepwell.api.commands import CompleteWorkflowExecution
from stepwell.api.enums import WorkflowTaskFailedCause

from stepwell_server.common import metric_names as names
from stepwell_server.common.metrics import NO_METRICS, Gathered, Metrics
from stepwell_server.common.settings import ProcessKind
from stepwell_server.history.commit import ExecutionKey
from tests.support.engine import Driver, ShiftedClock, activity, payload, running

KEY = ExecutionKey("default", "order-1")


class Told:
    def __init__(self) -> None:
        self.metrics = Gathered()
        self.clock = ShiftedClock()

    def values(self) -> dict[str, tuple[float, ...]]:
        return {series.name: series.values for series in self.metrics.take()}

    def wait(self, seconds: float) -> None:
        self.clock.shift += timedelta(seconds=seconds)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
async def driver(told: Told) -> AsyncIterator[Driver]:
    """Deadlines fire when the test says so."""
    async with running(clock=told.clock, metrics=told.metrics, process=ProcessKind.ONE_OF_MANY, sweeps=False) as driver:
        yield driver


async def test_tasks_that_are_handed_out_tell_how_long_they_waited(driver: Driver, told: Told) -> None:
    await driver.start()
    told.wait(20)
    task = await driver.take()
    values = told.values()
    assert 20_000 <= values[names.SCHEDULE_TO_START][0] < 60_000 and 20 <= values[names.BACKLOG_AGE][0] < 60
    await driver.complete(task.task_token, activity("charge", eager=False), slots=0)
    told.wait(25)
    await driver.poll_activities()
    values = told.values()
    assert 25_000 <= values[names.SCHEDULE_TO_START][0] < 65_000 and 25 <= values[names.BACKLOG_AGE][0] < 65


async def test_without_a_worker_deadlines_tell_how_old_tasks_are(driver: Driver, told: Told) -> None:
    await driver.start()
    told.wait(600)
    await driver.engine.fire(KEY, told.clock.now())
    values = told.values()
    assert 600 <= values[names.BACKLOG_AGE][0] < 640 and names.SCHEDULE_TO_START not in values


async def test_activities_without_a_worker_count_too(driver: Driver, told: Told) -> None:
    await driver.start()
    task = await driver.take()
    await driver.complete(task.task_token, activity("charge", eager=False), slots=0)
    told.values()
    told.wait(700)
    await driver.engine.fire(KEY, told.clock.now())
    assert 700 <= told.values()[names.BACKLOG_AGE][0] < 740


async def test_a_task_that_disagrees_with_its_history_is_told_at_once(driver: Driver, told: Told) -> None:
    await driver.start()
    task = await driver.take()
    await driver.fail_task(task.task_token, "another timer", WorkflowTaskFailedCause.NON_DETERMINISTIC_ERROR)
    assert told.metrics.pressing
    assert told.values()[names.NON_DETERMINISM] == (1.0,)
    await driver.engine.fire(KEY, told.clock.now())
    assert names.NON_DETERMINISM not in told.values()


async def test_a_task_is_stuck_from_its_third_failure_in_a_row_on(driver: Driver, told: Told) -> None:
    await driver.start()
    stuck = []
    for attempt in range(1, 6):
        task = await driver.take()
        assert task.attempt == attempt
        await driver.fail_task(task.task_token, "raises")
        stuck.append(told.values().get(names.STUCK))
        told.wait(900)
        await driver.engine.fire(KEY, told.clock.now())
    assert stuck == [None, None, (1.0,), (1.0,), (1.0,)]
    await driver.finish(await driver.take())
    assert names.STUCK not in told.values()


@pytest.mark.parametrize("metrics", [NO_METRICS, Gathered()], ids=["no metrics", "metrics"])
async def test_nothing_that_is_told_costs_a_write(metrics: Metrics) -> None:
    async with running(metrics=metrics) as driver:
        await driver.start()
        task = await driver.take()
        await driver.fail_task(task.task_token, "why", WorkflowTaskFailedCause.NON_DETERMINISTIC_ERROR)
        task = await driver.take()
        await driver.complete(task.task_token, activity("charge", eager=False), slots=0)
        (attempt,) = await driver.poll_activities()
        await driver.done(attempt)
        task = await driver.take()
        await driver.complete(task.task_token, CompleteWorkflowExecution(result=payload("done")))
        assert driver.store.writes["append"] == 5 and driver.store.writes["put_activity"] == 2
