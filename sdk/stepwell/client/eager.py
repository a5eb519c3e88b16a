"""Workers of the same client, which may take the first workflow task of what the client starts (LC-08)."""

from typing import Protocol

from ..api.requests import WorkerInfo, WorkflowTask


class EagerHost(Protocol):
    """A running worker."""

    def reserve(self, task_queue: str, workflow_type: str) -> WorkerInfo | None:
        """Keep room for one workflow task; None when it is not this worker's, or there is no room."""
        ...

    def begin(self, task: WorkflowTask | None) -> None:
        """Of what was reserved: the task to work on, or None to give the room back."""
        ...
