"""An order that charges, waits for messages, and draws numbers."""

import asyncio
from collections import Counter
from datetime import timedelta

from stepwell import activity, workflow
from stepwell.exceptions import ApplicationError

LONG = timedelta(seconds=30)
CHARGES: Counter[str] = Counter()
"""How often each order was charged, by workflow id."""


@activity.defn
async def charge(amount: int) -> int:
    CHARGES[activity.info().workflow_id] += 1
    return amount * 10


@workflow.defn
class Order:
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.ended = False

    @workflow.signal
    def note(self, text: str) -> None:
        self.notes.append(text)

    @workflow.signal
    def end(self) -> None:
        self.ended = True

    @workflow.query
    def seen(self) -> list[str]:
        return self.notes

    @workflow.run
    async def run(self, amount: int) -> list[str]:
        paid = await workflow.execute_activity(charge, amount, start_to_close_timeout=LONG)
        await workflow.wait_condition(lambda: len(self.notes) > 0)
        await workflow.sleep(0.01)
        paid += await workflow.execute_activity(charge, amount, start_to_close_timeout=LONG)
        try:
            await workflow.wait_condition(lambda: self.ended)
        except asyncio.CancelledError:
            return [*self.notes, "cancelled"]
        return [*self.notes, str(paid)]


@workflow.defn
class Dice:
    """Each throw is kept, those of sources of its own too."""

    def __init__(self) -> None:
        self.thrown: list[str] = []
        self.seeds: list[int] = []
        self.rolls = 0

    @workflow.signal
    def roll(self) -> None:
        self.rolls += 1

    @workflow.query
    def all_seeds(self) -> list[int]:
        return self.seeds

    @workflow.run
    async def run(self) -> list[str]:
        workflow.register_random_seed_callback(self.seeds.append)
        mine = workflow.new_random()
        for number in range(1, 3):
            await workflow.wait_condition(lambda number=number: self.rolls >= number)  # type: ignore[misc]
            self.thrown += [str(workflow.uuid4()), str(mine.random())]
        return self.thrown


@workflow.defn
async def second_time_lucky() -> int:
    """Fails in its first attempt; tells which attempt it is."""
    await workflow.sleep(0.01)
    if workflow.info().attempt == 1:
        raise ApplicationError("not yet")
    return workflow.info().attempt


@workflow.defn
async def turns() -> int:
    """Counts the turns of its schedule, and stays in the third."""
    done: int = workflow.get_last_completion_result(int) or 0
    await workflow.wait_condition(lambda: done < 2)
    return done + 1
