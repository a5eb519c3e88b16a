"""The delay queue of the timers on SQS: messages that become visible when their deadline is due."""

import asyncio
from collections.abc import Sequence
from typing import Any

from ...history.ports import StoreUnavailable
from ...timer_sweeper.messages import encode
from ...timer_sweeper.ports import Delayed
from .client import ServiceClient
from .faults import AwsRefused

_BATCH = 10
_BATCHES_AT_ONCE = 8
_ATTEMPTS = 3
_NO_QUEUE = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
_GONE = (
    "ReceiptHandleIsInvalid",
    "InvalidParameterValue",
    "AWS.SimpleQueueService.MessageNotInflight",
    "MessageNotInflight",
)


class SqsDelayQueue:
    """DelayQueue on SQS. Finds its queue by name, with the first call, and again when that queue is gone."""

    def __init__(self, sqs: ServiceClient, name: str) -> None:
        self._sqs = sqs
        self._name = name
        self._url = ""

    async def send(self, delayed: Sequence[Delayed]) -> None:
        batches = [delayed[first : first + _BATCH] for first in range(0, len(delayed), _BATCH)]
        for first in range(0, len(batches), _BATCHES_AT_ONCE):
            await asyncio.gather(*(self._send(batch) for batch in batches[first : first + _BATCHES_AT_ONCE]))

    async def postpone(self, receipt: str, seconds: int) -> None:
        try:
            await self._call("change_message_visibility", ReceiptHandle=receipt, VisibilityTimeout=seconds)
        except AwsRefused as refused:
            if refused.code not in _GONE:
                raise
            # It is visible again, or somebody else has it: either way it comes again.

    async def _send(self, batch: Sequence[Delayed]) -> None:
        left = [
            {"Id": str(number), "MessageBody": encode(row), "DelaySeconds": seconds}
            for number, (row, seconds) in enumerate(batch)
        ]
        failed: list[dict[str, Any]] = []
        for _ in range(_ATTEMPTS):
            answer = await self._call("send_message_batch", Entries=left)
            failed = answer.get("Failed", [])
            if not failed:
                return
            ids = {entry["Id"] for entry in failed}
            left = [entry for entry in left if entry["Id"] in ids]
        first = failed[0]
        why = f"{first.get('Code', '')}: {first.get('Message', '')}"
        if first.get("SenderFault"):
            raise AwsRefused("sqs", "send_message_batch", self._name, str(first.get("Code", "")), why)
        raise StoreUnavailable(f"queue {self._name} did not take {len(left)} deadlines ({why}); retry later")

    async def _call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        known = bool(self._url)
        try:
            return await self._sqs.call(operation, QueueUrl=await self._find(), **parameters)
        except AwsRefused as refused:
            if not known or refused.code not in _NO_QUEUE:
                raise
            self._url = ""  # made anew, perhaps elsewhere
        return await self._sqs.call(operation, QueueUrl=await self._find(), **parameters)

    async def _find(self) -> str:
        if not self._url:
            self._url = (await self._sqs.call("get_queue_url", QueueName=self._name))["QueueUrl"]
        return self._url
