"""Workflows that are updated."""

from stepwell import workflow
from stepwell.exceptions import ApplicationError

from tests.conformance.idle import Turns


@workflow.defn
class Ledger:
    """Books amounts until it is closed; all of its state is in its arguments."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.new: list[int] = []
        self.total = 0
        self.closed = False

    @workflow.run
    async def run(self, total: int) -> int:
        self.total = total
        while True:
            await self.turns.until(lambda: bool(self.new) or self.closed, self.total)
            self.total += sum(self.new)
            self.new.clear()
            if self.closed:
                await workflow.wait_condition(workflow.all_handlers_finished)
                return self.total + sum(self.new)

    @workflow.update
    def book(self, amount: int) -> str:
        self.new.append(amount)
        return f"booked {amount}"

    @book.validator
    def check_book(self, amount: int) -> None:
        if amount == 0:
            raise ApplicationError("nothing to book", type="Nothing")

    @workflow.update
    async def book_later(self, amount: int, seconds: float) -> str:
        await workflow.sleep(seconds)
        self.new.append(amount)
        return f"booked {amount} later"

    @workflow.update
    async def refuse(self) -> None:
        raise ApplicationError("not today", type="Closed")

    @workflow.signal
    def close(self) -> None:
        self.closed = True
