"""Workflows that fail."""

import asyncio

from stepwell import workflow
from stepwell.exceptions import ApplicationError


@workflow.defn
async def fails_until(attempt: int) -> str:
    """Its result tells of the failure before."""
    if workflow.info().attempt < attempt:
        raise ApplicationError(f"attempt {workflow.info().attempt}", type="Declined")
    before = workflow.get_last_failure()
    return f"behind {before}" if before is not None else "at once"


@workflow.defn
async def never_ends() -> None:
    await asyncio.sleep(30)
