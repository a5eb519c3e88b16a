"""The commit: one state transition of one workflow execution, the unit of the log (design section 3)."""

from datetime import datetime
from typing import NamedTuple

import msgspec
from stepwell.api.events import HistoryEvent
from stepwell.api.failures import Failure

from .state import ExecutionState
from .tasks import Task

BEGINNING = -(2**31)
"""Before all of a run's history, for who reads it by seq: commits have seqs from 1 on, and the parts of what a reset
run began with (its prefix), which stand before its commits, seqs from ``BEGINNING`` + 1 on."""


def before(state: ExecutionState) -> int:
    """The seq behind which the history of that run begins."""
    return BEGINNING if state.prefix_tail_seq else state.first_seq - 1


class ExecutionKey(NamedTuple):
    """Names a log: all runs of one workflow id, in order."""

    namespace: str
    workflow_id: str


class Awaited(NamedTuple):
    """The write for which a deadline was armed, which comes after it: the commit ``seq``, or ``version`` of an
    activity's item; ``seq`` 0 and no item when it is not known. Of a control record ``seq`` is the version, and
    ``run_id`` the incarnation."""

    seq: int = 0
    run_id: str = ""
    scheduled_event_id: int = 0
    version: int = 0


UNKNOWN = Awaited()


class RejectedUpdate(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """An update that workflow code did not take. It leaves nothing in the history; this is for who waits for it."""

    run_id: str
    update_id: str
    failure: Failure


class ClosedRun(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """The run that a commit closes while it opens the next one. ``state`` has the seq of that same commit."""

    state: ExecutionState
    events: tuple[HistoryEvent, ...]
    """The events that the commit numbered in it; the last one is its close event."""

    @property
    def run_id(self) -> str:
        return self.state.run_id


class Commit(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Written once, by put-if-absent of (key, ``seq``), and never changed.

    It belongs to one run, or to two that follow each other: then ``closed`` has the end of the one, and all else is of
    the run that it opens. Who reads for a run asks ``state_of`` and ``events_of``.
    """

    namespace: str
    workflow_id: str
    seq: int
    run_id: str
    kind: str
    """The request that made it, for people."""
    base: int = 0
    """For a completion, the head that its worker had seen; else ``seq - 1``."""
    time: datetime
    nonce: str
    """Tells a put whose answer was lost from somebody else's commit."""
    events: tuple[HistoryEvent, ...] = ()
    """The events that this commit numbered."""
    state: ExecutionState
    tasks: tuple[Task, ...] = ()
    deadline: datetime | None = None
    """When this run needs attention if nothing else happens; armed at or before this time."""
    owes: bool | None = None
    """Whether queues must be rebuilt from this head after a restart (an outstanding workflow task, or an activity
    without an end); None when that is as before."""
    expires_at: datetime | None = None
    closed: ClosedRun | None = None
    """The run before, when this commit closes it."""
    rejected: tuple[RejectedUpdate, ...] = ()

    @property
    def key(self) -> ExecutionKey:
        return ExecutionKey(self.namespace, self.workflow_id)

    def state_of(self, run_id: str) -> ExecutionState | None:
        """What the commit makes of that run; None when it is of other runs."""
        if run_id == self.run_id:
            return self.state
        return self.closed.state if self.closed is not None and self.closed.run_id == run_id else None

    def events_of(self, run_id: str) -> tuple[HistoryEvent, ...]:
        """The events that the commit numbered in that run."""
        if run_id == self.run_id:
            return self.events
        return self.closed.events if self.closed is not None and self.closed.run_id == run_id else ()


class EncodedCommit(Commit, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """A commit whose stored form is made already: what a store writes, while it reads all else off the commit."""

    stored_head: bytes
    stored_events: bytes
    state_bytes: int
    """Of the head before compression, with all payloads in place."""
    referring: bool = False
    """Some payloads are blobs (``offload``): the stored form alone does not say what the commit says."""
