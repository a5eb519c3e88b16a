"""Polls of a worker whose tasks wait in message queues: receive there, then have the hint turned into a task.

The control plane on AWS holds no calls, so it names queues that workers receive from themselves (design section 8). For
the worker nothing changes: its poll is answered with tasks. What it does not see: a message is a hint, which may be old
or come twice; it is deleted when its task is answered, and given out again when its worker is lost.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from ..api import operations as o
from ..api import requests as r
from ..api.errors import ApiError, InvalidArgument, NotFound, PermissionDenied, Unauthenticated
from ..api.limits import POLL_TIMEOUT
from ..api.operations import Operation
from . import Transport

Req = TypeVar("Req")
Resp = TypeVar("Resp")

_log = logging.getLogger("stepwell.worker")

SOURCES_KEPT_SECONDS = 60.0
"""How long what the engine said about a task queue's messages is believed. Asking is also how a worker says that it
is there."""

MOST_MESSAGES = 10
"""Of one receive call; the limit of SQS."""

WORKFLOW_TASK_SECONDS = 20
"""How long a message of a workflow task is held: the default workflow task timeout (10 s), and as much again for the
way. A task that is not answered by then is given out again, and of two answers one counts."""

ACTIVITY_SECONDS = 30
"""The message is deleted as soon as the engine has recorded that the attempt has started."""


class Received(NamedTuple):
    body: str
    handle: str
    """With which to delete it."""


class MessageQueues(Protocol):
    """Raises ``Unavailable``."""

    async def receive(self, queue: str, maximum: int, wait: float, hold: int) -> Sequence[Received]:
        """Up to ``maximum`` messages, after at most ``wait`` seconds; nobody else gets them for ``hold`` seconds."""
        ...

    async def delete(self, queue: str, handles: Sequence[str]) -> None: ...

    async def close(self) -> None: ...


class _Message(NamedTuple):
    queue: str
    handle: str


class _Sources(NamedTuple):
    workflow: tuple[str, ...]
    activity: tuple[str, ...]
    until: float


class QueueFedTransport:
    """Wraps the transport to an engine. Where that hands tasks out itself, polls go through unchanged."""

    def __init__(self, inner: Transport, queues: MessageQueues) -> None:
        self._inner = inner
        self._queues = queues
        self._sources: dict[tuple[str, str], _Sources] = {}
        self._held: dict[bytes, _Message] = {}
        """Messages of workflow tasks and queries that are being worked on, by task token."""
        self._polls: dict[tuple[str, str], set[asyncio.Task[Any]]] = {}
        self._stopped: set[tuple[str, str]] = set()
        self._turn = 0

    async def call(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        if isinstance(request, r.PollWorkflowTaskRequest):
            return cast(Resp, await self._poll_workflow_task(request))
        if isinstance(request, r.PollActivityTaskRequest):
            return cast(Resp, await self._poll_activity_task(request))
        if isinstance(request, r.ShutdownWorkerRequest):
            self._end_polls(request)
            return await self._inner.call(operation, request)
        token = getattr(request, "task_token", b"") if operation in _ANSWERS else b""
        response = await self._inner.call(operation, request)
        if token and token in self._held:
            await self._delete([self._held.pop(token)])
        return response

    async def close(self) -> None:
        await self._queues.close()
        await self._inner.close()

    # --- polls ---

    async def _poll_workflow_task(self, request: r.PollWorkflowTaskRequest) -> r.PollWorkflowTaskResponse:
        queues = (await self._sources_of(request)).workflow
        if not queues:
            return await self._inner.call(o.POLL_WORKFLOW_TASK, request)
        tasks = await self._until_some(request, queues, WORKFLOW_TASK_SECONDS, self._start_workflow_task)
        return r.PollWorkflowTaskResponse(tasks=tuple(tasks))

    async def _poll_activity_task(self, request: r.PollActivityTaskRequest) -> r.PollActivityTaskResponse:
        queues = (await self._sources_of(request)).activity
        if not queues:
            return await self._inner.call(o.POLL_ACTIVITY_TASK, request)
        tasks = await self._until_some(request, queues, ACTIVITY_SECONDS, self._start_activity_task)
        return r.PollActivityTaskResponse(tasks=tuple(tasks))

    async def _sources_of(self, request: r.PollWorkflowTaskRequest | r.PollActivityTaskRequest) -> _Sources:
        key = (request.namespace, request.task_queue)
        known = self._sources.get(key)
        now = time.monotonic()
        if known is not None and now < known.until:
            return known
        asked = r.GetTaskSourcesRequest(
            namespace=request.namespace, task_queue=request.task_queue, worker=request.worker
        )
        try:
            answer = await self._inner.call(o.GET_TASK_SOURCES, asked)
        except NotFound:  # an engine of a release that has no such operation
            answer = r.GetTaskSourcesResponse()
        found = _Sources(answer.workflow_queues, answer.activity_queues, now + SOURCES_KEPT_SECONDS)
        self._sources[key] = found
        return found

    async def _until_some(
        self,
        request: r.PollWorkflowTaskRequest | r.PollActivityTaskRequest,
        queues: tuple[str, ...],
        hold: int,
        start: Any,
    ) -> list[Any]:
        ends = time.monotonic() + (request.timeout or POLL_TIMEOUT).total_seconds()
        key = (request.task_queue, request.worker.worker_key)
        while (left := ends - time.monotonic()) > 0 and key not in self._stopped:
            self._turn += 1
            queue = queues[self._turn % len(queues)]
            # Of several partitions none may be waited for while another has something.
            wait = left if len(queues) == 1 else min(left, 1.0)
            maximum = min(request.maximum_tasks, MOST_MESSAGES)
            received = await self._receive(key, queue, maximum, wait, hold)
            if received:
                # What is received is started even if the caller goes away: the engine gives back what nobody answers.
                begun = await asyncio.gather(*(start(request, queue, message) for message in received))
                tasks = [task for task in begun if task is not None]
                if tasks:
                    return tasks
        return []

    async def _receive(
        self, key: tuple[str, str], queue: str, maximum: int, wait: float, hold: int
    ) -> Sequence[Received]:
        """Ended by the worker's shutdown; what arrives then is given out again after ``hold`` seconds."""
        receiving = asyncio.ensure_future(self._queues.receive(queue, maximum, wait, hold))
        open_polls = self._polls.setdefault(key, set())
        open_polls.add(receiving)
        try:
            await asyncio.wait((receiving,))
        finally:
            open_polls.discard(receiving)
            receiving.cancel()
        return () if receiving.cancelled() else receiving.result()

    def _end_polls(self, request: r.ShutdownWorkerRequest) -> None:
        key = (request.task_queue, request.worker.worker_key)
        self._stopped.add(key)
        for receiving in self._polls.get(key, ()):
            receiving.cancel()

    # --- from hints to tasks ---

    async def _start_workflow_task(
        self, request: r.PollWorkflowTaskRequest, queue: str, message: Received
    ) -> r.WorkflowTask | None:
        held = _Message(queue, message.handle)
        asked = r.StartWorkflowTaskRequest(
            namespace=request.namespace, task_queue=request.task_queue, worker=request.worker, hint=message.body
        )
        task: r.WorkflowTask | None = await self._started(o.START_WORKFLOW_TASK, asked, held)
        if task is not None:
            self._held[task.task_token] = held
            self._forget_old()
        return task

    async def _start_activity_task(
        self, request: r.PollActivityTaskRequest, queue: str, message: Received
    ) -> r.ActivityTask | None:
        held = _Message(queue, message.handle)
        asked = r.StartActivityTaskRequest(
            namespace=request.namespace, task_queue=request.task_queue, worker=request.worker, hint=message.body
        )
        task: r.ActivityTask | None = await self._started(o.START_ACTIVITY_TASK, asked, held)
        if task is not None:
            await self._delete([held])
        return task

    async def _started(self, operation: Operation[Any, Any], request: Any, message: _Message) -> Any:
        """The task; None when there is none any more, and then the message is deleted, or not now."""
        try:
            task = (await self._inner.call(operation, request)).task
        except InvalidArgument as error:
            _log.warning("A message of %s is dropped: %s", request.task_queue, error)
            task = None
        except ApiError as error:
            _log.warning("A task of %s could not be started and will be offered again: %s", request.task_queue, error)
            return None
        if task is None:
            await self._delete([message])
        return task

    async def _delete(self, messages: list[_Message]) -> None:
        """One that stays is given out again, and is found to be out of date."""
        for message in messages:
            try:
                await self._queues.delete(message.queue, [message.handle])
            except (PermissionDenied, Unauthenticated) as error:
                _log.warning("Messages that are done with come again and again: %s", error)
            except ApiError as error:
                _log.info("A message that is done with comes again: %s", error)

    def _forget_old(self) -> None:
        """Tasks that are never answered, because their workers gave them up."""
        while len(self._held) > _MOST_HELD:
            del self._held[next(iter(self._held))]


_MOST_HELD = 10_000
_ANSWERS: tuple[Operation[Any, Any], ...] = (
    o.RESPOND_WORKFLOW_TASK_COMPLETED,
    o.RESPOND_WORKFLOW_TASK_FAILED,
    o.RESPOND_QUERY_TASK_COMPLETED,
)
