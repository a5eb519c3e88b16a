"""Finds the ActivityTaskScheduled event of a pending activity: what to run, and with what input.

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
        self._read: dict[tuple[ExecutionKey, int], tuple[tuple[HistoryEvent, ...], int]] = {}
        self._bytes = 0

    async def get(self, key: ExecutionKey, pending: PendingActivity) -> ActivityTaskScheduled:
        """Raises Unavailable when the store cannot serve."""
        entry = self._heads.peek(key)
        attributes = _find(entry.tail, pending) if entry is not None and entry.tail else None
        if attributes is None:
            attributes = _find(await self._events(key, pending.scheduled_seq), pending)
        if attributes is None:
            raise Internal(
                f"commit {pending.scheduled_seq} of workflow {key.workflow_id!r} does not hold the event "
                f"{pending.scheduled_event_id} that its state names"
            )
        return attributes

    async def _events(self, key: ExecutionKey, seq: int) -> tuple[HistoryEvent, ...]:
        kept = self._read.pop((key, seq), None)
        if kept is not None:
            self._read[key, seq] = kept
            return kept[0]
        try:
            commit = await self._log.get(key, seq)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        events = () if commit is None else commit.events
        size = sum(_size(event) for event in events)
        if (key, seq) not in self._read and size <= self._maximum_bytes:
            self._read[key, seq] = (events, size)
            self._bytes += size
            while self._bytes > self._maximum_bytes:
                _, oldest = self._read.pop(next(iter(self._read)))
                self._bytes -= oldest
        return events


def _find(events: Sequence[HistoryEvent] | None, pending: PendingActivity) -> ActivityTaskScheduled | None:
    """Events of a slice of a history have consecutive ids."""
    if not events:
        return None
    index = pending.scheduled_event_id - events[0].event_id
    if not 0 <= index < len(events):
        return None
    attributes = events[index].attributes
    # The slice may belong to an earlier run of the id.
    if isinstance(attributes, ActivityTaskScheduled) and attributes.activity_id == pending.activity_id:
        return attributes
    return None


def _size(event: HistoryEvent) -> int:
    return _EVENT_BYTES + size_of(getattr(event.attributes, "input", ()))
