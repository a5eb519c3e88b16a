"""A worker for tests of the server and the command line: ``python echo_worker.py ADDRESS``."""

import asyncio
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from stepwell import activity, workflow
from stepwell.client import Client
from stepwell.common import RetryPolicy
from stepwell.exceptions import ApplicationError
from stepwell.worker import Worker

QUEUE = "echo"


@activity.defn
async def needs_file(name: str) -> str:
    """Fails until the file is there."""
    if not Path(name).exists():
        raise ApplicationError(f"{name} is missing", type="Missing")
    return "found"


@workflow.defn
class Chain:
    @workflow.run
    async def run(self, left: int) -> int:
        if left > 1:
            workflow.continue_as_new(left - 1)
        return workflow.info().attempt


@workflow.defn
class Echo:
    """Returns its arguments; with ``wait`` first, all signals until ``done``."""

    def __init__(self) -> None:
        self.signals: list[Any] = []
        self.done = False

    @workflow.run
    async def run(self, *arguments: Any) -> Any:
        if arguments[:1] == ("wait",):
            await workflow.wait_condition(lambda: self.done)
            return self.signals
        return list(arguments)

    @workflow.signal
    def add(self, *arguments: Any) -> None:
        self.signals.append(list(arguments))

    @workflow.signal
    def finish(self) -> None:
        self.done = True

    @workflow.query
    def ask(self, *arguments: Any) -> Any:
        return list(arguments)

    @workflow.update
    async def change(self, *arguments: Any) -> Any:
        if arguments[:1] == ("wait",):
            await workflow.wait_condition(lambda: self.done)
        return list(arguments)

    @change.validator
    def check_change(self, *arguments: Any) -> None:
        if arguments[:1] == ("no",):
            raise ApplicationError("not this", type="Refused")


@workflow.defn
class Sleeper:
    @workflow.run
    async def run(self, seconds: float) -> str:
        await workflow.sleep(seconds)
        return "awake"


@workflow.defn
class Family:
    """A parent of so many sleepers."""

    @workflow.run
    async def run(self, count: int) -> list[str]:
        own = workflow.info().workflow_id
        children = [
            workflow.execute_child_workflow(Sleeper.run, 0.1, id=f"{own}-{number}") for number in range(1, count + 1)
        ]
        return list(await asyncio.gather(*children))


@workflow.defn
class Needy:
    @workflow.run
    async def run(self, name: str, attempts: int) -> str:
        return await workflow.execute_activity(
            needs_file,
            name,
            start_to_close_timeout=timedelta(seconds=10),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(milliseconds=200), backoff_coefficient=1.0, maximum_attempts=attempts
            ),
        )


@workflow.defn
class Waits:
    """For so many activities of a queue that nobody polls; returns what they were completed with."""

    @workflow.run
    async def run(self, count: int) -> Any:
        calls = [
            workflow.execute_activity("by_hand", task_queue="nobody", start_to_close_timeout=timedelta(minutes=5))
            for _ in range(count)
        ]
        return await asyncio.gather(*calls)


@workflow.defn
class Broken:
    @workflow.run
    async def run(self) -> None:
        raise RuntimeError("this code is wrong")


async def main(address: str) -> None:
    client = await Client.connect(address)
    worker = Worker(
        client,
        task_queue=QUEUE,
        workflows=[Echo, Sleeper, Family, Needy, Waits, Broken, Chain],
        activities=[needs_file],
    )
    async with worker:
        sys.stdout.write("worker is ready\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
