"""Workflows that fail."""

import asyncio
from datetime import timedelta

from stepwell import workflow
from stepwell.common import RetryPolicy
from stepwell.exceptions import ApplicationError


@workflow.defn
async def fails_until(attempt: int) -> str:
    """Its result tells of the failure before."""
    if workflow.info().attempt < attempt:
        raise ApplicationError(f"attempt {workflow.info().attempt}", type="Declined")
    before = workflow.get_last_failure()
    return f"behind {before}" if before is not None else "at once"


@workflow.defn
async def never_ends() -> None:
    await asyncio.sleep(30)


@workflow.defn
class Parent:
    """Hears of its child's chain once, when it ends."""

    @workflow.run
    async def run(self, wait: timedelta) -> str:
        policy = RetryPolicy(initial_interval=wait, maximum_attempts=5)
        return await workflow.execute_child_workflow(
            fails_until, 3, id=f"{workflow.info().workflow_id}-child", retry_policy=policy
        )
