"""A workflow whose activity is finished by somebody else: the function hands out its token and returns."""

import asyncio
from datetime import timedelta

from stepwell import activity, workflow
from stepwell.common import RetryPolicy

HANDED_OUT: "asyncio.Queue[activity.Info]" = asyncio.Queue()


@activity.defn
async def ask_a_person(question: str) -> str:
    HANDED_OUT.put_nowait(activity.info())
    activity.raise_complete_async()


@workflow.defn
async def approval(question: str) -> str:
    return await workflow.execute_activity(
        ask_a_person,
        question,
        start_to_close_timeout=timedelta(seconds=30),
        retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=10)),
        cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    )
