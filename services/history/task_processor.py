"""Runs the tasks of a commit through the ports, right behind the write. Each may run again: all are validated before
they act.
"""

from collections.abc import Awaitable, Callable
from typing import assert_never

from .commit import Commit, ExecutionKey
from .crossing import Crossing
from .items import ActivityItems
from .ports import ActivityTaskRef, Dispatcher, WorkflowTaskRef
from .tasks import CancelActivity, DispatchActivityTask, DispatchWorkflowTask, RecordVisibility, SignalExternal, Task

CancelActivities = Callable[[ExecutionKey, str, list[int]], Awaitable[None]]


class TaskProcessor:
    """``cancel_activities(key, run_id, scheduled_event_ids)`` tells activity items about cancellation requests."""

    def __init__(
        self, dispatcher: Dispatcher, items: ActivityItems, cancel_activities: CancelActivities, crossing: Crossing
    ) -> None:
        self._dispatcher = dispatcher
        self._items = items
        self._cancel_activities = cancel_activities
        self._crossing = crossing

    async def process(self, commit: Commit) -> None:
        cancelled: list[int] = []
        crossing: list[SignalExternal] = []
        for task in commit.tasks:
            if isinstance(task, CancelActivity):
                cancelled.append(task.scheduled_event_id)
            elif isinstance(task, SignalExternal):
                crossing.append(task)
            else:
                await self._run(commit, task)
        if crossing:
            self._crossing.committed(commit, crossing)
        if cancelled:
            await self._cancel_activities(commit.key, commit.run_id, cancelled)

    async def _run(self, commit: Commit, task: Task) -> None:
        match task:
            case DispatchWorkflowTask():
                ref = WorkflowTaskRef(commit.key, commit.run_id, task.attempt)
                await self._dispatcher.offer_workflow_task(
                    task.task_queue, ref, commit.state.last_worker_key, task.not_before
                )
            case DispatchActivityTask():
                self._note_new(commit, task)
                activity = ActivityTaskRef(commit.key, commit.run_id, task.scheduled_event_id, task.attempt)
                await self._dispatcher.offer_activity_task(task.task_queue, activity, task.not_before)
            case RecordVisibility() | CancelActivity() | SignalExternal():
                pass  # written with the commit by the store; gathered by process
            case _:
                assert_never(task)

    def _note_new(self, commit: Commit, task: DispatchActivityTask) -> None:
        pending = commit.state.activities.get(task.scheduled_event_id)
        if pending is not None and pending.scheduled_seq == commit.seq:
            self._items.scheduled(commit.key, commit.run_id, task.scheduled_event_id)
