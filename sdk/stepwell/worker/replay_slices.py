"""Cuts a long history into slices that are replayed one by one: other work gets its turn in between, and no slice
takes so long that it looks like a deadlock."""

from collections.abc import Iterator, Sequence

from ..api import events as ev
from ..api.events import HistoryEvent
from ..replay.activation import COMMAND_EVENTS

SLICE_EVENTS = 1000
"""About 20 ms of replay."""

_BELONGS_TO_BEFORE = COMMAND_EVENTS | {
    ev.WorkflowTaskCompleted,
    ev.WorkflowTaskFailed,
    ev.WorkflowTaskTimedOut,
    ev.WorkflowExecutionOptionsUpdated,
    ev.WorkflowExecutionPaused,
    ev.WorkflowExecutionUnpaused,
}


def slices(events: Sequence[HistoryEvent], size: int = SLICE_EVENTS) -> Iterator[Sequence[HistoryEvent]]:
    """Growing beginnings of ``events``, less what earlier slices hold up to their last completed workflow task; a
    slice ends neither between a workflow task's start and its end nor before the commands of a completed one."""
    begin, end = 0, size
    while end < len(events):
        while end < len(events) and type(events[end].attributes) in _BELONGS_TO_BEFORE:
            end += 1
        if end >= len(events):
            break
        yield events[begin:end]
        begin = _after_last_completed(events, begin, end)
        end += size
    yield events[begin:]


def _after_last_completed(events: Sequence[HistoryEvent], begin: int, end: int) -> int:
    """Where the next slice begins: what came in behind the last completed task was not used yet."""
    for index in range(end - 1, begin - 1, -1):
        if type(events[index].attributes) is ev.WorkflowTaskCompleted:
            return index + 1
    return begin
