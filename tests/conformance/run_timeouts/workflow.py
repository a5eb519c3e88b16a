"""A workflow that outlives every limit."""

from stepwell import workflow


@workflow.defn
async def waits() -> None:
    await workflow.sleep(3600)
