"""Waits for time: one workflow per way to wait."""

import asyncio
from datetime import timedelta

from stepwell import workflow


@workflow.defn
async def sleeps(seconds: float) -> str:
    before = workflow.now()
    await workflow.sleep(seconds)
    return "on time" if workflow.now() - before >= timedelta(seconds=seconds) else "early"


@workflow.defn
async def wakes_in_order(seconds: list[float]) -> list[float]:
    """Several timers at once, started in another order than they end in."""
    woken: list[float] = []

    async def one(duration: float) -> None:
        await asyncio.sleep(duration)
        woken.append(duration)

    await asyncio.gather(*(one(duration) for duration in seconds))
    return woken


@workflow.defn
async def takes_back() -> str:
    """A long timer that a signal makes superfluous."""
    waiting = asyncio.create_task(workflow.sleep(3600))
    await workflow.wait_for_signal("enough")
    waiting.cancel()
    await asyncio.wait_for(workflow.wait_for_signal("end"), 30)
    return "ended"


@workflow.defn
class Waits:
    """A condition with a limit of its own."""

    def __init__(self) -> None:
        self.ready = False

    @workflow.signal
    def be_ready(self) -> None:
        self.ready = True

    @workflow.run
    async def run(self, seconds: float) -> str:
        try:
            await workflow.wait_condition(lambda: self.ready, timeout=seconds)
        except asyncio.TimeoutError:  # noqa: UP041 # the name that users of the field know
            return "timed out"
        return "ready"
