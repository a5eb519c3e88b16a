"""Request ids that the state's ring has lost, found in the log: each commit's state has the ring of its time."""

from collections.abc import Collection
from datetime import datetime

from . import request_ids
from .commit import Commit, ExecutionKey
from .ports import ExecutionLog
from .state import ExecutionState

_ONE_BY_ONE = 64
"""Commits behind a claim that are looked at in turn. The one that it was made for comes soon, or never."""


class RingWalk:
    """From a state back through its log, over all runs of the id, in leaps that leave out no entry of the ring: a leap
    is too long when what it reaches no longer holds the oldest entry that was seen before."""

    def __init__(self, log: ExecutionLog, key: ExecutionKey, state: ExecutionState, kind: str) -> None:
        self._log = log
        self._key = key
        self._kind = kind
        self._leap = 1
        self._arrive(state, request_ids.ring(state, kind))

    def _arrive(self, state: ExecutionState, ring: list[str]) -> None:
        self.seq = state.seq
        """Of the commit that it stands at."""
        # A ring with room has lost nothing yet.
        self._oldest = ring[0] if len(ring) >= request_ids.KEPT[self._kind] else ""

    async def older(self) -> tuple[Commit, list[str]] | None:
        """The next one and its ring; None when nothing older holds an entry that was not seen."""
        while self._oldest and self.seq > 1:
            leap = min(self._leap, self.seq - 1)
            commit = await self._log.get(self._key, self.seq - leap)
            ring = [] if commit is None else request_ids.ring(commit.state, self._kind)
            if leap > 1 and self._oldest not in ring:
                self._leap = leap // 2
                continue
            if commit is None:
                return None  # retention has deleted it
            self._leap = leap * 2
            self._arrive(commit.state, ring)
            return commit, ring
        return None


async def committed_since(
    log: ExecutionLog, key: ExecutionKey, state: ExecutionState, seq: int, kind: str, request_id: str
) -> bool:
    """Whether a commit behind ``seq``, up to that of ``state``, took in this request."""
    if request_ids.is_known(state, kind, request_id):
        return True
    looked_at = seq
    for number in range(seq + 1, min(seq + _ONE_BY_ONE, state.seq - 1) + 1):
        commit = await log.get(key, number)
        if commit is None:
            break  # retention has deleted it
        if request_ids.is_known(commit.state, kind, request_id):
            return True
        looked_at = number
    entry = request_ids.entry(kind, request_id)
    walk = RingWalk(log, key, state, kind)
    while walk.seq > looked_at + 1 and (found := await walk.older()) is not None:
        if entry in found[1]:
            return True
    return False


async def taken_in_since(
    log: ExecutionLog, key: ExecutionKey, state: ExecutionState, kind: str, asked: Collection[str], since: datetime
) -> set[str]:
    """Which of these requests a commit took in, at ``since`` or later, up to that of ``state``."""
    wanted = {request_ids.entry(kind, request_id): request_id for request_id in asked}
    found = wanted.keys() & set(request_ids.ring(state, kind))
    walk = RingWalk(log, key, state, kind)
    while len(found) < len(wanted) and (older := await walk.older()) is not None:
        commit, ring = older
        found |= wanted.keys() & set(ring)
        if commit.time < since:
            break
    return {wanted[entry] for entry in found}


async def taken_in_before(
    log: ExecutionLog, key: ExecutionKey, state: ExecutionState, kind: str, request_id: str
) -> ExecutionState | None:
    """The state of the run that took this request in, if that was one before the run of ``state``."""
    last = await log.get(key, state.first_seq - 1) if state.first_seq > 1 else None
    if last is None or not request_ids.is_known(last.state, kind, request_id):
        return None
    low, found = 1, last
    while low < found.seq:
        commit = await log.get(key, middle := (low + found.seq) // 2)
        if commit is not None and request_ids.is_known(commit.state, kind, request_id):
            found = commit
        else:
            low = middle + 1  # not yet, or retention has deleted it
    return found.state
