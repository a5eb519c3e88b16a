"""Newest states in memory, and with each the events that its next workflow task shows. Bounded by count and bytes.

An entry is only ever put in after its commit is durable. Nothing depends on finding one: the log has everything.
"""

import msgspec
from stepwell.api.events import HistoryEvent

from .commit import Commit, ExecutionKey
from .state import ExecutionState

_STATE_BYTES = 2_048
"""What an entry is taken to need besides its events and buffered messages."""

_TAIL_BYTES = 1024 * 1024
"""A longer tail is not kept; it is read from the log when it is needed."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """``tail``: all numbered events from the last completed workflow task's WorkflowTaskCompleted on, or from the first
    one; None when not known.
    """

    state: ExecutionState
    tail: tuple[HistoryEvent, ...] | None
    tail_bytes: int
    cost: int


class HeadCache:
    """Least recently used entries go first."""

    def __init__(self, maximum_entries: int, maximum_bytes: int) -> None:
        self._maximum_entries = maximum_entries
        self._maximum_bytes = maximum_bytes
        self._entries: dict[ExecutionKey, Entry] = {}
        self._bytes = 0

    def get(self, key: ExecutionKey) -> Entry | None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._entries[key] = entry
        return entry

    def peek(self, key: ExecutionKey) -> Entry | None:
        return self._entries.get(key)

    def committed(self, key: ExecutionKey, commit: Commit) -> Entry:
        """Puts in what was just written on top of what is cached."""
        before = self._entries.pop(key, None)
        if before is not None:
            self._bytes -= before.cost
        return self._put(key, _entry_after(before, commit))

    def loaded(self, commit: Commit) -> Entry:
        """Puts in a head that was read, unless a newer one came in meanwhile."""
        key = commit.key
        known = self._entries.get(key)
        if known is not None and known.state.seq >= commit.seq:
            return known
        self.drop(key)
        return self._put(key, _entry_after(None, commit))

    def learned_tail(self, key: ExecutionKey, seq: int, tail: tuple[HistoryEvent, ...]) -> None:
        """The tail as read from the log, for the entry if it is still at ``seq``."""
        entry = self._entries.get(key)
        # All that is known of its size is that it is within the history's.
        if entry is not None and entry.state.seq == seq and entry.state.history_size <= _TAIL_BYTES:
            size = entry.state.history_size
            self.drop(key)
            self._put(key, Entry(entry.state, tail, size, _cost(entry.state, size)))

    def drop(self, key: ExecutionKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.cost

    def __len__(self) -> int:
        return len(self._entries)

    def _put(self, key: ExecutionKey, entry: Entry) -> Entry:
        """Of a key that has none."""
        self._entries[key] = entry
        self._bytes += entry.cost
        while self._bytes > self._maximum_bytes or len(self._entries) > self._maximum_entries:
            oldest = next(iter(self._entries))
            if oldest == key:
                break
            self.drop(oldest)
        return entry


def _entry_after(before: Entry | None, commit: Commit) -> Entry:
    state, events = commit.state, commit.events
    if before is not None and (before.state.run_id != state.run_id or before.state.seq != commit.seq - 1):
        before = None
    size = state.history_size - (0 if before is None else before.state.history_size)
    tail: tuple[HistoryEvent, ...] | None = None
    completed = state.previous_started_event_id and state.previous_started_event_id + 1
    if completed and events and events[0].event_id <= completed <= events[-1].event_id:
        tail = events[completed - events[0].event_id :]
    elif commit.seq == state.first_seq:
        tail = None if state.prefix_tail_seq else events
    elif before is not None and before.tail is not None:
        tail, size = (before.tail + events if events else before.tail), before.tail_bytes + size
    if tail is None or size > _TAIL_BYTES:
        tail, size = None, 0
    return Entry(state, tail, size, _cost(state, size))


def _cost(state: ExecutionState, tail_bytes: int) -> int:
    pending = len(state.activities) + len(state.timers)
    if state.owed or state.children or state.external_signals or state.external_cancels:
        pending += len(state.owed) + len(state.children) + len(state.external_signals) + len(state.external_cancels)
    cost = _STATE_BYTES + 700 * pending + tail_bytes
    if state.updates:
        cost += sum([update.size for update in state.updates.values()])
    if state.buffered:
        cost += sum([buffered.size for buffered in state.buffered])
    return cost
