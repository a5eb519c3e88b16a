"""What schedules start."""

from datetime import datetime

from stepwell import workflow
from stepwell.common import SearchAttributeKey
from stepwell.exceptions import ApplicationError

STARTED_FOR = SearchAttributeKey.for_datetime("StepwellScheduledStartTime")


@workflow.defn
async def adds_up(step: int) -> int:
    """More than the last run that completed."""
    last: int = workflow.get_last_completion_result(int) or 0
    return last + step


@workflow.defn
async def says_when() -> datetime:
    return workflow.search_attributes()[STARTED_FOR]


@workflow.defn
async def fails() -> None:
    raise ApplicationError("no paper")


@workflow.defn
class Waits:
    def __init__(self) -> None:
        self._released = False

    @workflow.signal
    def release(self) -> None:
        self._released = True

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: self._released)
