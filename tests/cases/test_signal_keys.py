"""Signals with a key of the sender's own, as a client sends them (MS-16)."""

import asyncio

import pytest
from stepwell import workflow

from tests.support.cases import EVERYWHERE, IN_PROCESS, Case

pytestmark = pytest.mark.parametrize("setting", [IN_PROCESS[0], EVERYWHERE[2]], ids=str, indirect=True)


@workflow.defn
class Collecting:
    def __init__(self) -> None:
        self.got: list[str] = []

    @workflow.signal
    def add(self, what: str) -> None:
        self.got.append(what)

    @workflow.run
    async def run(self, count: int) -> list[str]:
        await workflow.wait_condition(lambda: len(self.got) >= count)
        return self.got


async def test_a_signal_with_a_key_counts_once(case: Case) -> None:
    """Tried: one signal sent five times at once with one key, then again behind others, to the run, then after its end.

    Right: it is there once; the repeat after the end succeeds; the next run of the id does not get it either.
    """
    handle = await case.start(Collecting.run, 101, id="basket")
    await asyncio.gather(*(handle.signal(Collecting.add, "keyed", idempotency_key="one") for _ in range(5)))
    async with case.worker([Collecting]):
        for number in range(99):
            await handle.signal(Collecting.add, str(number))
        await handle.signal(Collecting.add, "keyed", idempotency_key="one")
        await handle.signal(Collecting.add, "other", idempotency_key="two")
        got = await handle.result()
        assert (got.count("keyed"), got.count("other"), len(got)) == (1, 1, 101)
        await handle.signal(Collecting.add, "keyed", idempotency_key="one")
        again = await case.start(Collecting.run, 1, id="basket")
        await again.signal(Collecting.add, "keyed", idempotency_key="one")
        await again.signal(Collecting.add, "new", idempotency_key="three")
        assert await again.result() == ["new"]
