"""A workflow that ends in its first task, if only somebody answers that."""

from stepwell import workflow


@workflow.defn
async def ends() -> str:
    return f"ended at attempt {workflow.info().attempt} of the run"
