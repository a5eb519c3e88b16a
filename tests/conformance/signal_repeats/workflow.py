"""A workflow that counts what it is sent."""

from stepwell import workflow

from tests.conformance.idle import Turns


@workflow.defn
class Account:
    """Its balance is its argument: it may continue as new between any two messages."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.new: list[int] = []
        self.ended = False

    @workflow.signal
    def pay(self, amount: int) -> None:
        self.new.append(amount)

    @workflow.signal
    def end(self) -> None:
        self.ended = True

    @workflow.run
    async def run(self, balance: int) -> int:
        while True:
            await self.turns.until(lambda: bool(self.new) or self.ended, balance)
            balance += sum(self.new)
            self.new.clear()
            if self.ended:
                return balance
