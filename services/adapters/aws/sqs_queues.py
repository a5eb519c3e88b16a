"""Task queues on SQS: one standard queue for each task queue, kind and partition, made when first used (design 8).

Names are hashes, since SQS allows few characters; tags say what a queue is for. Messages are kept for 14 days, which
deadlines outlast. A queue that somebody deleted is made again.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from math import ceil
from typing import Any, NamedTuple

import msgspec
from stepwell.api.enums import TaskQueueKind

from ...history.ports import StoreUnavailable
from ...matching.partition_turns import PartitionTurns
from ...matching.ports import (
    LONGEST_DELAY,
    LONGEST_LEASE,
    LONGEST_WAIT,
    QueueRefused,
    QueuesUnavailable,
    Received,
)
from ...matching.queue_name import QueueName
from .asked_once import AskedOnce
from .client import ServiceClient
from .faults import AwsRefused
from .names import MAX_TAG, MIN_VISIBILITY, NOT_IN_TAGS, TAG_NAMESPACE, Names, TaskKind, namespace_tag
from .sqs_outbox import MESSAGES_PER_REQUEST, Message, Outbox

log = logging.getLogger(__name__)

RETENTION_SECONDS = 14 * 24 * 3600

_DATA_KEY_SECONDS = 3_600
"""For which SQS uses a data key again before it asks KMS, which costs."""

_KINDS: Mapping[TaskQueueKind, TaskKind] = {TaskQueueKind.WORKFLOW: "wft", TaskQueueKind.ACTIVITY: "act"}
_MISSING = frozenset(
    {
        "AWS.SimpleQueueService.NonExistentQueue",
        "AWS.SimpleQueueService.QueueDoesNotExist",
        "QueueDoesNotExist",
        "NonExistentQueue",
    }
)
_PASSING = frozenset({"OverLimit", "AWS.SimpleQueueService.QueueDeletedRecently", "QueueDeletedRecently"})
_EXISTS = frozenset({"QueueAlreadyExists", "QueueNameExists", "AWS.SimpleQueueService.QueueNameExists"})
_LEASE_OVER = frozenset(
    {
        "AWS.SimpleQueueService.MessageNotInflight",
        "InvalidParameterValue",
        "MessageNotInflight",
        "ReceiptHandleIsInvalid",
    }
)
_MAX_SHOWN = 200_000


class Partitions(NamedTuple):
    """Over how many queues the messages of a task queue are spread; more are received while a number that was larger
    is still remembered. ``visibility``: seconds until a message comes again that a function did not do."""

    sent: int = 1
    received: int = 1
    visibility: int = MIN_VISIBILITY


PartitionsOf = Callable[[QueueName], Awaitable[Partitions]]


async def one_partition(queue: QueueName) -> Partitions:
    return Partitions()


class SqsQueues:
    """Implements ``matching.ports.TaskQueues`` on the event loop that ``sqs`` belongs to. ``kms_key``: a customer's
    own, else SQS's."""

    def __init__(
        self, sqs: ServiceClient, names: Names, *, partitions: PartitionsOf = one_partition, kms_key: str = ""
    ) -> None:
        self._sqs = sqs
        self._names = names
        self._partitions_of = partitions
        self._kms_key = kms_key
        self._urls: dict[str, str] = {}
        self._finding = AskedOnce[str, str]()
        self._outboxes: dict[tuple[QueueName, int], Outbox] = {}
        self._turns = PartitionTurns(random.randrange(1_000))

    # --- ports ---

    async def send(self, queue: QueueName, body: str, delay_seconds: float = 0.0, fairness_key: str = "") -> None:
        partition = self._turns.to_send(queue, (await self._partitions_of(queue)).sent)
        place = (queue, partition)
        if place not in self._outboxes:
            self._outboxes[place] = Outbox(lambda entries: self._send(queue, partition, entries))
        delay = min(max(ceil(delay_seconds), 0), LONGEST_DELAY)
        await self._outboxes[place].send(Message(body, delay, _group(fairness_key)))

    async def receive(self, queue: QueueName, maximum: int, wait_seconds: int, lease_seconds: int) -> list[Received]:
        count = (await self._partitions_of(queue)).received
        with self._turns.looking(queue, count) as partition:
            answer = await self._on_queue(
                queue,
                partition,
                "receive_message",
                MaxNumberOfMessages=min(max(maximum, 1), MESSAGES_PER_REQUEST),
                WaitTimeSeconds=min(wait_seconds, LONGEST_WAIT),
                VisibilityTimeout=min(lease_seconds, LONGEST_LEASE),
                MessageSystemAttributeNames=["ApproximateReceiveCount"],
            )
        return [_received(queue, partition, message) for message in answer.get("Messages", ())]

    async def extend(self, received: Sequence[Received], seconds: int) -> None:
        timeout = min(seconds, LONGEST_LEASE)
        await self._change(received, "change_message_visibility_batch", {"VisibilityTimeout": timeout})

    async def settle(self, received: Sequence[Received]) -> None:
        await self._change(received, "delete_message_batch", {})

    async def set_aside(self, received: Sequence[Received], reason: str) -> None:
        """To the queue of what could not be handled; where that is missing or closed to us they are only deleted, since
        they would come back for ever."""
        for one in received:
            try:
                url = await self._found(self._names.failure_queue)
                await self._call("send_message", QueueUrl=url, MessageBody=_aside(one, reason))
            except QueueRefused as error:
                self._urls.pop(self._names.failure_queue, None)
                log.error("Message %s is deleted without having been kept (%s)", one.message_id, error)
        await self.settle(received)

    async def partitions(self, queue: QueueName) -> int:
        return (await self._partitions_of(queue)).received

    async def pending(self, queue: QueueName) -> int:
        counts = await asyncio.gather(
            *(self._pending(queue, partition) for partition in range(await self.partitions(queue)))
        )
        return sum(counts)

    async def addresses(self, queue: QueueName) -> list[str]:
        """URLs of the queue's partitions, for workers that receive from them themselves."""
        count = await self.partitions(queue)
        return list(await asyncio.gather(*(self._url(queue, partition) for partition in range(count))))

    async def apply_visibility(self, queue: QueueName) -> list[str]:
        """To the queues that are there, which are made if they are not: their names."""
        settings = await self._partitions_of(queue)
        for partition in range(settings.received):
            attributes = {"VisibilityTimeout": str(settings.visibility)}
            await self._on_queue(queue, partition, "set_queue_attributes", Attributes=attributes)
        return [self._name(queue, partition) for partition in range(settings.received)]

    # --- requests ---

    async def _send(self, queue: QueueName, partition: int, entries: list[dict[str, Any]]) -> Mapping[str, Any]:
        return await self._on_queue(queue, partition, "send_message_batch", Entries=entries)

    async def _on_queue(self, queue: QueueName, partition: int, operation: str, **parameters: Any) -> dict[str, Any]:
        """Makes the queue when it is not there, or no more."""
        for _ in range(2):
            url = await self._url(queue, partition)
            try:
                return await self._call(operation, QueueUrl=url, **parameters)
            except _Missing:
                self._urls.pop(self._name(queue, partition), None)
        raise QueuesUnavailable(f"the SQS queue of {queue.task_queue!r} is being made or deleted; try again later")

    async def _change(self, received: Iterable[Received], operation: str, change: Mapping[str, Any]) -> None:
        """Of what cannot be changed since its lease is over, or the queue is gone, nothing becomes."""
        failed = ""
        for url, batch in self._batches(received):
            entries = [{"Id": str(n), "ReceiptHandle": handle, **change} for n, handle in enumerate(batch)]
            try:
                answer = await self._call(operation, QueueUrl=url, Entries=entries)
            except _Missing:
                continue
            for entry in answer.get("Failed", ()):
                if entry.get("Code") not in _LEASE_OVER:
                    failed = f"{entry.get('Code')}: {entry.get('Message', '')}"
        if failed:
            raise QueuesUnavailable(f"SQS did not do {operation} for all messages ({failed})")

    def _batches(self, received: Iterable[Received]) -> Iterator[tuple[str, list[str]]]:
        by_url: dict[str, list[str]] = {}
        for one in received:
            partition, handle = one.receipt.split(" ", 1)
            url = self._urls.get(self._name(one.queue, int(partition)))
            if url is not None:  # else the queue was found to be gone since
                by_url.setdefault(url, []).append(handle)
        for url, handles in by_url.items():
            for first in range(0, len(handles), MESSAGES_PER_REQUEST):
                yield url, handles[first : first + MESSAGES_PER_REQUEST]

    async def _pending(self, queue: QueueName, partition: int) -> int:
        try:
            url = await self._found(self._name(queue, partition))
            names = ["ApproximateNumberOfMessages"]
            answer = await self._call("get_queue_attributes", QueueUrl=url, AttributeNames=names)
        except _Missing:
            return 0
        return int(answer.get("Attributes", {}).get("ApproximateNumberOfMessages", 0))

    async def _call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Raises QueueError."""
        try:
            return await self._sqs.call(operation, **parameters)
        except StoreUnavailable as error:
            raise QueuesUnavailable(str(error)) from error
        except AwsRefused as error:
            if error.code in _MISSING:
                raise _Missing(str(error)) from error
            if error.code in _PASSING:
                raise QueuesUnavailable(str(error)) from error
            raise QueueRefused(str(error)) from error

    # --- queues ---

    def _name(self, queue: QueueName, partition: int) -> str:
        return self._names.task_queue(queue.namespace, queue.task_queue, _KINDS[queue.kind], partition)

    async def _url(self, queue: QueueName, partition: int) -> str:
        name = self._name(queue, partition)
        url = self._urls.get(name)
        if url is not None:
            return url
        return await self._finding.ask(name, lambda: self._find_or_make(name, queue, partition))

    async def _find_or_make(self, name: str, queue: QueueName, partition: int) -> str:
        try:
            return await self._found(name)
        except _Missing:
            pass
        attributes = self._attributes((await self._partitions_of(queue)).visibility)
        try:
            answer = await self._sqs.call(
                "create_queue", QueueName=name, Attributes=attributes, tags=self._tags(queue, partition)
            )
        except AwsRefused as error:
            if error.code in _EXISTS:  # made meanwhile by somebody with other settings: it serves as well
                return await self._found(name)
            if error.code in _PASSING:
                raise QueuesUnavailable(str(error)) from error
            raise QueueRefused(str(error)) from error
        except StoreUnavailable as error:
            raise QueuesUnavailable(str(error)) from error
        self._urls[name] = answer["QueueUrl"]
        return self._urls[name]

    async def _found(self, name: str) -> str:
        """Raises _Missing."""
        if name not in self._urls:
            self._urls[name] = (await self._call("get_queue_url", QueueName=name))["QueueUrl"]
        return self._urls[name]

    def _attributes(self, visibility: int) -> dict[str, str]:
        attributes = {
            "MessageRetentionPeriod": str(RETENTION_SECONDS),
            "VisibilityTimeout": str(visibility),
        }
        if self._kms_key:
            return {
                **attributes,
                "KmsMasterKeyId": self._kms_key,
                "KmsDataKeyReusePeriodSeconds": str(_DATA_KEY_SECONDS),
            }
        return {**attributes, "SqsManagedSseEnabled": "true"}

    def _tags(self, queue: QueueName, partition: int) -> dict[str, str]:
        return {
            "stepwell:cell": self._names.cell,
            TAG_NAMESPACE: namespace_tag(queue.namespace),
            "stepwell:task-queue": NOT_IN_TAGS.sub("_", queue.task_queue)[:MAX_TAG],
            "stepwell:kind": queue.kind.value,
            "stepwell:partition": str(partition),
        }


class _Missing(QueueRefused):
    """There is no such queue."""


def _received(queue: QueueName, partition: int, message: Mapping[str, Any]) -> Received:
    return Received(
        queue,
        message["Body"],
        message["MessageId"],
        f"{partition} {message['ReceiptHandle']}",
        int(message.get("Attributes", {}).get("ApproximateReceiveCount", 1)),
    )


def _aside(received: Received, reason: str) -> str:
    name = received.queue
    told = {
        "namespace": name.namespace,
        "taskQueue": name.task_queue,
        "kind": name.kind.value,
        "messageId": received.message_id,
        "reason": reason,
        "body": received.body[:_MAX_SHOWN],
    }
    return msgspec.json.encode(told).decode()


def _group(fairness_key: str) -> str:
    """SQS allows 128 of few characters."""
    return blake2b(fairness_key.encode(), digest_size=16).hexdigest() if fairness_key else ""
