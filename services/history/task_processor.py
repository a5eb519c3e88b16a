"""Runs the tasks of a commit through the ports, right behind the write. Each may run again: all are validated before
they act.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, get_args

from .archiving import Archiving
from .commit import Commit, ExecutionKey
from .crossing import Crossing
from .deleting import Deleting
from .items import ActivityItems
from .ports import ActivityTaskRef, Dispatcher, WorkflowTaskRef
from .tasks import (
    ArchiveRuns,
    CancelActivity,
    CrossRunTask,
    DeleteRun,
    DispatchActivityTask,
    DispatchWorkflowTask,
    RecordVisibility,
)

CancelActivities = Callable[[ExecutionKey, str, list[CancelActivity]], Awaitable[None]]

_CROSSING = get_args(CrossRunTask)
NOT_RUN = frozenset({RecordVisibility, CancelActivity, *_CROSSING})
"""Written with the commit by the store; gathered by ``process``."""


class TaskProcessor:
    """``cancel_activities(key, run_id, tasks)`` tells activity items about cancellation requests. ``at_once``: offers
    may take time, so those of one commit are made side by side; they share requests then."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        items: ActivityItems,
        cancel_activities: CancelActivities,
        crossing: Crossing,
        deleting: Deleting,
        archiving: Archiving,
        *,
        at_once: bool = False,
    ) -> None:
        self._at_once = at_once
        self._dispatcher = dispatcher
        self._items = items
        self._cancel_activities = cancel_activities
        self._crossing = crossing
        self._deleting = deleting
        self._archiving = archiving

    async def process(self, commit: Commit) -> None:
        """What the dispatcher raises is raised when all else is done."""
        offers: list[Coroutine[Any, Any, None]] = []
        cancelled: list[CancelActivity] = []
        crossing: list[CrossRunTask] = []
        for task in commit.tasks:
            if type(task) is CancelActivity:
                cancelled.append(task)
            elif isinstance(task, CrossRunTask):
                crossing.append(task)
            elif type(task) not in NOT_RUN:
                offers.append(TASKS[type(task)](self, commit, task))
                if not self._at_once:
                    await offers.pop()
        failed = [error for error in await asyncio.gather(*offers, return_exceptions=True) if error] if offers else ()
        if crossing:
            self._crossing.committed(commit, crossing)
        if cancelled:
            await self._cancel_activities(commit.key, cancelled[0].run_id or commit.run_id, cancelled)
        if failed:
            raise failed[0]

    async def _dispatch_workflow_task(self, commit: Commit, task: DispatchWorkflowTask) -> None:
        ref = WorkflowTaskRef(commit.key, commit.run_id, task.attempt)
        await self._dispatcher.offer_workflow_task(
            task.task_queue, ref, commit.state.last_worker_key, task.not_before, commit.state.priority
        )

    async def _dispatch_activity_task(self, commit: Commit, task: DispatchActivityTask) -> None:
        pending = commit.state.activities.get(task.scheduled_event_id)
        if pending is not None and pending.scheduled_seq == commit.seq:
            self._items.scheduled(commit.key, commit.run_id, task.scheduled_event_id)
        activity = ActivityTaskRef(commit.key, commit.run_id, task.scheduled_event_id, task.attempt)
        await self._dispatcher.offer_activity_task(
            task.task_queue, activity, task.not_before, pending.priority if pending is not None else None
        )

    async def _delete_run(self, commit: Commit, task: DeleteRun) -> None:
        self._deleting.committed(commit.key, task.run_id)

    async def _archive_runs(self, commit: Commit, task: ArchiveRuns) -> None:
        self._archiving.committed(commit.key)


TASKS: dict[type, Callable[[TaskProcessor, Commit, Any], Coroutine[Any, Any, None]]] = {
    DispatchWorkflowTask: TaskProcessor._dispatch_workflow_task,
    DispatchActivityTask: TaskProcessor._dispatch_activity_task,
    DeleteRun: TaskProcessor._delete_run,
    ArchiveRuns: TaskProcessor._archive_runs,
}
"""What is run one by one. With ``NOT_RUN`` complete: a test compares them with the union of tasks."""
