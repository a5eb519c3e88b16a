"""A session worker as a process of its own: ``session_worker.py ADDRESS NAME``."""

import asyncio
import sys
from datetime import timedelta

from stepwell import activity, workflow
from stepwell.client import Client
from stepwell.exceptions import SessionFailedError
from stepwell.worker import Worker

QUEUE = "sessions-killed"


class Machine:
    def __init__(self, name: str) -> None:
        self.name = name
        self.files: set[str] = set()

    @activity.defn
    async def fetch(self) -> str:
        self.files.add("file")
        print(f"{self.name} has the file", flush=True)  # noqa: T201 # the test waits for it
        return self.name

    @activity.defn
    async def convert(self) -> str:
        assert self.files == {"file"}
        if self.name == "first":
            await asyncio.sleep(600)
        return self.name


@workflow.defn
class Convert:
    @workflow.run
    async def run(self) -> list[str]:
        said: list[str] = []
        while True:
            try:
                async with workflow.session(heartbeat_timeout=timedelta(seconds=2)) as session:
                    for step in (Machine.fetch, Machine.convert):
                        said.append(
                            await workflow.execute_activity_method(
                                step, task_queue=session.task_queue, start_to_close_timeout=timedelta(minutes=10)
                            )
                        )
                    return said
            except SessionFailedError:
                said.append("broke")


async def main(address: str, name: str) -> None:
    machine = Machine(name)
    async with await Client.connect(address) as client:
        async with Worker(
            client, task_queue=QUEUE, activities=[machine.fetch, machine.convert], max_concurrent_sessions=1
        ):
            print("ready", flush=True)  # noqa: T201 # the test waits for it
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
