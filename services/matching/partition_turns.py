"""Which partition of a queue is next: for a message the next in turn, for a receive the one that fewest look at."""

from collections.abc import Iterator
from contextlib import contextmanager

from .queue_name import QueueName


class PartitionTurns:
    """Begins anywhere; of queues that nobody uses nothing is kept but two small numbers."""

    def __init__(self, first: int = 0) -> None:
        self._first = first
        self._sent: dict[QueueName, int] = {}
        self._looked: dict[QueueName, int] = {}
        self._looking: dict[tuple[QueueName, int], int] = {}

    def to_send(self, queue: QueueName, count: int) -> int:
        turn = self._sent[queue] = self._sent.get(queue, self._first) + 1
        return turn % count

    @contextmanager
    def looking(self, queue: QueueName, count: int) -> Iterator[int]:
        """Of those that equally many look at, the one behind the last."""
        last = self._looked.get(queue, self._first)
        order = [(last + step) % count for step in range(1, count + 1)]
        partition = min(order, key=lambda one: self._looking.get((queue, one), 0))
        self._looked[queue] = partition
        place = (queue, partition)
        self._looking[place] = self._looking.get(place, 0) + 1
        try:
            yield partition
        finally:
            self._looking[place] -= 1
            if not self._looking[place]:
                del self._looking[place]
