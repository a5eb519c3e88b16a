"""What a state has for other executions, sorted by whom it is for."""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import msgspec
from stepwell.api.errors import ApiError

from . import deadlines
from .answers import Answer
from .commit import ExecutionKey
from .state import Asked, ExecutionState, OwedArchive, OwedDeletion, OwedToOthers, PendingChild
from .tasks import CrossRunTask

AskedId = tuple[str, int]
"""Run and initiated event id of something asked; of a notice, the run that closed and its last event."""


class Pair(NamedTuple):
    source: ExecutionKey
    target: ExecutionKey


class Entry(NamedTuple):
    asked: AskedId
    record: Asked | OwedToOthers

    @property
    def seq(self) -> int:
        """Of the commit that has the event."""
        return self.record.initiated_seq

    @property
    def request_id(self) -> str:
        """The same however often it is delivered, also by a run that a reset made."""
        run_id, event_id = self.asked
        return f"{getattr(self.record, 'asked_by', '') or run_id}:{event_id}"


class Delivered(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of some entries."""

    tried: frozenset[AskedId] = frozenset()
    answers: tuple[Answer, ...] = ()
    """For the source."""
    for_target: tuple[Answer, ...] = ()
    later: ApiError | None = None
    """Why the rest must be tried again."""


def target_of(own_namespace: str, asked: CrossRunTask | OwedToOthers | Asked) -> ExecutionKey:
    return ExecutionKey(asked.namespace or own_namespace, asked.workflow_id)


def by_target(state: ExecutionState) -> dict[ExecutionKey, list[Entry]]:
    """All that the state has for others, each in the order of asking."""
    entries: dict[ExecutionKey, list[Entry]] = {}
    for entry in chain(_owed(state), _asked(state)):
        entries.setdefault(target_of(state.namespace, entry.record), []).append(entry)
    return entries


def _owed(state: ExecutionState) -> Iterator[Entry]:
    for owed in state.owed:
        if isinstance(owed, OwedDeletion | OwedArchive):
            continue
        yield Entry((owed.run_id, owed.initiated_event_id), owed)


def _asked(state: ExecutionState) -> Iterator[Entry]:
    over = deadlines.ended_in_buffer(state)
    asked = [
        pending
        for pending in deadlines.asked_of_others(state)
        if pending.initiated_event_id not in over
        and not (isinstance(pending, PendingChild) and pending.started_event_id)
    ]
    asked.sort(key=lambda pending: pending.initiated_event_id)
    for pending in asked:
        yield Entry((state.run_id, pending.initiated_event_id), pending)
