"""An activity that heartbeats, and dies silently in its first attempt."""

import asyncio
from datetime import timedelta
from typing import Any

from stepwell import activity, workflow
from stepwell.common import RetryPolicy
from stepwell.exceptions import ApplicationError

FIRST_WAIT = timedelta(milliseconds=10)


@activity.defn
async def falls_silent() -> list[Any]:
    info = activity.info()
    if info.attempt == 1:
        activity.heartbeat("page", 7)
        await asyncio.sleep(60)
    return [info.attempt, *info.heartbeat_details]


@activity.defn
async def fails_between_heartbeats() -> list[Any]:
    """The last heartbeat is not due yet when the attempt ends."""
    info = activity.info()
    if info.attempt == 1:
        for page in range(1, 6):
            activity.heartbeat(page)
        raise ApplicationError("try again")
    return [info.attempt, *info.heartbeat_details]


@activity.defn
async def keeps_beating(seconds: float) -> int:
    ends = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < ends:
        activity.heartbeat()
        await asyncio.sleep(0.01)
    return activity.info().attempt


ACTIVITIES = (falls_silent, fails_between_heartbeats, keeps_beating)


@workflow.defn
async def calls(name: str, args: list[float], heartbeat: float, attempts: int) -> Any:
    return await workflow.execute_activity(
        name,
        args=args,
        start_to_close_timeout=timedelta(seconds=30),
        heartbeat_timeout=timedelta(seconds=heartbeat),
        retry_policy=RetryPolicy(initial_interval=FIRST_WAIT, maximum_attempts=attempts),
    )
