"""A history newest first, page by page (LC-45).

Commits are read from the newest one down to the run's first, side by side; then, of a run that a reset made, the parts
of its prefix. What a page costs depends on its size, and not on how long the history is.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

from stepwell.api.events import HistoryEvent

from .commit import BEGINNING, ExecutionKey
from .ports import ExecutionLog
from .state import ExecutionState

_TOGETHER = 16


class Place(NamedTuple):
    """Where a page begins: at that commit, or part of the prefix, less its newest ``skip`` events."""

    seq: int
    skip: int = 0


async def page_before(
    log: ExecutionLog, key: ExecutionKey, state: ExecutionState, place: Place, size: int
) -> tuple[list[HistoryEvent], Place | None]:
    """Up to ``size`` events, and where the next page begins; None behind the first event. Raises StoreUnavailable."""
    found: list[HistoryEvent] = []
    skip = place.skip
    async for seq, events in _pieces(log, key, state, place.seq):
        newest_first = events[::-1][skip:]
        room = size - len(found)
        if len(newest_first) > room:
            return [*found, *newest_first[:room]], Place(seq, skip + room)
        found += newest_first
        skip = 0
        if found and found[-1].event_id == 1:
            break
    return found, None


async def _pieces(
    log: ExecutionLog, key: ExecutionKey, state: ExecutionState, seq: int
) -> AsyncIterator[tuple[int, tuple[HistoryEvent, ...]]]:
    """The events of each commit of the run, then of each part of its prefix, from ``seq`` on downwards."""
    while seq >= state.first_seq:
        seqs = range(seq, max(seq - _TOGETHER, state.first_seq - 1), -1)
        for number, commit in zip(seqs, await asyncio.gather(*(log.get(key, each) for each in seqs)), strict=True):
            if commit is None:
                return  # retention was faster
            yield number, commit.events_of(state.run_id)
        seq = seqs[-1] - 1
    if not state.prefix_tail_seq:
        return
    part = seq if seq < 0 else await _last_part(log, key, state.run_id)
    while part > BEGINNING:
        page = await log.read_events(key, state.run_id, part - 1, 1)
        if page.last_seq != part:
            return
        yield part, page.events
        part -= 1


async def _last_part(log: ExecutionLog, key: ExecutionKey, run_id: str) -> int:
    """Seq of the prefix's last part; there is one at least."""

    async def is_part(number: int) -> bool:
        page = await log.read_events(key, run_id, BEGINNING + number - 1, 1)
        return page.last_seq == BEGINNING + number

    there, gone = 1, 2
    while await is_part(gone):
        there, gone = gone, gone * 2
    while gone - there > 1:
        middle = (there + gone) // 2
        if await is_part(middle):
            there = middle
        else:
            gone = middle
    return BEGINNING + there
