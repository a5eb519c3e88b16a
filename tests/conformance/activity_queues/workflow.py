"""An activity on a task queue of its own."""

from datetime import timedelta

from stepwell import activity, workflow


@activity.defn
async def where() -> str:
    return activity.info().task_queue


@workflow.defn
async def calls(queue: str | None) -> str:
    return await workflow.execute_activity(where, task_queue=queue, start_to_close_timeout=timedelta(seconds=30))
