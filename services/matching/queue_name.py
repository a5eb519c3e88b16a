"""The name of a task queue."""

from typing import NamedTuple

from stepwell.api.enums import TaskQueueKind


class QueueName(NamedTuple):
    """Workflow and activity tasks of one name wait in separate queues (TQ-01)."""

    namespace: str
    task_queue: str
    kind: TaskQueueKind
