"""Finds the event that began something pending: what to run or to ask for, and with what input.

A fan-out asks a thousand times for events of one commit, so commits that were read are kept for a while, bounded by
bytes.
"""

from collections.abc import Sequence

from stepwell.api.errors import Internal
from stepwell.api.events import ActivityTaskScheduled, HistoryEvent
from stepwell.api.payloads import size_of

from .commit import ExecutionKey
from .executions import unavailable
from .head_cache import HeadCache
from .ports import ExecutionLog, StoreUnavailable
from .state import PendingActivity

_EVENT_BYTES = 600


class ScheduledEvents:
    def __init__(self, log: ExecutionLog, heads: HeadCache, maximum_bytes: int) -> None:
        self._log = log
        self._heads = heads
        self._maximum_bytes = maximum_bytes
        self._read: dict[tuple[ExecutionKey, int, str], tuple[tuple[HistoryEvent, ...], int]] = {}
        self._bytes = 0

    async def get(self, key: ExecutionKey, run_id: str, pending: PendingActivity) -> ActivityTaskScheduled:
        """Raises Unavailable when the store cannot serve."""
        entry = self._heads.peek(key)
        attributes = _find(entry.tail, pending) if entry is not None and entry.tail else None
        if attributes is None:
            attributes = _find(await self._events(key, pending.scheduled_seq, run_id), pending)
        if attributes is None:
            raise Internal(
                f"commit {pending.scheduled_seq} of workflow {key.workflow_id!r} does not hold the event "
                f"{pending.scheduled_event_id} that its state names"
            )
        return attributes

    async def initiated(self, key: ExecutionKey, run_id: str, seq: int, event_id: int) -> HistoryEvent:
        """The event in commit ``seq`` that says what was asked of another workflow; the run may be an earlier one of
        the id. Raises Unavailable when the store cannot serve."""
        entry = self._heads.peek(key)
        event = None
        if entry is not None and entry.tail and entry.state.run_id == run_id:
            event = _at(entry.tail, event_id)
        if event is None:
            event = _at(await self._events(key, seq, run_id), event_id)
        if event is None:
            raise Internal(
                f"commit {seq} of workflow {key.workflow_id!r} does not hold the event {event_id} that its state names"
            )
        return event

    async def _events(self, key: ExecutionKey, seq: int, run_id: str) -> tuple[HistoryEvent, ...]:
        """Of a commit, what it numbered in that run; or of a part of the run's prefix."""
        place = (key, seq, run_id)
        kept = self._read.pop(place, None)
        if kept is not None:
            self._read[place] = kept
            return kept[0]
        try:
            events = await self._read_events(key, seq, run_id)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        size = sum(_size(event) for event in events)
        if place not in self._read and size <= self._maximum_bytes:
            self._read[place] = (events, size)
            self._bytes += size
            while self._bytes > self._maximum_bytes:
                _, oldest = self._read.pop(next(iter(self._read)))
                self._bytes -= oldest
        return events

    async def _read_events(self, key: ExecutionKey, seq: int, run_id: str) -> tuple[HistoryEvent, ...]:
        if seq < 0:
            return (await self._log.read_events(key, run_id, seq - 1, 1)).events
        commit = await self._log.get(key, seq)
        return () if commit is None else commit.events_of(run_id)


def _at(events: Sequence[HistoryEvent] | None, event_id: int) -> HistoryEvent | None:
    """Events of a slice of a history have consecutive ids."""
    index = event_id - events[0].event_id if events else -1
    return events[index] if events and 0 <= index < len(events) else None


def _find(events: Sequence[HistoryEvent] | None, pending: PendingActivity) -> ActivityTaskScheduled | None:
    event = _at(events, pending.scheduled_event_id)
    attributes = event.attributes if event is not None else None
    # The slice may belong to an earlier run of the id.
    if isinstance(attributes, ActivityTaskScheduled) and attributes.activity_id == pending.activity_id:
        return attributes
    return None


def _size(event: HistoryEvent) -> int:
    return _EVENT_BYTES + size_of(getattr(event.attributes, "input", ()))
