"""What a command may need of the workflow task that it came with."""

import msgspec

from ..requests import NO_NEXT_RUN, NextRun
from .command_activity import Leasing


class Carrying(msgspec.Struct, frozen=True, gc=False):
    completed_event_id: int
    """Of the task's WorkflowTaskCompleted."""
    leasing: Leasing
    identity: str
    """The worker's."""
    next_run: NextRun = NO_NEXT_RUN
    """For a command that lets the chain go on."""
