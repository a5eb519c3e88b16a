"""A workflow that says what it was started with."""

from typing import Any

from stepwell import workflow


@workflow.defn
class Says:
    """Its constructor takes the run's arguments: its state is there before the first signal."""

    @workflow.init
    def __init__(self, greeting: str, count: int = 1) -> None:
        self.said = [greeting] * count

    @workflow.signal
    def also(self, word: str) -> None:
        self.said.append(word)

    @workflow.run
    async def run(self, greeting: str, count: int = 1) -> list[Any]:
        await workflow.wait_condition(lambda: "end" in self.said)
        info = workflow.info()
        return [*self.said, info.workflow_type, info.attempt]
