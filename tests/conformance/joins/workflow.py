"""Several things at once, joined by the tools of asyncio."""

import asyncio
from datetime import timedelta

from stepwell import activity, workflow
from stepwell.exceptions import ActivityError, ApplicationError

LIMIT = timedelta(seconds=30)
ELSEWHERE = "a queue without a worker"


@activity.defn
async def fails() -> None:
    raise ApplicationError("as told", non_retryable=True)


@activity.defn
async def never() -> None: ...


@workflow.defn
async def too_slow() -> str:
    """An activity that nobody takes, and a limit of the workflow's own."""
    try:
        async with asyncio.timeout(0.05):
            await workflow.execute_activity(never, task_queue=ELSEWHERE, start_to_close_timeout=LIMIT)
    except TimeoutError:
        return "too slow"
    return "in time"


@workflow.defn
async def one_fails() -> str:
    """A failure in a group takes the others with it."""
    failures = 0
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(workflow.sleep(3600))
            group.create_task(_call(never))
            group.create_task(_call(fails))
    except* ActivityError as failed:
        failures = len(failed.exceptions)
    return f"{failures} failed"


async def _call(function: object) -> None:
    queue = ELSEWHERE if function is never else None
    await workflow.execute_activity(function, task_queue=queue, start_to_close_timeout=LIMIT)  # type: ignore[call-overload]


@workflow.defn
async def first_come() -> list[str]:
    """In the order in which they end, and of two that end together in the order in which they were given."""

    async def one(name: str) -> str:
        await workflow.wait_for_signal(name)
        return name

    tasks = [asyncio.create_task(one(name)) for name in ("c", "a", "b")]
    return [await task for task in workflow.as_completed(tasks)]
