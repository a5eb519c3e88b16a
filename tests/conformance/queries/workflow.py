"""A workflow that is asked while it runs and when it has ended."""

from datetime import timedelta

from stepwell import activity, workflow
from stepwell.exceptions import ApplicationError


@activity.defn
async def step() -> None: ...


@workflow.defn
class Counter:
    def __init__(self) -> None:
        self.count = 0
        self.ended = False

    @workflow.signal
    def add(self, number: int) -> None:
        self.count += number

    @workflow.signal
    def end(self) -> None:
        self.ended = True

    @workflow.query
    def current(self) -> int:
        return self.count

    @workflow.query
    def fails(self) -> int:
        raise ApplicationError("no answer", type="Shy")

    @workflow.query
    def writes(self) -> int:
        workflow.start_activity(step, start_to_close_timeout=timedelta(seconds=30))
        return 1

    @workflow.run
    async def run(self, fails: bool = False) -> int:
        await workflow.wait_condition(lambda: self.ended)
        if fails:
            raise ApplicationError("as told")
        return self.count
