"""Queries: a rendezvous in memory between a caller that waits and a worker that answers. No history, nothing durable.

A query sees every event recorded before it (MS-20): it goes to a worker only while no workflow task is outstanding, or
one that shows nothing new, and otherwise waits for that task to close. A task that keeps failing would make it wait for
ever, so then it is refused at once and names the cause (WC-18).
"""

import asyncio
from typing import NamedTuple

from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import QueryRejectCondition, TaskQueueKind, WorkflowExecutionStatus
from stepwell.api.errors import (
    DeadlineExceeded,
    FailedPrecondition,
    NotFound,
    QueryFailed,
    QueryRejected,
    Unavailable,
)
from stepwell.api.requests import (
    QueryWorkflowRequest,
    QueryWorkflowResponse,
    RespondQueryTaskCompletedRequest,
    RespondQueryTaskCompletedResponse,
    WorkerInfo,
    WorkflowQuery,
    WorkflowTask,
)

from ..common.clock import Clock, IdSource
from ..common.settings import EngineSettings, at_most
from ..matching.service import Matching, QueueName
from .commit import Commit, ExecutionKey
from .ports import QueryTaskRef
from .reading import HistoryReader
from .state import ExecutionState
from .tokens import QueryToken, TokenSigner
from .watchers import Watchers

_CLEAN = (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.COMPLETED, WorkflowExecutionStatus.CONTINUED_AS_NEW)


class _Waiting(NamedTuple):
    request: QueryWorkflowRequest
    answer: "asyncio.Future[RespondQueryTaskCompletedRequest | None]"
    """None: a workflow task came in between; wait for it and ask again."""


class Queries:
    def __init__(
        self,
        reader: HistoryReader,
        watchers: Watchers,
        matching: Matching,
        signer: TokenSigner,
        clock: Clock,
        ids: IdSource,
        settings: EngineSettings,
    ) -> None:
        self._reader = reader
        self._watchers = watchers
        self._matching = matching
        self._signer = signer
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._waiting: dict[str, _Waiting] = {}
        self._started = clock.monotonic()
        self._stopped = False

    # --- the caller's side ---

    async def query(self, request: QueryWorkflowRequest) -> QueryWorkflowResponse:
        """Raises NotFound, QueryRejected, QueryFailed, FailedPrecondition (nobody serves it) and DeadlineExceeded."""
        key = ExecutionKey(request.namespace, request.execution.workflow_id)
        ends = self._clock.monotonic() + at_most(request.timeout, self._settings.query_timeout)
        state = await self._reader.state_of(key, request.execution.run_id)
        _check_reject_condition(state, request.query_reject_condition)
        await self._check_served(state, ends)
        while True:
            state = await self._without_workflow_task(key, state.run_id, ends)
            answer = await self._ask(key, state, request, ends)
            if answer is not None:
                return _answered(answer)

    async def _without_workflow_task(self, key: ExecutionKey, run_id: str, ends: float) -> ExecutionState:
        """The run's state once no workflow task is outstanding."""

        def settled(commit: Commit) -> bool:
            task = commit.state.workflow_task
            return commit.run_id != run_id or task is None or task.attempt > 1 or _has_seen_all(commit.state)

        while True:
            state = await self._reader.state_of(key, run_id)
            task = state.workflow_task
            if state.first_task_at is not None:
                raise FailedPrecondition(
                    f"the code of workflow {state.workflow_id!r} begins at {state.first_task_at.isoformat()} (start "
                    "delay, backoff or cron), so there is nothing to ask yet; ask again then",
                    retry_after=state.first_task_at.isoformat(),
                )
            if task is None or state.status is not WorkflowExecutionStatus.RUNNING or _has_seen_all(state):
                return state
            if task.attempt > 1:
                raise _failing(state)
            if await self._watchers.wait(key, settled, ends) is None and self._watchers.over(ends):
                raise self._too_late(
                    f"a workflow task of {state.workflow_id!r} has been outstanding all the time; "
                    f"look whether its worker on task queue {state.task_queue!r} is alive, then ask again"
                )

    async def _ask(
        self, key: ExecutionKey, state: ExecutionState, request: QueryWorkflowRequest, ends: float
    ) -> RespondQueryTaskCompletedRequest | None:
        query_id = self._ids.nonce()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[RespondQueryTaskCompletedRequest | None] = loop.create_future()
        self._waiting[query_id] = _Waiting(request, answer)
        name = QueueName(key.namespace, state.task_queue, TaskQueueKind.WORKFLOW)
        self._matching.offer(name, QueryTaskRef(key, state.run_id, query_id), state.last_worker_key)
        try:
            async with asyncio.timeout(max(ends - self._clock.monotonic(), 0.0)):
                return await answer
        except TimeoutError:
            raise self._too_late(
                f"no worker on task queue {state.task_queue!r} has answered query {request.query_type!r} in time; "
                "ask again, with a longer timeout if the handler is slow"
            ) from None
        finally:
            del self._waiting[query_id]

    async def _check_served(self, state: ExecutionState, ends: float) -> None:
        """Refuses at once when nobody has polled the run's task queue for a while (MS-23), where all polls are seen."""
        if not self._settings.sole_owner:
            return
        name = QueueName(state.namespace, state.task_queue, TaskQueueKind.WORKFLOW)
        limit = self._settings.query_no_poller.total_seconds()
        grace = self._started + self._settings.query_reconnect_grace.total_seconds()
        while not self._matching.ever_polled(name) and self._clock.monotonic() < min(grace, ends):
            await asyncio.sleep(0.05)
        if not self._matching.ever_polled(name) or self._matching.seconds_without_poller(name) > limit:
            raise FailedPrecondition(
                f"no worker has polled task queue {state.task_queue!r} in the last {limit:.0f} seconds, "
                "so nobody can answer; start a worker that serves it and ask again",
                task_queue=state.task_queue,
            )

    def _too_late(self, message: str) -> DeadlineExceeded | Unavailable:
        return Unavailable("the engine is stopping; ask again") if self._stopped else DeadlineExceeded(message)

    # --- the worker's side ---

    async def begin(self, ref: QueryTaskRef, worker: WorkerInfo) -> WorkflowTask | None:
        """The query task for a worker; None when nobody waits for it any more, or not now."""
        waiting = self._waiting.get(ref.query_id)
        if waiting is None or waiting.answer.done():
            return None
        state = await self._reader.state_of(ref.key, ref.run_id)
        if (
            state.workflow_task is not None
            and state.status is WorkflowExecutionStatus.RUNNING
            and not _has_seen_all(state)
        ):
            if not waiting.answer.done():
                waiting.answer.set_result(None)
            return None
        request = waiting.request
        now = self._clock.now()
        return WorkflowTask(
            task_token=self._signer.seal(QueryToken(ref.key.namespace, ref.key.workflow_id, ref.run_id, ref.query_id)),
            execution=WorkflowExecution(workflow_id=ref.key.workflow_id, run_id=ref.run_id),
            workflow_type=state.workflow_type,
            task_queue=state.task_queue,
            previous_started_event_id=state.previous_started_event_id,
            started_event_id=state.previous_started_event_id,
            scheduled_time=now,
            started_time=now,
            last_event_id=state.next_event_id - 1,
            query=WorkflowQuery(query_type=request.query_type, query_args=request.query_args, headers=request.headers),
            history_size_bytes=state.history_size,
        )

    def respond(self, request: RespondQueryTaskCompletedRequest) -> RespondQueryTaskCompletedResponse:
        """Raises NotFound when the caller has gone, or another worker has answered."""
        token = self._signer.open_as(request.task_token, QueryToken, request.namespace, "task_token")
        waiting = self._waiting.get(token.query_id)
        if waiting is None or waiting.answer.done():
            raise NotFound("nobody waits for the answer of this query any more; drop it")
        waiting.answer.set_result(request)
        return RespondQueryTaskCompletedResponse()

    def stop(self) -> None:
        """Ends all waiting queries with Unavailable."""
        self._stopped = True
        for waiting in self._waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(Unavailable("the engine is stopping; ask again"))


def _has_seen_all(state: ExecutionState) -> bool:
    """The outstanding task only goes on with the one before (AC-24): the code has seen every event that is recorded."""
    task = state.workflow_task
    return task is not None and task.kept_alive and task.attempt == 1 and not state.buffered


def _answered(answer: RespondQueryTaskCompletedRequest) -> QueryWorkflowResponse:
    if answer.failure is not None:
        raise QueryFailed(answer.failure.message or "the workflow's query handler failed")
    return QueryWorkflowResponse(result=answer.result)


def _check_reject_condition(state: ExecutionState, condition: QueryRejectCondition) -> None:
    """MS-21."""
    if condition is QueryRejectCondition.NONE:
        return
    if condition is QueryRejectCondition.NOT_OPEN:
        accepted = state.status is WorkflowExecutionStatus.RUNNING
    else:
        accepted = state.status in _CLEAN
    if not accepted:
        raise QueryRejected(
            f"workflow {state.workflow_id!r} is {state.status.value}, "
            f"which query_reject_condition {condition.value} excludes",
            status=state.status.value,
        )


def _failing(state: ExecutionState) -> FailedPrecondition:
    task = state.workflow_task
    cause = task.last_cause.value if task is not None and task.last_cause is not None else "unknown"
    failure = task.last_failure if task is not None else None
    return FailedPrecondition(
        f"the workflow task of {state.workflow_id!r} keeps failing (attempt {task.attempt if task else 0}, {cause}: "
        f"{failure.message if failure is not None else 'no message'}), so the query would see an old state; "
        "deploy workflow code that gets past it and ask again",
        cause=cause,
    )
