"""The message queues of a task queue, to be put into event source mappings; they are made when there are none yet.

``python -m lambda_worker.queues --address https://….execute-api.eu-west-1.amazonaws.com --task-queue trials``
"""

import argparse
import asyncio

from stepwell.api.operations import GET_TASK_SOURCES
from stepwell.api.requests import GetTaskSourcesRequest
from stepwell.client import Client

from .trial import TASK_QUEUE


async def addresses(client: Client, task_queue: str) -> list[str]:
    request = GetTaskSourcesRequest(namespace=client.namespace, task_queue=task_queue)
    found = await client.transport.call(GET_TASK_SOURCES, request)
    return [*found.workflow_queues, *found.activity_queues]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True, help="of the control plane (output Url of the stack)")
    parser.add_argument("--namespace", default="default")
    parser.add_argument("--task-queue", default=TASK_QUEUE)
    options = parser.parse_args()
    async with await Client.connect(options.address, namespace=options.namespace) as client:
        for address in await addresses(client, options.task_queue):
            print(address)


if __name__ == "__main__":
    asyncio.run(main())
