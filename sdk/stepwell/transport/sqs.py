"""Message queues of AWS (SQS), with the usual credential chain. Needs ``stepwell[aws]``."""

import asyncio
import contextlib
import math
from collections.abc import Sequence
from typing import Any

from .aws_troubles import NOT_INSTALLED, of_library, of_queue
from .queue_fed import Received

_NOT_INSTALLED = f"the tasks of this engine wait in SQS, and {NOT_INSTALLED}"
_LONGEST_WAIT = 20.0
"""Of one receive call; the limit of SQS."""

_BATCH = 10


class SqsQueues:
    """Implements :class:`~stepwell.transport.queue_fed.MessageQueues`. Made inside a running event loop; one client
    for each region, which a queue's address tells."""

    def __init__(self) -> None:
        self._clients: dict[str, Any] = {}
        self._stack = contextlib.AsyncExitStack()
        self._making = asyncio.Lock()

    async def receive(self, queue: str, maximum: int, wait: float, hold: int) -> Sequence[Received]:
        response = await self._call(
            queue,
            "receive_message",
            MaxNumberOfMessages=min(maximum, _BATCH),
            WaitTimeSeconds=max(0, math.floor(min(wait, _LONGEST_WAIT))),
            VisibilityTimeout=hold,
        )
        return [Received(message["Body"], message["ReceiptHandle"]) for message in response.get("Messages", ())]

    async def delete(self, queue: str, handles: Sequence[str]) -> None:
        for first in range(0, len(handles), _BATCH):
            batch = handles[first : first + _BATCH]
            entries = [{"Id": str(index), "ReceiptHandle": handle} for index, handle in enumerate(batch)]
            await self._call(queue, "delete_message_batch", Entries=entries)

    async def close(self) -> None:
        await self._stack.aclose()

    async def _call(self, queue: str, method: str, **arguments: Any) -> Any:
        try:
            from botocore.exceptions import BotoCoreError, ClientError
        except ImportError as error:
            raise RuntimeError(_NOT_INSTALLED) from error
        try:
            client = await self._client(_region(queue))
            return await getattr(client, method)(QueueUrl=queue, **arguments)
        except ClientError as error:
            said = error.response.get("Error", {})
            raise of_queue(said.get("Code", ""), said.get("Message", ""), queue) from error
        except (BotoCoreError, OSError, TimeoutError) as error:
            raise of_library(error, f"no answer from the task queue {queue}") from error

    async def _client(self, region: str | None) -> Any:
        async with self._making:
            client = self._clients.get(region or "")
            if client is None:
                try:
                    import aioboto3
                except ImportError as error:
                    raise RuntimeError(_NOT_INSTALLED) from error
                made = aioboto3.Session().client("sqs", region_name=region)
                client = self._clients[region or ""] = await self._stack.enter_async_context(made)
            return client


def _region(queue: str) -> str | None:
    """``https://sqs.eu-west-1.amazonaws.com/…``; None where the address does not tell, as with emulators."""
    parts = queue.split("/")[2].split(".") if queue.count("/") > 2 else []
    return parts[1] if len(parts) > 3 and parts[0] == "sqs" else None
