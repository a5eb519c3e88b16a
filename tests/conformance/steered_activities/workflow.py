"""An activity that fails as long as it is told to, and a workflow that waits for it."""

from datetime import timedelta

from stepwell import activity, workflow
from stepwell.common import RetryPolicy
from stepwell.exceptions import ApplicationError

BROKEN: set[str] = set()
"""Ids of the workflows whose activities fail."""


@activity.defn
async def charge() -> int:
    info = activity.info()
    if info.workflow_id in BROKEN:
        raise ApplicationError("payments are down", type="Down")
    return info.attempt


@workflow.defn
async def order(first_wait: float, attempts: int) -> int:
    policy = RetryPolicy(
        initial_interval=timedelta(seconds=first_wait), backoff_coefficient=1.0, maximum_attempts=attempts
    )
    return await workflow.execute_activity(charge, start_to_close_timeout=timedelta(seconds=30), retry_policy=policy)
