"""In which order the hints of a task queue go out: by priority, then in turns by fairness key (TQ-12, TQ-13).

Turns are start-time fair queueing: a hint gets its place when it comes, one step of 1/weight behind the hint before of
its key, or behind where the queue is by now if that is further. So what counts is what was dispatched of a key, and
never how much of it waits or runs; without keys the turns are the order of arrival.
"""

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

from stepwell.api.common import Priority
from stepwell.api.limits import DEFAULT_PRIORITY

Ref = TypeVar("Ref", bound=Hashable)

_SPARE = 64
"""Entries of hints that left the heap out of order, above which (and above those that are there) it is made anew."""

FRONT = 0
"""The level of what was taken and came back; above all priorities."""


class Place(NamedTuple):
    """The lowest goes first."""

    level: int
    turn: float
    number: int


class Ordered(Generic[Ref]):
    """Hints by place. Each call costs the logarithm of how many there are, taken over all calls."""

    __slots__ = ("_heap", "_there")

    def __init__(self) -> None:
        self._heap: list[tuple[Place, Ref]] = []
        self._there: dict[Ref, Place] = {}

    def __len__(self) -> int:
        return len(self._there)

    def __iter__(self) -> Iterator[Ref]:
        return iter(self._there)

    def add(self, ref: Ref, place: Place) -> None:
        """``ref`` is not there, and no other hint has its place."""
        self._there[ref] = place
        heapq.heappush(self._heap, (place, ref))

    def first(self) -> Ref:
        """Raises IndexError when there is none."""
        while self._there.get(self._heap[0][1]) is not self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][1]

    def remove(self, ref: Ref) -> None:
        del self._there[ref]
        if len(self._heap) > 2 * len(self._there) + _SPARE:
            self._heap = [(place, ref) for ref, place in self._there.items()]
            heapq.heapify(self._heap)


class _Key:
    """Of one level: where its last hint is placed, and how many of it wait."""

    __slots__ = ("last", "waiting")

    def __init__(self) -> None:
        self.last = 0.0
        self.waiting = 0


class Turns:
    """Gives places. It knows a key while hints of it wait."""

    __slots__ = ("_keys", "_now", "_number", "_returned")

    def __init__(self) -> None:
        self._keys: dict[tuple[int, str], _Key] = {}
        self._now: dict[int, float] = {}
        """By level: the turn of the last that was taken."""
        self._number = 0
        self._returned = 0

    def place(self, priority: Priority | None) -> Place:
        level, fairness_key, weight = DEFAULT_PRIORITY, "", 1.0
        if priority is not None:
            level = priority.priority_key or DEFAULT_PRIORITY
            fairness_key = priority.fairness_key
            weight = priority.fairness_weight or 1.0
        key = self._keys.setdefault((level, fairness_key), _Key())
        key.last = max(key.last, self._now.get(level, 0.0)) + 1.0 / weight
        key.waiting += 1
        self._number += 1
        return Place(level, key.last, self._number)

    def front(self) -> Place:
        self._returned -= 1
        return Place(FRONT, 0.0, self._returned)

    def left(self, place: Place, fairness_key: str) -> None:
        """A hint with this place was taken."""
        if place.level == FRONT:
            return
        self._now[place.level] = max(self._now.get(place.level, 0.0), place.turn)
        key = self._keys[place.level, fairness_key]
        key.waiting -= 1
        if not key.waiting:
            del self._keys[place.level, fairness_key]
        if not self._keys:
            self._now.clear()  # so that turns stay small numbers
