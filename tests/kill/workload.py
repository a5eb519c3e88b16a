"""The workflow of the kill test: a sequence, a fan-out, a retried failure, a timer, signals, with one right result."""

import asyncio
from datetime import timedelta
from typing import Any

from stepwell import activity, workflow
from stepwell.common import RetryPolicy
from stepwell.exceptions import ApplicationError

TASK_QUEUE = "kill-test"
SIGNALS = 2
FAN_OUT = 3

_RETRIES = RetryPolicy(initial_interval=timedelta(milliseconds=100), maximum_interval=timedelta(seconds=1))


@activity.defn(name="add")
async def add(number: int, amount: int) -> int:
    await asyncio.sleep(0.01)
    return number + amount


@activity.defn(name="flaky")
async def flaky(number: int) -> int:
    """Fails at first, as real services do."""
    if activity.info().attempt == 1:
        raise ApplicationError(f"{number} is not available yet")
    return number * 2


@workflow.defn(name="kill-test")
class KillTestWorkflow:
    def __init__(self) -> None:
        self.received: list[str] = []

    @workflow.signal
    def note(self, signal_id: str) -> None:
        self.received.append(signal_id)

    @workflow.query
    def notes(self) -> list[str]:
        return self.received

    @workflow.run
    async def run(self, number: int) -> dict[str, Any]:
        for amount in (1, 2, 3):
            number = await self._step("add", number, amount)
        number = await self._step("flaky", number)
        await workflow.sleep(0.3)
        parts = await asyncio.gather(*(self._step("add", number, amount) for amount in range(FAN_OUT)))
        await workflow.wait_condition(lambda: len(self.received) >= SIGNALS)
        return {"total": sum(parts), "signals": self.received}

    async def _step(self, name: str, *arguments: int) -> int:
        result: int = await workflow.execute_activity(
            name,
            args=list(arguments),
            start_to_close_timeout=timedelta(seconds=5),
            retry_policy=_RETRIES,
            result_type=int,
        )
        return result


def expected_total(number: int) -> int:
    after = (number + 6) * 2
    return sum(after + amount for amount in range(FAN_OUT))
