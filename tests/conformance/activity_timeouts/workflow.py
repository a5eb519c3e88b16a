"""An activity that hangs, and a workflow that calls it with the timeouts it is given."""

import asyncio
from datetime import timedelta

from stepwell import activity, workflow
from stepwell.common import RetryPolicy
from stepwell.exceptions import ApplicationError

FIRST_WAIT = 0.01
NOBODY = "a queue without a worker"


@activity.defn
async def hangs(attempts: int) -> int:
    """In its first attempts."""
    attempt = activity.info().attempt
    if attempt <= attempts:
        await asyncio.sleep(60)
    return attempt


@activity.defn
async def fails() -> None:
    raise ApplicationError("card 42", type="Declined")


@workflow.defn
async def calls(name: str, args: list[int], seconds: dict[str, float], attempts: int, queue: str | None) -> int:
    timeouts = {f"{which}_timeout": timedelta(seconds=length) for which, length in seconds.items()}
    policy = RetryPolicy(initial_interval=timedelta(seconds=FIRST_WAIT), maximum_attempts=attempts)
    result: int = await workflow.execute_activity(name, args=args, retry_policy=policy, task_queue=queue, **timeouts)  # type: ignore[arg-type]
    return result
