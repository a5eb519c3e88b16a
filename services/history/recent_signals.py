"""Signals of the last minutes by request id, for workflows that get more of them than their state remembers (MS-10).

A client repeats a call for about a minute. A workflow with a few hundred signals a second has lost the id from its ring
by then, and would count it twice. So what the ring of a busy workflow has lost since is kept here, in memory. A process
that has not kept it (restarted, or another one) reads it from the log once, as far back as a repeat may come.
"""

from collections import OrderedDict
from datetime import datetime, timedelta
from typing import NamedTuple

from ..common.clock import Clock
from . import request_ids
from .commit import ExecutionKey
from .ports import ExecutionLog
from .request_log import RingWalk
from .state import ExecutionState

REPEATED_FOR = timedelta(seconds=90)
"""Longest time between a call and its last automatic repeat (30 s of attempts, of which the first and the last may take
30 s each)."""

_MOST_IDS = 100_000
"""Of all workflows together, about 20 MB; those that were signalled longest ago are forgotten first."""

_Times = OrderedDict[str, datetime]
"""When each entry was taken in, at the latest; oldest first."""


class _Kept(NamedTuple):
    seq: int
    """Of the state up to which it is complete."""
    times: _Times


class RecentSignals:
    """Called under the lock of the key. Raises StoreUnavailable."""

    def __init__(self, log: ExecutionLog, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._kept: dict[ExecutionKey, _Kept] = {}
        self._count = 0

    async def is_repeat(self, key: ExecutionKey, state: ExecutionState, request_id: str) -> bool:
        """Whether a commit up to that of ``state`` took in this signal."""
        if not request_id:
            return False
        entry = request_ids.entry(request_ids.SIGNAL, request_id)
        if entry in state.request_ids:
            return True
        kept = self._kept.get(key)
        if kept is None or kept.seq != state.seq:
            ring = request_ids.ring(state, request_ids.SIGNAL)
            if len(ring) < request_ids.KEPT[request_ids.SIGNAL]:
                return False  # these are all there ever were
            kept = await self._caught_up(key, state, ring)
        return entry in kept.times

    async def _caught_up(self, key: ExecutionKey, state: ExecutionState, ring: list[str]) -> _Kept:
        kept = self._kept.pop(key, None)
        times: _Times = OrderedDict() if kept is None else kept.times
        self._count -= len(times)
        now = self._clock.now()
        cutoff = now - REPEATED_FOR
        found = _new_in(ring, times, now)
        if len(found) == len(ring):
            await self._read(key, state, found, times, cutoff)
        times.update(reversed(found.items()))
        while len(times) > len(ring):
            entry, time = times.popitem(last=False)
            if time >= cutoff:
                times[entry] = time
                times.move_to_end(entry, last=False)
                break
        kept = _Kept(state.seq, times)
        self._keep(key, kept)
        return kept

    async def _read(
        self, key: ExecutionKey, state: ExecutionState, found: dict[str, datetime], times: _Times, cutoff: datetime
    ) -> None:
        """Adds to ``found`` what came in behind what is known already, or since ``cutoff``; newest first."""
        walk = RingWalk(self._log, key, state, request_ids.SIGNAL)
        while (older := await walk.older()) is not None:
            commit, ring = older
            if commit.time < cutoff:
                return
            new = _new_in(ring, times, commit.time)
            found |= {entry: time for entry, time in new.items() if entry not in found}
            if len(new) < len(ring):
                return

    def _keep(self, key: ExecutionKey, kept: _Kept) -> None:
        self._kept[key] = kept
        self._count += len(kept.times)
        while self._count > _MOST_IDS and len(self._kept) > 1:
            oldest = next(iter(self._kept))
            self._count -= len(self._kept.pop(oldest).times)


def _new_in(ring: list[str], known: _Times, time: datetime) -> dict[str, datetime]:
    """The ring's entries that are not known; newest first."""
    return {entry: time for entry in reversed(ring) if entry not in known}
