"""Answers queries: from the cached run, else from one that is replayed for it."""

import logging

from ..api.errors import ApiError
from ..api.limits import MAX_PAYLOAD_BYTES
from ..api.operations import RESPOND_QUERY_TASK_COMPLETED
from ..api.payloads import Payloads, size_of
from ..api.requests import RespondQueryTaskCompletedRequest, WorkflowQuery, WorkflowTask
from ..converter import DataConverter
from ..replay.errors import ReadOnlyContextError, UnansweredQueryError, WorkflowTaskError
from ..replay.queries import query_failure
from ..workflow.dynamic import workflow_for
from .cached_run import CachedRun, RunCache
from .engine_calls import EngineCalls
from .failure_log import FailureLog
from .workflow_turns import WorkflowTurns

_log = logging.getLogger("stepwell.worker")


class QueryAnswers:
    """One per worker."""

    def __init__(
        self,
        *,
        calls: EngineCalls,
        converter: DataConverter,
        namespace: str,
        cache: RunCache,
        turns: WorkflowTurns,
        failures: FailureLog,
    ) -> None:
        self._calls = calls
        self._converter = converter
        self._namespace = namespace
        self._cache = cache
        self._turns = turns
        self._failures = failures

    async def answer(self, task: WorkflowTask, query: WorkflowQuery) -> None:
        request = await self._response(task, query)
        try:
            await self._calls.once(RESPOND_QUERY_TASK_COMPLETED, request)
        except ApiError as error:
            _log.debug("Nobody waits any more for query %r of %s: %s", query.query_type, task.execution, error)

    async def _response(self, task: WorkflowTask, query: WorkflowQuery) -> RespondQueryTaskCompletedRequest:
        try:
            result = await self._query(task, query)
            size = size_of(result)
            if size > MAX_PAYLOAD_BYTES:
                raise UnansweredQueryError(
                    f"result of {query.query_type!r} has {size} bytes, the limit is {MAX_PAYLOAD_BYTES}"
                )
        except ApiError:
            raise
        except WorkflowTaskError as error:
            failure = error.failure
        except Exception as error:
            if isinstance(error, ReadOnlyContextError):
                self._failures.report_query(task, query.query_type, error)
            failure = query_failure(self._converter, error)
        else:
            return RespondQueryTaskCompletedRequest(
                namespace=self._namespace, task_token=task.task_token, result=result
            )
        return RespondQueryTaskCompletedRequest(namespace=self._namespace, task_token=task.task_token, failure=failure)

    async def _query(self, task: WorkflowTask, query: WorkflowQuery) -> Payloads:
        """From the cached run, else from one that is replayed for it and kept while it is open."""
        definition = workflow_for(self._turns.definitions, task.workflow_type)
        if definition is None:
            raise UnansweredQueryError(self._turns.not_registered(task))
        cached = self._cache.get(task.execution.run_id)
        if cached is not None:
            if await between_ends(cached) and self._knows(cached, task):
                return self._ask(cached, query)
            await cached.lock.take()
            try:
                if self._knows(cached, task):
                    return self._ask(cached, query)
            finally:
                cached.lock.release()
        replayed = self._turns.new_run(task, definition)
        events = await self._turns.history(task, task.last_event_id)
        try:
            await self._turns.run_events(replayed, events)
            return self._ask(replayed, query)
        finally:
            replayed.run.evict()

    def _knows(self, cached: CachedRun, task: WorkflowTask) -> bool:
        return not cached.evicted and cached.run.previous_started_event_id >= task.previous_started_event_id

    def _ask(self, cached: CachedRun, query: WorkflowQuery) -> Payloads:
        return self._turns.guarded(
            cached, lambda: cached.run.query(query.query_type, query.query_args, query.headers), turn_of_run=False
        )


async def between_ends(cached: CachedRun) -> bool:
    """True when the run's turn waits for local activities, so that its lock need not be waited for (AC-24)."""
    local = cached.local
    if local is None:
        return False
    while local.pending and not cached.evicted:
        await local.askable.wait()
        if local.askable.is_set():
            return True
    return False
