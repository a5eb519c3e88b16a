"""Long polls: waits on a task queue, turns hints into tasks, and gives back what could not be delivered (WC-32)."""

import asyncio
import logging
from collections.abc import Hashable, Sequence
from datetime import datetime

from stepwell.api import limits
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import TaskQueueKind
from stepwell.api.errors import InvalidArgument, Unavailable
from stepwell.api.requests import (
    ActivityTask,
    PollActivityTaskRequest,
    PollActivityTaskResponse,
    PollWorkflowTaskRequest,
    PollWorkflowTaskResponse,
    StartActivityTaskRequest,
    StartActivityTaskResponse,
    StartWorkflowTaskRequest,
    StartWorkflowTaskResponse,
    WorkerInfo,
    WorkflowTask,
)

from ..common import metric_names as names
from ..common.background import Background
from ..common.clock import Clock
from ..common.metrics import NO_METRICS, Metrics
from ..common.settings import EngineSettings, at_most
from ..common.spaces import has_activities, namespace_of
from ..matching.service import Matching, QueueName
from ..matching.task_queue import Push
from . import attempt_ends
from .activities_shell import ActivityShell, Started
from .activity_item import queue_of
from .commit import ExecutionKey
from .hints import Ref, UnreadableHint, decode_hint
from .liveness import Liveness
from .pollers import Pollers
from .ports import ActivityTaskRef, QueryTaskRef, WorkflowTaskRef
from .queries import Queries
from .task_tokens import ActivityToken, WorkflowTaskToken
from .tokens import TokenSigner
from .workflow_tasks_shell import WorkflowTaskShell

log = logging.getLogger(__name__)

_STORE_PAUSE = 1.0
"""Seconds until a hint is tried again that the store could not serve."""


_EVENTS_PER_POLL = limits.MAX_HISTORY_PAGE_EVENTS
"""A poll is given no further workflow task once those it has hold this many events."""


class Polling:
    def __init__(
        self,
        matching: Matching,
        pollers: Pollers,
        workflow_tasks: WorkflowTaskShell,
        activities: ActivityShell,
        queries: Queries,
        signer: TokenSigner,
        clock: Clock,
        settings: EngineSettings,
        background: Background,
        liveness: Liveness,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        self._metrics = metrics
        self._measures = metrics is not NO_METRICS
        self._liveness = liveness
        self._matching = matching
        self._pollers = pollers
        self._workflow_tasks = workflow_tasks
        self._activities = activities
        self._queries = queries
        self._signer = signer
        self._clock = clock
        self._settings = settings
        self._background = background

    # --- workflow tasks and queries ---

    async def workflow_task(self, request: PollWorkflowTaskRequest) -> PollWorkflowTaskResponse:
        name = QueueName(request.namespace, request.task_queue, TaskQueueKind.WORKFLOW)
        await self._pollers.note(name, request.worker)
        most = min(max(request.maximum_tasks, 1), limits.MAX_TASKS_PER_POLL)
        ends = self._ends(request)
        while (
            ref := await self._matching.poll(name, request.worker, ends - self._clock.monotonic(), maximum=most)
        ) is not None:
            refs = [ref, *self._matching.take_more(name, request.worker, most - 1)]
            tasks = await self._begin_all(name, refs, request.worker)
            if tasks:
                if self._measures:
                    for task in tasks:
                        self._waited(task)
                return PollWorkflowTaskResponse(tasks=tuple(tasks))
        return PollWorkflowTaskResponse()

    async def _begin_all(self, name: QueueName, refs: list[Hashable], worker: WorkerInfo) -> list[WorkflowTask]:
        """One after the other, since they rarely wait for the store, until they are enough for one answer; the rest is
        put back. Raises only when there is no task to return."""
        tasks: list[WorkflowTask] = []
        events = 0
        refused: Exception | None = None
        while refs and events < _EVENTS_PER_POLL:
            try:
                task = await self._begin(refs[0], worker)
            except asyncio.CancelledError:
                for begun in reversed(tasks):
                    self._undelivered_workflow_task(begun)
                for ref in reversed(refs):
                    self._matching.put_back(name, ref)
                raise
            except Exception as error:
                self._try_later(name, refs[0], error)
                refused = error
            else:
                self._matching.used(name, refs[0])
                if task is not None:
                    tasks.append(task)
                    events += len(task.events)
            del refs[0]
        for ref in reversed(refs):
            self._matching.put_back(name, ref)
        if refused is not None and not tasks:
            raise refused
        return tasks

    async def _begin(self, ref: Hashable, worker: WorkerInfo) -> WorkflowTask | None:
        if isinstance(ref, QueryTaskRef):
            return await self._queries.begin(ref, worker)
        if isinstance(ref, WorkflowTaskRef):
            return await self._workflow_tasks.begin(ref, worker)
        raise TypeError(f"a {type(ref).__name__} is not a hint of a workflow task queue")

    async def start_workflow_task(self, request: StartWorkflowTaskRequest) -> StartWorkflowTaskResponse:
        """For a hint that a queue outside this process gave to the worker."""
        ref = _hint(request)
        if isinstance(ref, WorkflowTaskRef):
            task = await self._workflow_tasks.begin(ref, request.worker, request.task_queue)
        else:
            task = await self._begin(ref, request.worker)
        if self._measures and task is not None:
            self._waited(task)
        return StartWorkflowTaskResponse(task=task)

    # --- activities ---

    async def activity_task(self, request: PollActivityTaskRequest) -> PollActivityTaskResponse:
        name = QueueName(request.namespace, request.task_queue, TaskQueueKind.ACTIVITY)
        await self._pollers.note(name, request.worker)
        most = min(max(request.maximum_tasks, 1), limits.MAX_TASKS_PER_POLL)
        ends = self._ends(request)
        limit = request.max_tasks_per_second
        while (
            ref := await self._matching.poll(name, request.worker, ends - self._clock.monotonic(), limit, most)
        ) is not None:
            if self._liveness.is_gone(request.worker.process):
                # Killed, and its connection's end not noticed yet: an attempt given to it would be lost and count.
                self._matching.put_back(name, ref)
                return PollActivityTaskResponse()
            refs = [ref, *self._matching.take_more(name, request.worker, most - 1)]
            words = [ref.word for ref in refs if isinstance(ref, Push)]
            cancelled = tuple([self._signer.seal(word) for word in words if isinstance(word, ActivityToken)])
            refs = [ref for ref in refs if not isinstance(ref, Push)]
            # Attempts are recorded as started, so they are finished being started even if the caller goes away.
            starting = asyncio.ensure_future(self._start_all(name, refs, request.worker))
            try:
                started = await asyncio.shield(starting)
            except asyncio.CancelledError:
                self._background.spawn(self._take_back(starting))
                raise
            if started or cancelled:
                tasks = tuple([self._task(one) for one in started])
                return PollActivityTaskResponse(tasks=tasks, cancel_requested=cancelled)
        return PollActivityTaskResponse()

    async def start_activity_task(self, request: StartActivityTaskRequest) -> StartActivityTaskResponse:
        """As ``start_workflow_task``. An attempt whose worker gives up waiting for this answer ends by its timeout."""
        name = QueueName(request.namespace, request.task_queue, TaskQueueKind.ACTIVITY)
        starting = asyncio.ensure_future(self._start(name, _hint(request), request.worker))
        try:
            started = await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._background.spawn(self._take_back_one(starting))
            raise
        return StartActivityTaskResponse(task=None if started is None else self._task(started))

    async def _take_back_one(self, starting: "asyncio.Future[Started | None]") -> None:
        started = await starting
        if started is not None:
            await self._activities.take_back(started)

    async def _start_all(self, name: QueueName, refs: Sequence[Hashable], worker: WorkerInfo) -> list[Started]:
        if len(refs) == 1:
            found = [await self._start(name, refs[0], worker)]
        else:
            found = list(await asyncio.gather(*(self._start(name, ref, worker) for ref in refs)))
        return [one for one in found if one is not None]

    async def _start(self, name: QueueName, ref: Hashable, worker: WorkerInfo) -> Started | None:
        if not isinstance(ref, ActivityTaskRef):
            raise TypeError(f"a {type(ref).__name__} is not a hint of an activity task queue")
        try:
            started = await self._activities.start(ref, worker, name.task_queue)
            if started is not None:
                self._matching.used(name, ref)
                if self._measures:
                    item = started.item
                    since = started.before.next_attempt_time or item.scheduled_time
                    self._tell(since, item.started_time or since)
                return started
        except Unavailable as error:
            self._try_later(name, ref, error)
            return None
        except Exception:
            log.exception("Activity %r could not be started; its deadline sends it again", ref)
        self._matching.used(name, ref)
        self._matching.not_gone_out(name)
        return None

    def _try_later(self, name: QueueName, ref: Hashable, error: Exception) -> None:
        log.warning("A task of queue %r has to wait: %s", name.task_queue, error)
        loop = asyncio.get_running_loop()
        loop.call_later(_STORE_PAUSE, self._matching.put_back, name, ref)

    async def _take_back(self, starting: "asyncio.Future[list[Started]]") -> None:
        for started in await starting:
            await self._activities.take_back(started)

    def _task(self, started: Started) -> ActivityTask:
        state, item, scheduled = started.state, started.item, started.scheduled
        token = attempt_ends.token_of(item)
        alone = has_activities(state.namespace)
        return ActivityTask(
            task_token=self._signer.seal(token),
            execution=WorkflowExecution(
                workflow_id="" if alone else state.workflow_id, run_id="" if alone else state.run_id
            ),
            workflow_type="" if alone else state.workflow_type,
            activity_run_id=state.run_id if alone else "",
            activity_id=item.activity_id,
            activity_type=item.activity_type,
            task_queue=queue_of(started.pending, item),
            headers=scheduled.headers,
            input=scheduled.input,
            heartbeat_details=item.heartbeat_details,
            attempt=item.attempt,
            scheduled_time=item.scheduled_time,
            current_attempt_scheduled_time=started.before.next_attempt_time or item.scheduled_time,
            started_time=item.started_time or item.scheduled_time,
            schedule_to_close_timeout=item.schedule_to_close_timeout,
            start_to_close_timeout=item.start_to_close_timeout,
            heartbeat_timeout=item.heartbeat_timeout,
            retry_policy=item.retry_policy,
            priority=started.pending.priority,
        )

    # --- both ---

    def _waited(self, task: WorkflowTask) -> None:
        """How long a task waited for a worker. Of queries that is told to who asks, and later attempts wait on
        purpose."""
        if task.attempt == 1 and task.query is None:
            self._tell(task.scheduled_time, task.started_time)

    def _tell(self, since: datetime, until: datetime) -> None:
        seconds = max((until - since).total_seconds(), 0.0)
        self._metrics.record(names.SCHEDULE_TO_START, seconds * 1_000)
        # What goes out has waited for longest.
        self._metrics.record(names.BACKLOG_AGE, seconds)

    async def undelivered(self, response: PollWorkflowTaskResponse | PollActivityTaskResponse) -> None:
        if isinstance(response, PollWorkflowTaskResponse):
            for workflow_task in reversed(response.tasks):
                self._undelivered_workflow_task(workflow_task)
            return
        for task in response.tasks:
            token = self._signer.open(task.task_token, "task_token")
            if isinstance(token, ActivityToken):
                key = ExecutionKey(token.namespace, token.workflow_id)
                await self._activities.give_back(key, token)

    def _undelivered_workflow_task(self, task: WorkflowTask) -> None:
        token = self._signer.open(task.task_token, "task_token")
        if not isinstance(token, WorkflowTaskToken):
            return  # a query: its caller asks again
        ref = WorkflowTaskRef(ExecutionKey(token.namespace, token.workflow_id), token.run_id, token.attempt)
        self._workflow_tasks.give_back(ref)
        self._matching.put_back(QueueName(token.namespace, task.task_queue, TaskQueueKind.WORKFLOW), ref)

    def _ends(self, request: PollWorkflowTaskRequest | PollActivityTaskRequest) -> float:
        return self._clock.monotonic() + at_most(request.timeout, self._settings.poll_timeout)


def _hint(request: StartWorkflowTaskRequest | StartActivityTaskRequest) -> Ref:
    """Raises InvalidArgument: such a message is nothing for this queue, now or later."""
    try:
        ref = decode_hint(request.hint)
    except UnreadableHint as error:
        raise InvalidArgument(
            f"hint is not one that the engine sent ({error}); drop the message", field="hint"
        ) from None
    if namespace_of(ref.key.namespace) != request.namespace:
        raise InvalidArgument(
            f"hint is of another namespace than {request.namespace!r}; drop the message: it came to the wrong queue",
            field="hint",
        )
    if isinstance(ref, ActivityTaskRef) != isinstance(request, StartActivityTaskRequest):
        raise InvalidArgument(
            "hint is of another kind of task; send workflow tasks and queries to StartWorkflowTask, activities to "
            "StartActivityTask",
            field="hint",
        )
    return ref
