"""Logic flags: changes to the order in which replay does things, recorded per run with the first task that uses them
(VE-22).

A flag that a history does not have is off while that part of the history is replayed. Numbers are never reused.
"""

from collections.abc import Iterable
from enum import IntEnum


class LogicFlag(IntEnum):
    ORDERED_JOBS = 1
    """Within a batch: signals, then ends of activities and timers, then the cancel request; else in event order."""
    CHANGE_VERSIONS = 2
    """The first answer at a change of code is put into a search attribute behind its marker."""
    CHILD_TO_ITS_END = 3
    """Who executes a child and is cancelled before it has started waits for its end, as its cancellation type says."""


class LogicFlags:
    """Flags of one run."""

    def __init__(self) -> None:
        self._known: set[int] = set()
        self._new: list[int] = []

    def recorded(self, flags: Iterable[int]) -> None:
        """Flags found in the history."""
        self._known.update(flags)

    def use(self, flag: LogicFlag, *, replaying: bool) -> bool:
        """True when the behaviour applies; live, the first use is remembered for the history."""
        if flag in self._known:
            return True
        if replaying:
            return False
        self._known.add(int(flag))
        self._new.append(int(flag))
        return True

    def known(self) -> frozenset[int]:
        return frozenset(self._known)

    def back_to(self, known: Iterable[int]) -> None:
        """What has been used since is in no history."""
        self._known, self._new = set(known), []

    def take_new(self) -> tuple[int, ...]:
        """Flags first used since the last call."""
        if not self._new:
            return ()
        new, self._new = tuple(self._new), []
        return new
