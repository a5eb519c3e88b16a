"""The dispatcher where queues outlive processes: hints go to a poll that waits in this process, else to the queues.

A hint that cannot be sent is no loss: it stays with this process's matching, which tries again, or is left to the
deadline that sends again what nobody took. Only who is asked again anyway (the feed, a timer message) wants to know
(``strict``).
"""

import logging
from datetime import datetime

from stepwell.api.common import Priority
from stepwell.api.enums import TaskQueueKind

from ..common.clock import Clock
from ..common.spaces import namespace_of
from ..matching.ports import LONGEST_DELAY, QueueError, TaskQueues
from ..matching.service import Matching, QueueName
from .hints import Ref, encode_hint
from .ports import ActivityTaskRef, QueryTaskRef, WorkflowTaskRef
from .task_tokens import ActivityToken

log = logging.getLogger(__name__)

_NEAR = 2.0
"""Seconds up to which a hint that is not due yet waits in this process, since queues count in whole seconds."""


class QueueDispatcher:
    """Implements ``ports.Dispatcher``. ``matching`` is that of this process when polls are held in it. ``strict``: a
    hint that could not be sent raises QueueError."""

    def __init__(
        self, queues: TaskQueues, clock: Clock, matching: Matching | None = None, *, strict: bool = False
    ) -> None:
        self._queues = queues
        self._clock = clock
        self._matching = matching
        self._strict = strict

    async def offer_workflow_task(
        self,
        task_queue: str,
        ref: WorkflowTaskRef,
        prefer_worker: str = "",
        not_before: datetime | None = None,
        priority: Priority | None = None,
    ) -> None:
        name = QueueName(ref.key.namespace, task_queue, TaskQueueKind.WORKFLOW)
        await self._offer(name, ref, prefer_worker, not_before, priority)

    async def offer_activity_task(
        self,
        task_queue: str,
        ref: ActivityTaskRef,
        not_before: datetime | None = None,
        priority: Priority | None = None,
    ) -> None:
        name = QueueName(namespace_of(ref.key.namespace), task_queue, TaskQueueKind.ACTIVITY)
        await self._offer(name, ref, "", not_before, priority)

    async def offer_query_task(self, task_queue: str, ref: QueryTaskRef, prefer_worker: str = "") -> None:
        name = QueueName(ref.key.namespace, task_queue, TaskQueueKind.WORKFLOW)
        await self._offer(name, ref, prefer_worker, None, None)

    def takes_eagerly(self, namespace: str, task_queue: str) -> bool:
        name = QueueName(namespace, task_queue, TaskQueueKind.ACTIVITY)
        return self._matching is None or not self._matching.is_limited(name)

    def push_cancel(self, task_queue: str, worker_key: str, token: ActivityToken) -> None:
        """A worker whose poll is elsewhere hears of it in the answer to its heartbeat."""
        if self._matching is not None:
            name = QueueName(namespace_of(token.namespace), task_queue, TaskQueueKind.ACTIVITY)
            self._matching.push(name, worker_key, token)

    async def _offer(
        self,
        name: QueueName,
        ref: Ref,
        prefer_worker: str,
        not_before: datetime | None,
        priority: Priority | None,
    ) -> None:
        delay = 0.0 if not_before is None else max((not_before - self._clock.now()).total_seconds(), 0.0)
        if delay > LONGEST_DELAY:
            return  # the deadline sends it when it is due
        matching = self._matching
        if matching is not None and delay <= _NEAR and (delay or matching.has_waiting_poller(name)):
            matching.offer(name, ref, prefer_worker, not_before, priority)
            return
        fairness_key = "" if priority is None else priority.fairness_key
        try:
            await self._queues.send(name, encode_hint(ref, priority), delay, fairness_key)
        except QueueError as error:
            if self._strict:
                raise
            log.warning("A hint of task queue %r could not be sent (%s)", name.task_queue, error)
            if matching is not None:
                matching.offer(name, ref, prefer_worker, not_before, priority)
