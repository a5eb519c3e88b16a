"""A workflow that is run again and again."""

from stepwell import workflow
from stepwell.exceptions import ApplicationError


@workflow.defn
async def counts() -> int:
    """One more than the last run that completed; the second fails."""
    last: int = workflow.get_last_completion_result(int) or 0
    assert workflow.has_last_completion_result() is (last > 0)
    if last == 1 and workflow.get_last_failure() is None:
        raise ApplicationError("not today")
    return last + 1
