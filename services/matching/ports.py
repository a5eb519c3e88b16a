"""What matching needs from the outside: task queues that outlive the process and are shared between processes.

They hold hints, so losing or repeating a message costs time and never work: deadlines send again what was lost, and
whoever gets a hint has it checked before it means anything. A message that was received is leased: it comes back
unless it is settled in time. What a message says is the business of whoever sends and receives; it is a short text.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from .queue_name import QueueName

LONGEST_DELAY = 900
"""Seconds for which a message can be held back; what is due later is sent when it is nearer."""

LONGEST_LEASE = 43_200
"""Seconds for which a received message can be kept from others at most, from its receipt on."""

LONGEST_WAIT = 20
"""Seconds that one receive waits at most."""


class QueueError(Exception):
    """A queue did not do what was asked. Of a send it is not known whether it was done."""


class QueuesUnavailable(QueueError):
    """The queues cannot serve this now (throttled, too much in flight, unreachable); try again later."""


class QueueRefused(QueueError):
    """The fault is in how this was set up (rights, keys) or asked; trying again does not help. Says what to do."""


class Received(NamedTuple):
    """A message under lease."""

    queue: QueueName
    body: str
    message_id: str
    """For people."""
    receipt: str
    """Names this receipt of the message; of no meaning but to the adapter."""
    deliveries: int
    """How often the message was received, this time included, as far as known."""


class TaskQueues(Protocol):
    """Queues are made when first used. Every call may raise QueueError."""

    async def send(self, queue: QueueName, body: str, delay_seconds: float = 0.0, fairness_key: str = "") -> None:
        """Returns when the message is safe. Shown after ``delay_seconds``, rounded up to whole ones, at most
        ``LONGEST_DELAY``. Sends at the same time share requests. Keys take turns where the queue can do that."""
        ...

    async def receive(self, queue: QueueName, maximum: int, wait_seconds: int, lease_seconds: int) -> list[Received]:
        """Up to ``maximum`` messages (ten, if that is less), waiting up to ``wait_seconds`` for the first. They are
        kept from others for ``lease_seconds``. Looks at one partition: see ``partitions``."""
        ...

    async def extend(self, received: Sequence[Received], seconds: int) -> None:
        """Leases end ``seconds`` from now; with 0 the messages come back at once. Of a lease that is over nothing
        becomes."""
        ...

    async def settle(self, received: Sequence[Received]) -> None:
        """The messages are done with and do not come back. Repeating it, or settling one whose lease is over, does no
        harm."""
        ...

    async def set_aside(self, received: Sequence[Received], reason: str) -> None:
        """Nobody can make anything of these messages. They go where people find them, and do not come back."""
        ...

    async def partitions(self, queue: QueueName) -> int:
        """How many receives at a time it takes to wait at all of the queue."""
        ...

    async def pending(self, queue: QueueName) -> int:
        """About how many messages wait, held back and leased ones not counted; 0 for a queue that nobody has used."""
        ...
