"""What a command may need of the workflow task that it came with."""

from typing import NamedTuple

from .command_activity import Leasing


class Carrying(NamedTuple):
    completed_event_id: int
    """Of the task's WorkflowTaskCompleted."""
    leasing: Leasing
    identity: str
    """The worker's."""
