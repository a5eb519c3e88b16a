"""Runs are found by activities that fail again and again (VI-19)."""

from datetime import timedelta

from stepwell.api import requests as r
from stepwell.api.common import RetryPolicy

from tests.support.crossing import until
from tests.support.engine import Driver, activity, failure, running

QUICKLY = RetryPolicy(initial_interval=timedelta(milliseconds=20), backoff_coefficient=1.0)


async def found(driver: Driver, query: str) -> list[str]:
    listed = await driver.engine.list_workflows(r.ListWorkflowsRequest(query=query))
    return [info.execution.workflow_id for info in listed.executions]


async def test_a_run_is_found_by_an_activity_that_fails_again_and_again() -> None:
    """And no more when it recovers."""
    async with running() as driver:
        await driver.start()
        await driver.complete((await driver.take()).task_token, activity("1", eager=False, retry_policy=QUICKLY))
        for _ in range(5):
            (attempt,) = await driver.poll_activities()
            await driver.report(r.ActivityFailed(task_token=attempt.task_token, failure=failure("no")))

        async def is_found() -> bool:
            return await found(driver, "StepwellFailingActivity = 'charge'") == ["order-1"]

        await until(is_found)
        assert await found(driver, "StepwellFailureCause = 'Trouble'") == ["order-1"]
        (attempt,) = await driver.poll_activities()
        await driver.done(attempt)

        async def is_well() -> bool:
            return await found(driver, "StepwellFailingActivity IS NOT NULL") == []

        await until(is_well)
