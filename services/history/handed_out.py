"""Workflow tasks that workers hold: remembered in memory only, offered again when no answer comes (design section 4).

Nothing is written when a task starts, so nothing needs to be undone when its worker is lost: the task is offered again
after the run's workflow task timeout, or at once when its worker is provably gone.
"""

from collections.abc import Callable

import msgspec
from stepwell.api.common import Priority, ProcessIdentity

from ..common.timeouts import Timeouts
from .commit import ExecutionKey
from .ports import WorkflowTaskRef
from .state import ExecutionState


class TaskIdentity(msgspec.Struct, frozen=True, gc=False):
    """Tells one outstanding workflow task from every other of the id."""

    run_id: str
    scheduled_event_id: int
    attempt: int
    previous_started_event_id: int
    update_index: int = 0


class HandedOut(msgspec.Struct, frozen=True, gc=False):
    task: TaskIdentity
    task_queue: str
    ref: WorkflowTaskRef
    process: ProcessIdentity | None
    timeout: int
    priority: Priority | None = None


def identity_of(state: ExecutionState) -> TaskIdentity | None:
    task = state.workflow_task
    if task is None:
        return None
    return TaskIdentity(
        state.run_id, task.scheduled_event_id, task.attempt, state.previous_started_event_id, task.update_index
    )


class HandedOutTasks:
    """At most one record per key: the newest hand-out of its outstanding workflow task.

    A process that does not stay remembers none (``remembers``): there the queue that the task came from gives it out
    again, and a worker that gets it while another has it is one of the two whose completion is refused.
    """

    def __init__(self, offer_again: Callable[[HandedOut], None], *, remembers: bool = True) -> None:
        self._offer_again = offer_again
        self._remembers = remembers
        self._timeouts = Timeouts()
        self._records: dict[ExecutionKey, HandedOut] = {}
        self._refused_closes: dict[ExecutionKey, TaskIdentity] = {}

    def is_held(self, key: ExecutionKey, task: TaskIdentity) -> bool:
        record = self._records.get(key)
        return record is not None and record.task == task

    def add(
        self,
        ref: WorkflowTaskRef,
        task: TaskIdentity,
        task_queue: str,
        process: ProcessIdentity | None,
        seconds: float,
        priority: Priority | None = None,
    ) -> None:
        """Offered again after ``seconds`` unless it is answered."""
        if not self._remembers:
            return
        self.discard(ref.key)
        timeout = self._timeouts.after(seconds, self._expire, ref.key, task)
        self._records[ref.key] = HandedOut(task, task_queue, ref, process, timeout, priority)

    def discard(self, key: ExecutionKey) -> None:
        record = self._records.pop(key, None)
        if record is not None:
            self._timeouts.call_off(record.timeout)

    def committed(self, key: ExecutionKey, state: ExecutionState) -> None:
        """Forgets what is no longer outstanding."""
        record = self._records.get(key)
        if record is not None and record.task != identity_of(state):
            self.discard(key)
        if self._refused_closes and key in self._refused_closes and self._refused_closes[key] != identity_of(state):
            del self._refused_closes[key]

    def close_refused(self, key: ExecutionKey, state: ExecutionState) -> None:
        """A close was refused without a write; the run's next token says so."""
        task = identity_of(state)
        if task is not None and self._remembers:
            self._refused_closes[key] = task

    def refused_closes(self, key: ExecutionKey, task: TaskIdentity) -> int:
        """Where nothing is remembered, every refusal may be the second, which is written (MS-06)."""
        return 1 if not self._remembers or self._refused_closes.get(key) == task else 0

    def processes(self) -> dict[ProcessIdentity, None]:
        """Processes that hold tasks now, as far as they said who they are."""
        return {record.process: None for record in self._records.values() if record.process is not None}

    def take_from(self, process: ProcessIdentity) -> None:
        """The process is gone: what it holds is offered again."""
        for key, record in list(self._records.items()):
            if record.process == process:
                self._expire(key, record.task)

    def stop(self) -> None:
        for key in list(self._records):
            self.discard(key)

    def _expire(self, key: ExecutionKey, task: TaskIdentity) -> None:
        record = self._records.get(key)
        if record is not None and record.task == task:
            self.discard(key)
            self._offer_again(record)
