"""Workflows that live by signals."""

from stepwell import workflow

from tests.conformance.idle import Turns


@workflow.defn
class Basket:
    """Collects items until it is closed; all of its state is in its arguments."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.new: list[str] = []
        self.closed = False

    @workflow.signal
    def add(self, item: str) -> None:
        self.new.append(item)

    @workflow.signal
    def close(self) -> None:
        self.closed = True

    @workflow.run
    async def run(self, items: list[str]) -> list[str]:
        while True:
            await self.turns.until(lambda: bool(self.new) or self.closed, items)
            items += self.new
            self.new.clear()
            if self.closed:
                return items


@workflow.defn
async def takes_late() -> list[str]:
    """Asks for its signals after another wait."""
    await workflow.wait_for_signal("go")
    return [await workflow.wait_for_signal("item"), await workflow.wait_for_signal("item")]
