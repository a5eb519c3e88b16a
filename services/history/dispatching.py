"""The dispatcher of an engine that matches in memory: history's hints on matching's queues."""

from datetime import datetime

from stepwell.api.common import Priority
from stepwell.api.enums import TaskQueueKind

from ..common.spaces import namespace_of
from ..matching.service import Matching, QueueName
from .ports import ActivityTaskRef, QueryTaskRef, WorkflowTaskRef
from .task_tokens import ActivityToken


class MatchingDispatcher:
    """Implements ``ports.Dispatcher``. Its methods never suspend."""

    def __init__(self, matching: Matching) -> None:
        self._matching = matching

    async def offer_workflow_task(
        self,
        task_queue: str,
        ref: WorkflowTaskRef,
        prefer_worker: str = "",
        not_before: datetime | None = None,
        priority: Priority | None = None,
    ) -> None:
        name = QueueName(ref.key.namespace, task_queue, TaskQueueKind.WORKFLOW)
        self._matching.offer(name, ref, prefer_worker, not_before, priority)

    async def offer_activity_task(
        self,
        task_queue: str,
        ref: ActivityTaskRef,
        not_before: datetime | None = None,
        priority: Priority | None = None,
    ) -> None:
        name = QueueName(namespace_of(ref.key.namespace), task_queue, TaskQueueKind.ACTIVITY)
        self._matching.offer(name, ref, "", not_before, priority)

    async def offer_query_task(self, task_queue: str, ref: QueryTaskRef, prefer_worker: str = "") -> None:
        name = QueueName(ref.key.namespace, task_queue, TaskQueueKind.WORKFLOW)
        self._matching.offer(name, ref, prefer_worker)

    def takes_eagerly(self, namespace: str, task_queue: str) -> bool:
        if not self._matching.has_limits:
            return True
        return not self._matching.is_limited(QueueName(namespace, task_queue, TaskQueueKind.ACTIVITY))

    def push_cancel(self, task_queue: str, worker_key: str, token: ActivityToken) -> None:
        name = QueueName(namespace_of(token.namespace), task_queue, TaskQueueKind.ACTIVITY)
        self._matching.push(name, worker_key, token)
