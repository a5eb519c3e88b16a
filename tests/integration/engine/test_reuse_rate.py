"""How soon a run of a workflow id may follow another (LC-06), where an installation sets that."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowIDConflictPolicy
from stepwell.api.errors import ResourceExhausted

from tests.support.engine import QUEUE, Driver, ShiftedClock, running

MINUTE = timedelta(minutes=1)
REPLACE = WorkflowIDConflictPolicy.TERMINATE_EXISTING
USE = WorkflowIDConflictPolicy.USE_EXISTING


async def signal_with_start(driver: Driver, **more: Any) -> str:
    request = r.SignalWithStartWorkflowRequest(
        workflow_id="order-1", workflow_type="order", task_queue=QUEUE, signal_name="ship", **more
    )
    return (await driver.engine.signal_with_start_workflow(request)).run_id


async def test_starts_too_soon_are_refused_with_the_time_to_wait() -> None:
    clock = ShiftedClock()
    async with running(clock=clock, minimum_between_runs=MINUTE) as driver:
        first = await driver.start(request_id="one")
        with pytest.raises(ResourceExhausted, match=r"less than 60 s ago.*call again in a moment") as refused:
            await driver.start(workflow_id_conflict_policy=REPLACE)
        details = refused.value.details
        assert (details["cause"], details["scope"]) == ("BUSY_WORKFLOW", "WORKFLOW")
        assert 0 < float(details["retry_after"]) <= 60
        assert await driver.start(workflow_id_conflict_policy=USE) == first
        assert await driver.start(request_id="one") == first
        assert await signal_with_start(driver) == first
        await driver.finish(await driver.take())
        with pytest.raises(ResourceExhausted):
            await driver.start()
        with pytest.raises(ResourceExhausted):
            await signal_with_start(driver)
        await driver.start("order-2")
        clock.shift = MINUTE
        second = await driver.start()
        with pytest.raises(ResourceExhausted):
            await driver.start(workflow_id_conflict_policy=REPLACE)
        execution = WorkflowExecution(workflow_id="order-1")
        await driver.engine.delete_workflow(r.DeleteWorkflowRequest(execution=execution))
        assert await driver.start() not in (first, second)  # a deleted run is no run


async def test_by_default_nothing_is_refused() -> None:
    async with running() as driver:
        first = await driver.start()
        assert await driver.start(workflow_id_conflict_policy=REPLACE) != first


async def test_a_rate_of_runs_of_one_id_over_restarts(tmp_path: Path) -> None:
    clock, file = ShiftedClock(), tmp_path / "rate.db"
    async with running(file, clock=clock, id_starts_per_second=0.01) as driver:
        first = await driver.start(request_id="one")
        assert await driver.start(request_id="one") == first
        assert await driver.start(workflow_id_conflict_policy=USE) == first  # begins nothing, and does not count
        await driver.finish(await driver.take())
    async with running(file, clock=clock, id_starts_per_second=0.01) as driver:
        with pytest.raises(ResourceExhausted, match=r"more often than 0.01 times a second.*another workflow_id"):
            await driver.start()
        with pytest.raises(ResourceExhausted):
            await signal_with_start(driver)
        await driver.start("order-2")
        clock.shift = timedelta(seconds=100)
        await driver.start()
        with pytest.raises(ResourceExhausted):
            await driver.start(workflow_id_conflict_policy=REPLACE)
