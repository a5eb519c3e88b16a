"""SQS in memory: leases, delays, long polls; messages that come twice, in another order, late, or never."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from stepwell_server.adapters.aws.faults import fault_of
from stepwell_server.common.clock import Clock
from tests.simulation.faults import Faults

_RETENTION_SECONDS = 14 * 86_400.0
_LONGEST_DELAY = 900
_LONGEST_LEASE = 43_200
_MOST = 10


@dataclass
class _Message:
    message_id: str
    body: str
    visible_at: float
    ends: float
    count: int = 0
    receipt: str = ""


@dataclass
class _Queue:
    messages: dict[str, _Message] = field(default_factory=dict)
    waiting: list["asyncio.Future[None]"] = field(default_factory=list)

    def wake(self) -> None:
        for waiter in self.waiting:
            if not waiter.done():
                waiter.set_result(None)
        self.waiting.clear()


class EmulatedSqs:
    """``drops_first``: what is sent to a task queue for the first time is lost, always."""

    def __init__(self, clock: Clock, random: Random, faults: Faults) -> None:
        self._clock = clock
        self._random = random
        self._faults = faults
        self._queues: dict[str, _Queue] = {}
        self._numbers = 0
        self.drops_first = False
        self._sent: set[str] = set()

    def create(self, *names: str) -> None:
        for name in names:
            self._queues.setdefault(name, _Queue())

    def delete(self, name: str) -> None:
        self._queues.pop(name, None)

    @property
    def names(self) -> list[str]:
        return list(self._queues)

    def sizes(self) -> dict[str, int]:
        return {name: len(queue.messages) for name, queue in self._queues.items()}

    async def call(self, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Raises what a client of ours does for one try."""
        answer = getattr(self, f"_{operation}")(**parameters)
        return await answer if asyncio.iscoroutine(answer) else answer

    # --- queues ---

    def _get_queue_url(self, QueueName: str) -> dict[str, Any]:
        self._queue(QueueName)
        return {"QueueUrl": _url(QueueName)}

    def _create_queue(self, QueueName: str, Attributes: Any = None, tags: Any = None) -> dict[str, Any]:
        self.create(QueueName)
        return {"QueueUrl": _url(QueueName)}

    def _get_queue_attributes(self, QueueUrl: str, AttributeNames: Sequence[str]) -> dict[str, Any]:
        now = self._clock.monotonic()
        visible = sum(message.visible_at <= now for message in self._queue(QueueUrl).messages.values())
        return {"Attributes": {"ApproximateNumberOfMessages": str(visible)}}

    def _queue(self, url: str) -> _Queue:
        queue = self._queues.get(url.rpartition("/")[2])
        if queue is None:
            code = "AWS.SimpleQueueService.NonExistentQueue"
            raise fault_of("sqs", "any call", url, code, "there is no such queue", 400, None)
        return queue

    # --- messages ---

    def _send_message(self, QueueUrl: str, MessageBody: str, DelaySeconds: int = 0) -> dict[str, Any]:
        return {"MessageId": self._put(QueueUrl, MessageBody, DelaySeconds)}

    def _send_message_batch(self, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        done, failed = [], []
        for entry in Entries:
            if self._faults.strikes("message_not_taken"):
                failed.append({"Id": entry["Id"], "SenderFault": False, "Code": "InternalError", "Message": "planned"})
            else:
                self._put(QueueUrl, entry["MessageBody"], entry.get("DelaySeconds", 0))
                done.append({"Id": entry["Id"]})
        return {"Successful": done, "Failed": failed}

    def _put(self, url: str, body: str, delay: int) -> str:
        assert 0 <= delay <= _LONGEST_DELAY and isinstance(delay, int), f"SQS refuses a delay of {delay}"
        queue = self._queue(url)
        message_id = self._id()
        is_task = url.endswith(("-wft-0", "-act-0"))
        if is_task and self.drops_first and body not in self._sent:
            self._sent.add(body)
            return message_id
        if is_task and self._faults.strikes("message_lost"):
            return message_id
        now = self._clock.monotonic()
        late = self._faults.delay(20.0) if self._faults.strikes("message_late") else 0.0
        queue.messages[message_id] = _Message(message_id, body, now + delay + late, now + _RETENTION_SECONDS)
        queue.wake()
        return message_id

    async def _receive_message(
        self,
        QueueUrl: str,
        MaxNumberOfMessages: int = 1,
        WaitTimeSeconds: int = 0,
        VisibilityTimeout: int = 30,
        **_: Any,
    ) -> dict[str, Any]:
        assert 1 <= MaxNumberOfMessages <= _MOST and 0 <= WaitTimeSeconds <= 20
        ends = self._clock.monotonic() + WaitTimeSeconds
        while True:
            queue = self._queue(QueueUrl)
            taken = self._take(queue, MaxNumberOfMessages, VisibilityTimeout)
            now = self._clock.monotonic()
            if taken or now >= ends:
                return {"Messages": taken} if taken else {}
            await _wait(queue, min([ends, *(one.visible_at for one in queue.messages.values())]) - now)

    def _take(self, queue: _Queue, most: int, lease: int) -> list[dict[str, Any]]:
        now = self._clock.monotonic()
        for message in [one for one in queue.messages.values() if one.ends <= now]:
            del queue.messages[message.message_id]
        visible = [message for message in queue.messages.values() if message.visible_at <= now]
        self._random.shuffle(visible)
        answers = []
        for message in visible[:most]:
            message.count += 1
            message.receipt = f"{message.message_id} {message.count}"
            if not self._faults.strikes("message_twice"):
                message.visible_at = now + lease
            answers.append(
                {
                    "MessageId": message.message_id,
                    "Body": message.body,
                    "ReceiptHandle": message.receipt,
                    "Attributes": {"ApproximateReceiveCount": str(message.count)},
                }
            )
        return answers

    def _change_message_visibility(self, QueueUrl: str, ReceiptHandle: str, VisibilityTimeout: int) -> dict[str, Any]:
        assert 0 <= VisibilityTimeout <= _LONGEST_LEASE, f"SQS refuses a lease of {VisibilityTimeout}"
        message = self._leased(self._queue(QueueUrl), ReceiptHandle)
        if message is None:
            code = "AWS.SimpleQueueService.MessageNotInflight"
            raise fault_of("sqs", "change_message_visibility", QueueUrl, code, "not in flight", 400, None)
        message.visible_at = self._clock.monotonic() + VisibilityTimeout
        self._queue(QueueUrl).wake()
        return {}

    def _change_message_visibility_batch(self, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        queue = self._queue(QueueUrl)
        failed = []
        for entry in Entries:
            message = self._leased(queue, entry["ReceiptHandle"])
            if message is None:
                failed.append({"Id": entry["Id"], "SenderFault": True, "Code": "MessageNotInflight"})
            else:
                message.visible_at = self._clock.monotonic() + entry["VisibilityTimeout"]
        queue.wake()
        return {"Failed": failed}

    def _leased(self, queue: _Queue, receipt: str) -> _Message | None:
        message = queue.messages.get(receipt.partition(" ")[0])
        return message if message is not None and message.visible_at > self._clock.monotonic() else None

    def _delete_message_batch(self, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """By any receipt of it, also when its lease is over; now and then it comes again all the same."""
        queue = self._queue(QueueUrl)
        for entry in Entries:
            if not self._faults.strikes("message_deleted_in_vain"):
                queue.messages.pop(entry["ReceiptHandle"].partition(" ")[0], None)
        return {"Failed": []}

    def _id(self) -> str:
        self._numbers += 1
        return f"m{self._numbers}"


async def _wait(queue: _Queue, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()
    queue.waiting.append(waiter)
    timer = loop.call_later(seconds, lambda: waiter.done() or waiter.set_result(None))
    try:
        await waiter
    finally:
        timer.cancel()


def _url(name: str) -> str:
    return f"https://queues/1/{name}"
