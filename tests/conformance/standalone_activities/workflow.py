"""Activities that are started without a workflow."""

import asyncio

from stepwell import activity
from stepwell.exceptions import ApplicationError

HANDED_OUT: "asyncio.Queue[activity.Info]" = asyncio.Queue()


@activity.defn
async def greet(name: str) -> str:
    return f"Hello, {name}"


@activity.defn
async def fails_until(attempt: int) -> int:
    if activity.info().attempt < attempt:
        raise ApplicationError("not yet", type="NotYet")
    return activity.info().attempt


@activity.defn
async def works_on() -> None:
    """Until it is told to stop."""
    HANDED_OUT.put_nowait(activity.info())
    while True:
        activity.heartbeat("at it")
        await asyncio.sleep(0.02)


@activity.defn
async def ask_a_person() -> str:
    HANDED_OUT.put_nowait(activity.info())
    activity.raise_complete_async()


@activity.defn
async def says_who_it_is() -> list[str]:
    info = activity.info()
    return [info.activity_id, info.activity_run_id, info.workflow_id, info.workflow_type, info.namespace]
