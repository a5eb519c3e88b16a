"""The commit: one state transition of one workflow execution, the unit of the log (design section 3)."""

from datetime import datetime
from typing import NamedTuple

import msgspec
from stepwell.api.events import HistoryEvent

from .state import ExecutionState
from .tasks import Task


class ExecutionKey(NamedTuple):
    """Names a log: all runs of one workflow id, in order."""

    namespace: str
    workflow_id: str


class Commit(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """Written once, by put-if-absent of (key, ``seq``), and never changed."""

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

    @property
    def key(self) -> ExecutionKey:
        return ExecutionKey(self.namespace, self.workflow_id)
