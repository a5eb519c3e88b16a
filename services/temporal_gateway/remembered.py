"""What this process remembers of workflow tasks that it gave out, by task token; bounded, and needed by nobody else.

- **The events that a task showed** and that have no number in the log yet, for the pages behind its first. A worker
  without the run in its cache reads a long history page by page: the log has the numbered events, the last ones belong
  to the task. Whoever comes too late or to another process is told so, drops the task and is offered it again.
- **Whose task it is**, for the activities that are handed over with its completion. Where that is not known, they go
  through their queue.
"""

from collections import OrderedDict
from typing import Generic, NamedTuple, TypeVar

from stepwell.api.common import WorkflowExecution

T = TypeVar("T")


class TaskOf(NamedTuple):
    execution: WorkflowExecution
    workflow_type: str


class Remembered(Generic[T]):
    """Least recently kept go first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[bytes, T] = OrderedDict()

    def keep(self, task_token: bytes, what: T) -> None:
        self._kept[task_token] = what
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def get(self, task_token: bytes) -> T | None:
        return self._kept.get(task_token)

    def drop(self, task_token: bytes) -> None:
        self._kept.pop(task_token, None)

    def __len__(self) -> int:
        return len(self._kept)
