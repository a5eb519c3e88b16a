"""A workflow that is paused from outside: it sees nothing of it but the time."""

from datetime import timedelta

from stepwell import activity, workflow


@activity.defn
async def step(name: str) -> str:
    return name


@workflow.defn
class Collects:
    def __init__(self) -> None:
        self.names: list[str] = []

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.wait_condition(lambda: len(self.names) >= 2)
        last = await workflow.execute_activity(step, "last", start_to_close_timeout=timedelta(seconds=20))
        return [*self.names, last]

    @workflow.signal
    def add(self, name: str) -> None:
        self.names.append(name)

    @workflow.query
    def seen(self) -> int:
        return len(self.names)
