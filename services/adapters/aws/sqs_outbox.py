"""Sends to one SQS queue that share requests: whatever comes while requests are under way goes with the next.

SQS takes ten messages a request, and answers for each of them.
"""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ...matching.ports import QueueRefused, QueuesUnavailable

MESSAGES_PER_REQUEST = 10
_BYTES_PER_REQUEST = 256 * 1024
_REQUESTS_AT_ONCE = 4
_TRIES = 3
_PAUSE = 0.1

Request = Callable[[list[dict[str, Any]]], Awaitable[Mapping[str, Any]]]


class Message(NamedTuple):
    body: str
    delay_seconds: int
    group: str
    """Empty, or a name that takes turns with others."""


class _Waiting(NamedTuple):
    message: Message
    done: "asyncio.Future[None]"
    tries: int = 1


class Outbox:
    """``request`` sends one batch of entries and returns SQS's answer. Belongs to one event loop."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._waiting: deque[_Waiting] = deque()
        self._sending = 0
        """Tasks that look for what waits; one that has ended may not have been told off ``_senders``."""
        self._senders: set[asyncio.Task[None]] = set()

    async def send(self, message: Message) -> None:
        """Returns when SQS has the message. Raises QueueError."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.append(_Waiting(message, done))
        wanted = -(-len(self._waiting) // MESSAGES_PER_REQUEST)
        if self._sending < min(wanted, _REQUESTS_AT_ONCE):
            self._sending += 1
            sender = loop.create_task(self._send_all())
            self._senders.add(sender)
            sender.add_done_callback(self._senders.discard)
        await done

    async def _send_all(self) -> None:
        try:
            await self._send_waiting()
        finally:
            self._sending -= 1

    async def _send_waiting(self) -> None:
        while self._waiting:
            batch = self._batch()
            try:
                answer = await self._request(_entries([waiting.message for waiting in batch]))
                again = _answered(batch, answer)
            except BaseException as error:
                for waiting in batch:
                    _fail(
                        waiting, error if isinstance(error, Exception) else QueuesUnavailable("the send was given up")
                    )
                if isinstance(error, asyncio.CancelledError):
                    raise
                continue
            if again:
                await asyncio.sleep(random.uniform(0, _PAUSE * 2 ** again[0].tries))
                self._waiting.extendleft(reversed(again))

    def _batch(self) -> list[_Waiting]:
        batch = [self._waiting.popleft()]
        size = len(batch[0].message.body)
        while self._waiting and len(batch) < MESSAGES_PER_REQUEST:
            size += len(self._waiting[0].message.body)
            if size > _BYTES_PER_REQUEST:
                break
            batch.append(self._waiting.popleft())
        return batch


def _entries(messages: Sequence[Message]) -> list[dict[str, Any]]:
    entries = []
    for number, message in enumerate(messages):
        entry: dict[str, Any] = {"Id": str(number), "MessageBody": message.body}
        if message.delay_seconds:
            entry["DelaySeconds"] = message.delay_seconds
        if message.group:
            entry["MessageGroupId"] = message.group
        entries.append(entry)
    return entries


def _answered(batch: Sequence[_Waiting], answer: Mapping[str, Any]) -> list[_Waiting]:
    """Tells each what became of it; those that are to be tried again."""
    sent = {entry["Id"] for entry in answer.get("Successful", ())}
    failed = {entry["Id"]: entry for entry in answer.get("Failed", ())}
    again = []
    for number, waiting in enumerate(batch):
        entry = failed.get(str(number), {})
        if str(number) in sent:
            if not waiting.done.done():
                waiting.done.set_result(None)
        elif entry.get("SenderFault"):
            _fail(waiting, QueueRefused(f"SQS refused a message: {entry.get('Code')}: {entry.get('Message', '')}"))
        elif waiting.tries < _TRIES:
            again.append(waiting._replace(tries=waiting.tries + 1))
        else:
            _fail(waiting, QueuesUnavailable(f"SQS did not take a message ({entry.get('Code', 'no answer')})"))
    return again


def _fail(waiting: _Waiting, error: Exception) -> None:
    if not waiting.done.done():
        waiting.done.set_exception(error)
