"""Many calls at once; some fail, some wait until they are cancelled."""

import asyncio
from datetime import timedelta
from typing import Any

from stepwell import activity, workflow
from stepwell.exceptions import ApplicationError

ATTEMPT = timedelta(seconds=30)


@activity.defn
async def work(kind: str) -> str:
    if kind == "fails":
        raise ApplicationError("broken", type="Broken", non_retryable=True)
    while kind == "waits":
        activity.heartbeat()
        await asyncio.sleep(0.01)
    return kind


ACTIVITIES = (work,)


@workflow.defn
async def spread(kinds: list[str], rule: dict[str, Any]) -> list[str]:
    """How each call ended, in the order of the calls."""
    calls = [
        workflow.execute_activity(work, kind, start_to_close_timeout=ATTEMPT, heartbeat_timeout=ATTEMPT)
        for kind in kinds
    ]
    try:
        result = await workflow.fan_out(calls, **rule)
    except workflow.FanOutError as error:
        result = error.result
    return [item.status.name if item.result is None else item.result for item in result.items]
