"""The workflow half of a worker: feeds workflow tasks to cached or replayed runs, and sends what they decide."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from ..api import commands as c
from ..api.enums import WorkflowTaskFailedCause
from ..api.errors import ApiError
from ..api.events import HistoryEvent
from ..api.failures import Failure
from ..api.limits import MAX_HISTORY_PAGE_EVENTS, MAX_PAYLOAD_BYTES, MAX_TASKS_PER_POLL, POLL_TIMEOUT
from ..api.operations import GET_HISTORY, POLL_WORKFLOW_TASK, RESPOND_QUERY_TASK_COMPLETED
from ..api.payloads import Payloads, size_of
from ..api.requests import (
    ActivityCanceled,
    ActivityCompleted,
    ActivityOutcome,
    GetHistoryRequest,
    PollWorkflowTaskRequest,
    RespondQueryTaskCompletedRequest,
    WorkerInfo,
    WorkflowQuery,
    WorkflowTask,
)
from ..converter import DataConverter
from ..identity import __version__
from ..replay.errors import ReadOnlyContextError, UnansweredQueryError, WorkflowTaskError
from ..replay.queries import query_failure
from ..replay.run import ActivityEnd, TaskResult, WorkflowRun
from ..workflow.definition import WorkflowDefinition
from .activity_worker import ActivityWorker
from .attempt import Attempt
from .cached_run import CachedRun, RunCache
from .completion import CompletionSender, can_travel
from .engine_calls import EngineCalls
from .failure_log import FailureLog
from .poller import poll_until_stopped
from .replay_slices import slices
from .slots import Slots
from .watchdog import Watchdog, WorkflowDeadlock

R = TypeVar("R")

SLOW_TURN = 0.1
"""Seconds; design section 6."""

MAX_OUTCOMES_PER_STEP = 200

_log = logging.getLogger("stepwell.worker")


class WorkflowWorker:
    """One per worker, also when it has no workflows (then it never polls)."""

    def __init__(
        self,
        *,
        calls: EngineCalls,
        converter: DataConverter,
        namespace: str,
        task_queue: str,
        info: WorkerInfo,
        definitions: Mapping[str, WorkflowDefinition],
        failure_types: tuple[type[BaseException], ...],
        slots: Slots,
        polls: int,
        cache: RunCache,
        activities: ActivityWorker,
        max_eager: int,
        watchdog: Watchdog,
        stopping: Callable[[], bool],
    ) -> None:
        self._calls = calls
        self._converter = converter
        self._namespace = namespace
        self._task_queue = task_queue
        self._info = info
        self._definitions = definitions
        self._failure_types = failure_types
        self.slots = slots
        self._polls = polls
        self._cache = cache
        self._activities = activities
        self._watchdog = watchdog
        self._stopping = stopping
        self._failures = FailureLog()
        self._sender = CompletionSender(
            calls=calls,
            namespace=namespace,
            worker=info,
            cache=cache,
            activities=activities,
            max_eager=max_eager,
            on_lease_ended=self._lease_ended,
        )

    def poll_loops(self) -> list[Coroutine[Any, Any, None]]:
        if not self._definitions:
            return []
        return [self._poll() for _ in range(self._polls)]

    def evict_all(self) -> None:
        """Drop every cached run; the worker is done."""
        self._cache.clear()

    async def _poll(self) -> None:
        await poll_until_stopped(self._calls, "workflow task", self.slots, self._poll_once, self._stopping)

    async def _poll_once(self) -> None:
        """Holds one slot already, takes as many more as leave room for the other polls, and hands each to a task."""
        slots = self.slots
        held = 1 + slots.take(min(MAX_TASKS_PER_POLL - 1, slots.free // (2 * self._polls)))
        request = PollWorkflowTaskRequest(
            namespace=self._namespace,
            task_queue=self._task_queue,
            worker=self._info,
            maximum_tasks=held,
            timeout=POLL_TIMEOUT,
        )
        try:
            for task in (await self._calls.once(POLL_WORKFLOW_TASK, request)).tasks:
                held -= 1
                self._activities.spawn(self._handle(task))
        finally:
            if held > 0:
                slots.give_back(held)

    async def _handle(self, task: WorkflowTask) -> None:
        following: Attempt | None = None
        try:
            if task.query is not None:
                await self._answer_query(task, task.query)
            else:
                following = await self._workflow_task(task)
        except ApiError as error:
            _log.warning("Workflow task of %s not done, it will be offered again: %s", task.execution, error)
        except Exception:
            _log.exception("Workflow task of %s not done, it will be offered again", task.execution)
        finally:
            self.slots.give_back()
            self._cache.trim()
        while following is not None:
            following = await following.run_here()

    # --- polled workflow tasks ---

    async def _workflow_task(self, task: WorkflowTask) -> Attempt | None:
        definition = self._definitions.get(task.workflow_type)
        if definition is None:
            await self._unknown_type(task)
            return None
        while True:
            cached = self._cache.get(task.execution.run_id)
            fresh = cached is None
            if cached is None:
                cached = self._new_run(task, definition)
            async with cached.lock:
                if fresh:
                    self._cache.put(cached)
                if cached.evicted:
                    continue  # another turn of the run was refused while this one waited
                if cached.run.previous_started_event_id not in (0, task.previous_started_event_id):
                    self._cache.evict(cached)  # it knows another past than the engine does
                    continue
                return await self._turn(cached, task)

    async def _turn(self, cached: CachedRun, task: WorkflowTask) -> Attempt | None:
        following: Attempt | None = None
        cached.set_time(task.started_time)
        cached.continuation_token = b""
        try:
            events = task.events
            if cached.run.previous_started_event_id != task.previous_started_event_id:
                events = await self._history_before(task) + events
            result = await self._run_events(cached, events)
            following = await self._sender.complete(cached, task.task_token, result)
        except WorkflowTaskError as error:
            await self._failed(cached, task.task_token, error, ())
        except Exception:
            self._cache.evict(cached)
            await self._use_ended(cached, None)
            raise
        return await self._use_ended(cached, following)

    def _new_run(self, task: WorkflowTask, definition: WorkflowDefinition) -> CachedRun:
        run = WorkflowRun(
            definition,
            namespace=self._namespace,
            workflow_id=task.execution.workflow_id,
            run_id=task.execution.run_id,
            task_queue=task.task_queue,
            converter=self._converter,
            failure_types=self._failure_types,
            sdk_version=__version__,
        )
        return CachedRun(run, task.execution, task.workflow_type)

    async def _history_before(self, task: WorkflowTask) -> tuple[HistoryEvent, ...]:
        """Events up to the last completed workflow task, for a run that is not cached here."""
        return await self._history(task, task.previous_started_event_id + 1)

    async def _history(self, task: WorkflowTask, last_event_id: int) -> tuple[HistoryEvent, ...]:
        events: list[HistoryEvent] = []
        token = b""
        while not events or events[-1].event_id < last_event_id:
            request = GetHistoryRequest(
                namespace=self._namespace,
                execution=task.execution,
                maximum_page_size=MAX_HISTORY_PAGE_EVENTS,
                next_page_token=token,
            )
            response = await self._calls.until_answered(GET_HISTORY, request)
            events += response.events
            token = response.next_page_token
            if not token:
                break
        return tuple(event for event in events if event.event_id <= last_event_id)

    async def _unknown_type(self, task: WorkflowTask) -> None:
        cause = WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE
        error = WorkflowTaskError(cause, Failure(message=self._not_registered(task)))
        self._failures.report(task.workflow_type, task.execution, error)
        await self._sender.fail_task(task.task_token, cause, error.failure)

    def _not_registered(self, task: WorkflowTask) -> str:
        known = ", ".join(sorted(self._definitions))
        return (
            f"Workflow type {task.workflow_type!r} is not registered with worker {self._info.identity} of task queue "
            f"{self._task_queue!r}; registered are: {known}"
        )

    # --- fused steps ---

    async def _lease_ended(
        self,
        cached: CachedRun,
        command: c.ScheduleActivityTask,
        scheduled_event_id: int,
        outcome: ActivityOutcome,
    ) -> Attempt | None:
        """In the activity's own task, which thus goes on to the workflow's next turn and activity without a hop."""
        cached.leases.pop(scheduled_event_id, None)
        if cached.evicted or not can_travel(outcome, command):
            await self._activities.reporter.report(outcome)
            return None
        cached.ended.append((scheduled_event_id, outcome))
        if cached.lock.locked():
            return None  # whoever holds it takes this along
        async with cached.lock:
            return await self._use_ended(cached, None)

    async def _use_ended(self, cached: CachedRun, following: Attempt | None) -> Attempt | None:
        """Under the run's lock: feed what has ended to the workflow, together what ended together. Takes and returns an
        attempt that is to run in this task, if it may do so at once."""
        while cached.ended:
            if following is not None:
                self._activities.launch(following)
                following = None
            ended = cached.ended[:MAX_OUTCOMES_PER_STEP]
            del cached.ended[:MAX_OUTCOMES_PER_STEP]
            if not cached.continuation_token or cached.slow:
                cached.continuation_token = b""
                await self._activities.reporter.report(*(outcome for _, outcome in ended))
            else:
                following = await self._step(cached, ended)
        return following

    async def _step(self, cached: CachedRun, ended: list[tuple[int, ActivityOutcome]]) -> Attempt | None:
        token = cached.continuation_token
        cached.continuation_token = b""
        at = cached.workflow_time()
        try:
            ends = [self._end(scheduled_event_id, outcome) for scheduled_event_id, outcome in ended]
            result = self._guarded(cached, lambda: cached.run.run_step(ends, at))
            return await self._sender.complete(cached, token, result, ended, at)
        except WorkflowTaskError as error:
            await self._failed(cached, token, error, ended)
            return None
        except BaseException:
            self._cache.evict(cached)
            raise

    def _end(self, scheduled_event_id: int, outcome: ActivityOutcome) -> ActivityEnd:
        """As the engine will record it; only failures that are not tried again come here (:func:`can_travel`)."""
        if isinstance(outcome, ActivityCompleted):
            return ActivityEnd(scheduled_event_id, outcome.result)
        if isinstance(outcome, ActivityCanceled):
            return ActivityEnd(scheduled_event_id, canceled=True)
        return ActivityEnd(scheduled_event_id, failure=outcome.failure, identity=self._info.identity)

    # --- queries ---

    async def _answer_query(self, task: WorkflowTask, query: WorkflowQuery) -> None:
        request = await self._query_answer(task, query)
        try:
            await self._calls.once(RESPOND_QUERY_TASK_COMPLETED, request)
        except ApiError as error:
            _log.debug("Nobody waits any more for query %r of %s: %s", query.query_type, task.execution, error)

    async def _query_answer(self, task: WorkflowTask, query: WorkflowQuery) -> RespondQueryTaskCompletedRequest:
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
        definition = self._definitions.get(task.workflow_type)
        if definition is None:
            raise UnansweredQueryError(self._not_registered(task))
        cached = self._cache.get(task.execution.run_id)
        if cached is not None:
            async with cached.lock:
                if not cached.evicted and cached.run.previous_started_event_id >= task.previous_started_event_id:
                    return self._ask(cached, query)
        replayed = self._new_run(task, definition)
        events = await self._history(task, task.last_event_id)
        try:
            await self._run_events(replayed, events)
            return self._ask(replayed, query)
        finally:
            replayed.run.evict()

    def _ask(self, cached: CachedRun, query: WorkflowQuery) -> Payloads:
        return self._guarded(
            cached, lambda: cached.run.query(query.query_type, query.query_args, query.headers), turn_of_run=False
        )

    # --- running workflow code ---

    async def _run_events(self, cached: CachedRun, events: Sequence[HistoryEvent]) -> TaskResult:
        """Raises :class:`WorkflowTaskError`."""
        result: TaskResult | None = None
        for part in slices(events):
            if result is not None:
                await asyncio.sleep(0)
            result = self._guarded(cached, partial(cached.run.run_task, part))
        assert result is not None
        return result

    def _guarded(self, cached: CachedRun, turn: Callable[[], R], *, turn_of_run: bool = True) -> R:
        """Run workflow code under the watchdog. Raises :class:`WorkflowTaskError`, and what a query raises."""
        watchdog = self._watchdog
        began = time.perf_counter()
        try:
            with watchdog:
                result = turn()
        except WorkflowTaskError:
            if watchdog.blocked_stack is not None:
                raise self._deadlock() from None
            raise
        except WorkflowDeadlock:
            watchdog.leave()
            raise self._deadlock() from None
        except Exception as error:
            if watchdog.blocked_stack is not None:
                raise self._deadlock() from None
            if not turn_of_run:
                raise
            failure = self._converter.to_failure(error)
            raise WorkflowTaskError(WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE, failure) from error
        if watchdog.blocked_stack is not None:
            raise self._deadlock()
        if turn_of_run:
            cached.slow = time.perf_counter() - began > SLOW_TURN
        return result

    def _deadlock(self) -> WorkflowTaskError:
        message = (
            f"[deadlock] workflow code did not yield within {self._watchdog.timeout:g} s: a blocking call belongs "
            "into an activity; raise deadlock_timeout or set debug_mode when it only computes for long"
        )
        failure = Failure(message=message, stack_trace=self._watchdog.blocked_stack or "")
        return WorkflowTaskError(WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE, failure)

    async def _failed(
        self, cached: CachedRun, task_token: bytes, error: WorkflowTaskError, ended: tuple[Any, ...] | list[Any]
    ) -> None:
        self._failures.report(cached.workflow_type, cached.execution, error)
        await self._sender.fail(cached, task_token, error, ended)
