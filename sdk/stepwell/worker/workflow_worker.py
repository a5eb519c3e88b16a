"""The workflow half of a worker: feeds workflow tasks to cached or replayed runs, and sends what they decide."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from ..api import commands as c
from ..api.enums import WorkflowTaskFailedCause
from ..api.errors import ApiError
from ..api.failures import Failure
from ..api.limits import MAX_TASKS_PER_POLL, POLL_TIMEOUT
from ..api.operations import POLL_WORKFLOW_TASK
from ..api.requests import (
    ActivityCanceled,
    ActivityCompleted,
    ActivityOutcome,
    ActivityPending,
    PollWorkflowTaskRequest,
    WorkerInfo,
    WorkflowTask,
)
from ..converter import DataConverter
from ..replay.activity_ends import ActivityEnd
from ..replay.errors import WorkflowTaskError
from ..workflow.dynamic import workflow_for
from .activity_worker import ActivityWorker
from .attempt import Attempt
from .cached_run import CachedRun, RunCache
from .completion import CompletionSender
from .engine_calls import EngineCalls
from .failure_log import FailureLog
from .leases import can_travel
from .local_turns import LocalTurns
from .poller import poll_until_stopped
from .query_answers import QueryAnswers
from .slots import Slots
from .workflow_turns import WorkflowTurns

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
        turns: WorkflowTurns,
        slots: Slots,
        local_slots: Slots,
        polls: int,
        cache: RunCache,
        activities: ActivityWorker,
        max_eager: int,
        stopping: Callable[[], bool],
    ) -> None:
        self._calls = calls
        self._namespace = namespace
        self._task_queue = task_queue
        self._info = info
        self._turns = turns
        self.slots = slots
        self._polls = polls
        self._cache = cache
        self._activities = activities
        self._stopping = stopping
        self._failures = failures = FailureLog(converter.payload_converter)
        self._queries = QueryAnswers(
            calls=calls, converter=converter, namespace=namespace, cache=cache, turns=turns, failures=failures
        )
        self._sender = CompletionSender(
            calls=calls,
            namespace=namespace,
            worker=info,
            cache=cache,
            activities=activities,
            max_eager=max_eager,
            on_lease_ended=self._lease_ended,
        )
        self._local = LocalTurns(
            turns=turns,
            sender=self._sender,
            activities=activities,
            slots=local_slots,
            cache=cache,
            on_failed=self._failed,
        )

    def poll_loops(self) -> list[Coroutine[Any, Any, None]]:
        if not self._turns.definitions:
            return []
        return [self._poll() for _ in range(self._polls)]

    # --- first tasks of what the client starts (LC-08) ---

    def reserve(self, task_queue: str, workflow_type: str) -> WorkerInfo | None:
        """See :class:`~stepwell.client.eager.EagerHost`."""
        if self._stopping() or task_queue != self._task_queue or not self._turns.definitions:
            return None
        if workflow_for(self._turns.definitions, workflow_type) is None or not self.slots.take(1):
            return None
        return self._info

    def begin(self, task: WorkflowTask | None) -> None:
        if task is None or self._stopping():  # what is not done here is offered again
            self.slots.give_back()
        else:
            self._activities.spawn(self._handle(task))

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
                await self._queries.answer(task, task.query)
            else:
                following = await self._workflow_task(task)
        except ApiError as error:
            _log.warning("Workflow task of %s not done, it will be offered again: %s", task.execution, error)
        except Exception:
            _log.exception("Workflow task of %s not done, it will be offered again", task.execution)
        finally:
            self.slots.give_back()
            self._cache.trim()
        if following is not None:
            await following.run_in(asyncio.current_task())

    # --- polled workflow tasks ---

    async def _workflow_task(self, task: WorkflowTask) -> Attempt | None:
        definition = workflow_for(self._turns.definitions, task.workflow_type)
        if definition is None:
            await self._unknown_type(task)
            return None
        while True:
            cached = self._cache.get(task.execution.run_id)
            fresh = cached is None
            if cached is None:
                cached = self._turns.new_run(task, definition)
            if not cached.lock.try_take():
                await cached.lock.take()
            try:
                if fresh:
                    self._cache.put(cached)
                if cached.evicted:
                    continue  # another turn of the run was refused while this one waited
                if cached.run.previous_started_event_id not in (0, task.previous_started_event_id):
                    self._cache.evict(cached)  # it knows another past than the engine does
                    continue
                return await self._turn(cached, task)
            finally:
                cached.lock.release()

    async def _turn(self, cached: CachedRun, task: WorkflowTask) -> Attempt | None:
        following: Attempt | None = None
        began = self._activities.loop.time()
        cached.set_time(task.started_time)
        if cached.local is not None:
            cached.local.askable.clear()
        cached.continuation_token = b""
        try:
            events = task.events
            if cached.run.previous_started_event_id != task.previous_started_event_id:
                events = await self._turns.history(task, task.previous_started_event_id + 1) + events
            result = await self._turns.run_events(cached, events, task.updates)
            following = await self._local.finish(cached, task.task_token, result, began)
        except WorkflowTaskError as error:
            await self._failed(cached, task.task_token, error, ())
        except Exception:
            self._cache.evict(cached)
            await self._use_ended(cached, None)
            raise
        return await self._use_ended(cached, following)

    async def _unknown_type(self, task: WorkflowTask) -> None:
        cause = WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE
        error = WorkflowTaskError(cause, Failure(message=self._turns.not_registered(task)))
        self._failures.report(task.workflow_type, task.execution, error)
        await self._sender.fail_task(task.workflow_type, task.task_token, cause, error.failure)

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
        if cached.evicted or cached.reports_ended or not can_travel(outcome, command):
            await self._activities.reporter.report(outcome)
            return None
        cached.ended.append((scheduled_event_id, outcome))
        if cached.lock.locked:
            return None  # whoever holds it takes this along
        if not cached.lock.try_take():
            await cached.lock.take()
        try:
            return await self._use_ended(cached, None)
        finally:
            cached.lock.release()

    async def _use_ended(self, cached: CachedRun, following: Attempt | None) -> Attempt | None:
        """Under the run's lock: feed what has ended to the workflow, together what ended together. Takes and returns an
        attempt that is to run in this task, if it may do so at once."""
        while cached.ended:
            if following is not None:
                self._activities.launch(following)
                following = None
            ended = cached.ended[:MAX_OUTCOMES_PER_STEP]
            del cached.ended[:MAX_OUTCOMES_PER_STEP]
            token, cached.continuation_token = cached.continuation_token, b""
            if not token or cached.slow:
                await self._activities.reporter.report(*(outcome for _, outcome in ended))
                continue
            at = cached.workflow_time()
            try:
                ends = [self._end(scheduled_event_id, outcome) for scheduled_event_id, outcome in ended]
                result = self._turns.guarded(cached, partial(cached.run.run_step, ends, at))
                following = await self._local.finish(cached, token, result, None, ended, at)
            except WorkflowTaskError as error:
                await self._failed(cached, token, error, ended)
            except BaseException:
                self._cache.evict(cached)
                raise
        return following

    def _end(self, scheduled_event_id: int, outcome: ActivityOutcome) -> ActivityEnd:
        """As the engine will record it; only failures that are not tried again come here (:func:`can_travel`)."""
        if isinstance(outcome, ActivityCompleted):
            return ActivityEnd(scheduled_event_id, outcome.result)
        if isinstance(outcome, ActivityCanceled):
            return ActivityEnd(scheduled_event_id, canceled=True)
        if isinstance(outcome, ActivityPending):
            raise TypeError("an activity that goes on has no end to feed to its workflow")
        return ActivityEnd(scheduled_event_id, failure=outcome.failure, identity=self._info.identity)

    async def _failed(
        self, cached: CachedRun, task_token: bytes, error: WorkflowTaskError, ended: tuple[Any, ...] | list[Any]
    ) -> None:
        self._failures.report(cached.workflow_type, cached.execution, error)
        await self._sender.fail(cached, task_token, error, ended)
