"""One worker process of the kill test: ``python -m tests.kill.worker URL``. It never ends by itself."""

import asyncio
import sys

from stepwell.client import Client, RPCError
from stepwell.worker import Worker

from tests.kill.workload import TASK_QUEUE, KillTestWorkflow, add, flaky


async def _connected(url: str) -> Client:
    """A server that is killed again and again may not answer for longer than a client waits."""
    while True:
        try:
            return await Client.connect(url)
        except RPCError as error:
            if not error.retryable:
                raise


async def main(url: str) -> None:
    client = await _connected(url)
    worker = Worker(client, task_queue=TASK_QUEUE, workflows=[KillTestWorkflow], activities=[add, flaky])
    await worker.run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
