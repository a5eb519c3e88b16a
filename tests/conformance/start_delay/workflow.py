"""A workflow whose start is delayed."""

import asyncio

from stepwell import workflow


@workflow.defn
class Delayed:
    def __init__(self) -> None:
        self.got: list[str] = []

    @workflow.signal
    def put(self, item: str) -> None:
        self.got.append(item)

    @workflow.run
    async def run(self) -> list[str]:
        await asyncio.sleep(0)  # where a cancel request is raised
        return self.got

    @workflow.update
    def give(self, item: str) -> int:
        self.got.append(item)
        return len(self.got)

    @workflow.query
    def count(self) -> int:
        return len(self.got)
