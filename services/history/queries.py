"""Queries: a caller that waits and a worker that answers meet on a board. No history, nothing durable.

A query sees every event recorded before it (MS-20): it goes to a worker only while no workflow task is outstanding, or
one that shows nothing new, and otherwise waits for that task to close. A task that keeps failing would make it wait for
ever, so then it is refused at once and names the cause (WC-18).
"""

import asyncio

from stepwell.api import limits
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import QueryRejectCondition, TaskQueueKind, WorkflowExecutionStatus
from stepwell.api.errors import (
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
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
from .executions import unavailable
from .pollers import Pollers
from .ports import Dispatcher, QueryAnswer, QueryBoard, QueryTaskRef, StoreUnavailable
from .reading import HistoryReader
from .state import ExecutionState
from .tokens import QueryToken, TokenSigner
from .watchers import Watchers

_CLEAN = (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.COMPLETED, WorkflowExecutionStatus.CONTINUED_AS_NEW)


class Queries:
    def __init__(
        self,
        board: QueryBoard,
        dispatcher: Dispatcher,
        reader: HistoryReader,
        watchers: Watchers,
        matching: Matching,
        pollers: Pollers,
        signer: TokenSigner,
        clock: Clock,
        ids: IdSource,
        settings: EngineSettings,
    ) -> None:
        self._board = board
        self._dispatcher = dispatcher
        self._reader = reader
        self._watchers = watchers
        self._matching = matching
        self._pollers = pollers
        self._signer = signer
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._started = clock.monotonic()
        self._stopped = False

    # --- the caller's side ---

    async def query(self, request: QueryWorkflowRequest) -> QueryWorkflowResponse:
        """Raises NotFound, QueryRejected, QueryFailed, FailedPrecondition (nobody serves it) and DeadlineExceeded."""
        key = ExecutionKey(request.namespace, request.execution.workflow_id)
        ends = self._clock.monotonic() + self._seconds(request)
        token = self._token(request, key)
        state = await self._reader.state_of(key, token.run_id)
        _check_reject_condition(state, request.query_reject_condition)
        if state.pause is not None and state.close_time is None:
            raise FailedPrecondition(
                f"workflow {state.workflow_id!r} is paused, so no worker is asked; unpause it first", cause="PAUSED"
            )
        await self._check_served(state, ends, waits=request.wait_for_worker)
        query_id = token.query_id
        try:
            while True:
                if not query_id:
                    state = await self._without_workflow_task(key, state.run_id, ends)
                    query_id = await self._ask(key, state, request)
                answer = await self._board.wait(query_id, ends - self._clock.monotonic())
                if answer is None:
                    raise self._too_late(
                        f"no worker on task queue {state.task_queue!r} has answered query {request.query_type!r} in "
                        "time; ask again, with a longer timeout if the handler is slow"
                    )
                await self._board.remove(query_id)
                if not answer.again:
                    return _answered(answer)
                query_id = ""
        except StoreUnavailable as error:
            raise unavailable(error) from error
        except DeadlineExceeded:
            if self._settings.stays:
                raise
            following = QueryToken(key.namespace, key.workflow_id, state.run_id, query_id)
            return QueryWorkflowResponse(query_token=self._signer.seal(following))
        finally:
            if query_id and self._settings.stays:
                await self._board.remove(query_id)

    def _seconds(self, request: QueryWorkflowRequest) -> float:
        """How long the call may be held here."""
        if not self._settings.stays:
            return 0.0
        usual = self._settings.query_timeout
        return at_most(usual if request.timeout is None else request.timeout, max(usual, limits.MAX_QUERY_TIMEOUT))

    def _token(self, request: QueryWorkflowRequest, key: ExecutionKey) -> QueryToken:
        """Where a caller that asks again is; one that comes for the first time is at the beginning."""
        if not request.query_token:
            return QueryToken(*key, request.execution.run_id, "")
        token = self._signer.open_as(request.query_token, QueryToken, request.namespace, "query_token")
        if token.workflow_id != key.workflow_id:
            raise InvalidArgument(
                "query_token belongs to a query of another workflow; ask this one without a token", field="query_token"
            )
        return token

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

    async def _ask(self, key: ExecutionKey, state: ExecutionState, request: QueryWorkflowRequest) -> str:
        """Posts the query and offers it to the run's workers; its id."""
        query_id = self._ids.nonce()
        await self._board.post(query_id, request, expires_at=self._clock.now() + limits.MAX_QUERY_TIMEOUT)
        ref = QueryTaskRef(key, state.run_id, query_id)
        await self._dispatcher.offer_query_task(state.task_queue, ref, state.last_worker_key)
        return query_id

    async def _check_served(self, state: ExecutionState, ends: float, *, waits: bool) -> None:
        """Refuses when nobody has polled the run's task queue for a while (MS-23), where all polls are seen: at once,
        or when the caller's time is over."""
        if not self._settings.sole_owner and not self._pollers.are_all_known:
            return
        name = QueueName(state.namespace, state.task_queue, TaskQueueKind.WORKFLOW)
        limit = self._settings.query_no_poller
        grace = self._started + self._settings.query_reconnect_grace.total_seconds()
        while not await self._pollers.polled_within(name, limit):
            now = self._clock.monotonic()
            if now < ends and (waits or (now < grace and not self._matching.ever_polled(name))):
                await asyncio.sleep(0.05)
                continue
            if waits and self._matching.seconds_since_shutdown(name) <= limit.total_seconds():
                # its worker restarts, as it seems: to who has waited for it, this is a matter of time
                raise self._too_late(
                    f"no worker has polled task queue {state.task_queue!r} again since the last one stopped; ask again"
                )
            raise FailedPrecondition(
                f"no worker has polled task queue {state.task_queue!r} in the last {limit.total_seconds():.0f} "
                "seconds, so nobody can answer; start a worker that serves it and ask again",
                task_queue=state.task_queue,
            )

    def _too_late(self, message: str) -> DeadlineExceeded | Unavailable:
        return Unavailable("the engine is stopping; ask again") if self._stopped else DeadlineExceeded(message)

    # --- the worker's side ---

    async def begin(self, ref: QueryTaskRef, worker: WorkerInfo) -> WorkflowTask | None:
        """The query task for a worker; None when nobody waits for it any more, or not now."""
        try:
            request = await self._board.asked(ref.query_id)
            if request is None:
                return None
            state = await self._reader.state_of(ref.key, ref.run_id)
            running = state.status is WorkflowExecutionStatus.RUNNING
            if state.workflow_task is not None and running and not _has_seen_all(state):
                await self._board.answer(ref.query_id, QueryAnswer(again=True))
                return None
        except StoreUnavailable as error:
            raise unavailable(error) from error
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
            same_worker=bool(worker.worker_key) and worker.worker_key == state.last_worker_key,
        )

    async def respond(self, request: RespondQueryTaskCompletedRequest) -> RespondQueryTaskCompletedResponse:
        """Raises NotFound when the caller has gone, or another worker has answered."""
        token = self._signer.open_as(request.task_token, QueryToken, request.namespace, "task_token")
        answer = QueryAnswer(result=request.result, failure=request.failure)
        try:
            taken = await self._board.answer(token.query_id, answer)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        if not taken:
            raise NotFound("nobody waits for the answer of this query any more; drop it")
        return RespondQueryTaskCompletedResponse()

    def stop(self) -> None:
        """Ends all waiting queries with Unavailable."""
        self._stopped = True
        self._board.stop()


def _has_seen_all(state: ExecutionState) -> bool:
    """The outstanding task only goes on with the one before (AC-24): the code has seen every event that is recorded."""
    task = state.workflow_task
    return task is not None and task.kept_alive and task.attempt == 1 and not state.buffered


def _answered(answer: QueryAnswer) -> QueryWorkflowResponse:
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
