"""What is projected of a run besides what its RecordVisibility task says: read off the task's commit. Pure."""

from datetime import datetime

import msgspec

from .commit import Commit
from .tasks import RecordVisibility


class Projected(msgspec.Struct, frozen=True, gc=False):
    """Empty where a run has none: its execution time is its start then, its root itself."""

    history_size: int
    first_run_id: str
    execution_time: datetime | None
    parent_workflow_id: str
    parent_run_id: str
    root_workflow_id: str
    root_run_id: str
    transitions: int
    """Commits of the run so far."""


def projected(commit: Commit, task: RecordVisibility) -> Projected:
    state = commit.state_of(task.run_id) or commit.state
    parent, root = state.parent, state.root
    return Projected(
        state.history_size,
        state.first_run_id,
        state.execution_time,
        parent.workflow_id if parent is not None else "",
        parent.run_id if parent is not None else "",
        root.workflow_id if root is not None else "",
        root.run_id if root is not None else "",
        max(commit.seq - state.first_seq + 1, 1),
    )
