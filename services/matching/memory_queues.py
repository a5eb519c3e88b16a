"""Task queues in this process's memory, with leases and delays as the shared ones have them: for tests and simulation,
and for a process that has no others."""

import asyncio
import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, inf

from ..common.clock import Clock
from .partition_turns import PartitionTurns
from .ports import LONGEST_DELAY, LONGEST_LEASE, QueuesUnavailable, Received
from .queue_name import QueueName

_MOST = 10


@dataclass(slots=True)
class _Message:
    number: int
    body: str
    deliveries: int = 0
    hidden_until: float = 0.0
    lease_ends: float = inf
    """When it comes back whatever becomes of its lease."""


@dataclass(slots=True)
class _Queue:
    messages: dict[int, _Message] = field(default_factory=dict)
    hidden: list[tuple[float, int]] = field(default_factory=list)
    """A heap; may name messages that are gone, or hidden for longer by now."""
    shown: dict[int, None] = field(default_factory=dict)
    """Numbers of messages that may be received, in the order in which they came to be so."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def hide(self, message: _Message, until: float) -> None:
        message.hidden_until = until
        self.shown.pop(message.number, None)
        heapq.heappush(self.hidden, (until, message.number))

    def show_due(self, now: float) -> None:
        while self.hidden and self.hidden[0][0] <= now:
            _, number = heapq.heappop(self.hidden)
            message = self.messages.get(number)
            if message is not None and message.hidden_until <= now:
                self.shown[number] = None


class MemoryQueues:
    """Implements ``ports.TaskQueues``. Call it from one event loop only."""

    def __init__(self, clock: Clock, *, partitions: int = 1, in_flight_limit: int = 120_000) -> None:
        self._clock = clock
        self._partitions = partitions
        self._in_flight_limit = in_flight_limit
        self._queues: dict[tuple[QueueName, int], _Queue] = {}
        self._number = 0
        self._turns = PartitionTurns()
        self.aside: list[Received] = []

    async def send(self, queue: QueueName, body: str, delay_seconds: float = 0.0, fairness_key: str = "") -> None:
        target = self._queue(queue, self._turns.to_send(queue, self._partitions))
        self._number += 1
        message = target.messages[self._number] = _Message(self._number, body)
        now = self._clock.monotonic()
        target.hide(message, now + min(ceil(delay_seconds), LONGEST_DELAY))
        target.show_due(now)
        target.changed.set()

    async def receive(self, queue: QueueName, maximum: int, wait_seconds: int, lease_seconds: int) -> list[Received]:
        with self._turns.looking(queue, self._partitions) as partition:
            return await self._receive(queue, partition, maximum, wait_seconds, lease_seconds)

    async def _receive(
        self, queue: QueueName, partition: int, maximum: int, wait_seconds: int, lease_seconds: int
    ) -> list[Received]:
        source = self._queue(queue, partition)
        ends = self._clock.monotonic() + wait_seconds
        while True:
            now = self._clock.monotonic()
            source.show_due(now)
            if source.shown:
                if len(source.messages) - len(source.shown) >= self._in_flight_limit:
                    raise QueuesUnavailable(f"too many messages of {queue.task_queue!r} are in flight")
                return self._take(queue, partition, source, min(maximum, _MOST), now, lease_seconds)
            if now >= ends:
                return []
            source.changed.clear()
            wake = min(ends, source.hidden[0][0]) if source.hidden else ends
            timer = asyncio.get_running_loop().call_later(max(wake - now, 0.0), source.changed.set)
            try:
                await source.changed.wait()
            finally:
                timer.cancel()

    def _take(
        self, queue: QueueName, partition: int, source: _Queue, maximum: int, now: float, lease_seconds: int
    ) -> list[Received]:
        taken = []
        for number in list(source.shown)[:maximum]:
            message = source.messages[number]
            message.deliveries += 1
            source.hide(message, now + lease_seconds)
            message.lease_ends = now + LONGEST_LEASE
            receipt = f"{partition}/{number}/{message.deliveries}"
            taken.append(Received(queue, message.body, str(number), receipt, message.deliveries))
        return taken

    async def extend(self, received: Sequence[Received], seconds: int) -> None:
        now = self._clock.monotonic()
        for one in received:
            found = self._leased(one, now)
            if found is not None:
                source, message = found
                source.hide(message, min(now + seconds, message.lease_ends))
                source.show_due(now)
                source.changed.set()

    async def settle(self, received: Sequence[Received]) -> None:
        for one in received:
            partition, number, deliveries = (int(part) for part in one.receipt.split("/"))
            source = self._queue(one.queue, partition)
            message = source.messages.get(number)
            if message is not None and message.deliveries == deliveries:
                del source.messages[number]
                source.shown.pop(number, None)

    async def set_aside(self, received: Sequence[Received], reason: str) -> None:
        self.aside += received
        await self.settle(received)

    def _leased(self, received: Received, now: float) -> tuple[_Queue, _Message] | None:
        partition, number, deliveries = (int(part) for part in received.receipt.split("/"))
        source = self._queue(received.queue, partition)
        message = source.messages.get(number)
        if message is None or message.deliveries != deliveries or message.hidden_until <= now:
            return None
        return source, message

    async def partitions(self, queue: QueueName) -> int:
        return self._partitions

    async def pending(self, queue: QueueName) -> int:
        count = 0
        for partition in range(self._partitions):
            source = self._queue(queue, partition)
            source.show_due(self._clock.monotonic())
            count += len(source.shown)
        return count

    def _queue(self, name: QueueName, partition: int) -> _Queue:
        return self._queues.setdefault((name, partition), _Queue())
