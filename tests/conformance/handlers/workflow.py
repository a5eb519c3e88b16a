"""Async handlers beside the main function, and handlers that are set while it runs."""

import asyncio

from stepwell import workflow


@workflow.defn
class Till:
    """One handler per customer; a lock keeps them apart."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.log: list[str] = []
        self.closing = False

    @workflow.signal
    async def serve(self, name: str) -> None:
        async with self.lock:
            self.log.append(f"{name} comes")
            await workflow.sleep(0.02)
            self.log.append(f"{name} goes")

    @workflow.signal
    def close(self) -> None:
        self.closing = True

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.wait_condition(lambda: self.closing and workflow.all_handlers_finished())
        return self.log


@workflow.defn
async def sets_a_handler_late() -> list[str]:
    got: list[str] = []
    await workflow.wait_for_signal("go")
    workflow.set_signal_handler("item", got.append)
    await workflow.wait_condition(lambda: len(got) >= 2)
    return got
