"""An activity that may answer a cancellation, and a workflow that cancels it by each cancellation type."""

import asyncio
from datetime import timedelta
from typing import Any

from stepwell import activity, workflow
from stepwell.workflow import ActivityCancellationType


@activity.defn
async def until_cancelled(answer: str) -> str:
    """Hears of a cancellation by its heartbeats only, whatever the worker knows."""
    try:
        while True:
            activity.heartbeat()
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        if answer == "cancelled":
            raise
        return answer


@activity.defn
async def deaf(seconds: float) -> str:
    """Never heartbeats."""
    await asyncio.sleep(seconds)
    return "done"


@workflow.defn
async def cancels(name: str, args: list[Any], kind: str, queue: str | None) -> str:
    """Cancels by signal, says what it got, then waits for another signal."""
    handle = workflow.start_activity(
        name,
        args=args,
        task_queue=queue,
        start_to_close_timeout=timedelta(seconds=30),
        heartbeat_timeout=None if name == "deaf" else timedelta(seconds=5),
        cancellation_type=ActivityCancellationType[kind],
    )
    await workflow.wait_for_signal("cancel")
    handle.cancel()
    try:
        got = str(await handle)
    except asyncio.CancelledError:
        got = "cancelled"
    await workflow.wait_for_signal("end")
    return got
