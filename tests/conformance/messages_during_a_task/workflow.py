"""A workflow that ends as soon as it may, with all the signals that it was shown."""

from stepwell import workflow


@workflow.defn
class Ends:
    def __init__(self) -> None:
        self.got: list[str] = []

    @workflow.signal
    def item(self, name: str) -> None:
        self.got.append(name)

    @workflow.run
    async def run(self, least: int) -> list[str]:
        await workflow.wait_condition(lambda: len(self.got) >= least)
        return self.got
