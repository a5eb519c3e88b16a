"""A workflow that batches reach."""

from stepwell import workflow


@workflow.defn
class Parcel:
    def __init__(self) -> None:
        self.stamps: list[str] = []
        self.sent = False

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.wait_condition(lambda: self.sent)
        return self.stamps

    @workflow.signal
    def stamp(self, text: str) -> None:
        self.stamps.append(text)

    @workflow.signal
    def send(self) -> None:
        self.sent = True
