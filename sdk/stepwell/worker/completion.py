"""Sends what workflow code decided, and starts what the answer leases: the exchange of a (fused) step."""

import itertools
import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Literal

from ..api import commands as c
from ..api.enums import CompletionOutcome, WorkflowTaskFailedCause
from ..api.errors import ApiError, NotFound, PayloadTooLarge
from ..api.failures import Failure
from ..api.operations import RESPOND_WORKFLOW_TASK_COMPLETED, RESPOND_WORKFLOW_TASK_FAILED
from ..api.requests import (
    ActivityOutcome,
    EagerActivities,
    RespondWorkflowTaskCompletedRequest,
    RespondWorkflowTaskCompletedResponse,
    RespondWorkflowTaskFailedRequest,
    WorkerInfo,
)
from ..replay.errors import WorkflowTaskError
from ..replay.run import TaskResult
from .activity_worker import ActivityWorker
from .attempt import Attempt
from .cached_run import CachedRun, RunCache
from .command_sizes import check_sizes
from .engine_calls import TRANSIENT, EngineCalls
from .leases import leased_task, take_eager
from .outcome_reporter import log_refused

LeaseEnded = Callable[[CachedRun, c.ScheduleActivityTask, int, ActivityOutcome], Coroutine[Any, Any, Attempt | None]]
Ended = Sequence[tuple[int, ActivityOutcome]]
Another = Literal["", "take", "leave"]

_log = logging.getLogger("stepwell.worker")


class CompletionSender:
    """The caller holds the run's lock."""

    def __init__(
        self,
        *,
        calls: EngineCalls,
        namespace: str,
        worker: WorkerInfo,
        cache: RunCache,
        activities: ActivityWorker,
        max_eager: int,
        on_lease_ended: LeaseEnded,
    ) -> None:
        self._calls = calls
        self._namespace = namespace
        self._worker = worker
        self._cache = cache
        self._activities = activities
        self._max_eager = max_eager
        self._on_lease_ended = on_lease_ended
        self._nonces = itertools.count(1)

    async def complete(
        self,
        cached: CachedRun,
        task_token: bytes,
        result: TaskResult,
        ended: Ended = (),
        workflow_time: datetime | None = None,
        *,
        another: Another = "",
    ) -> Attempt | None:
        """Send the commands, with the activity outcomes that led to them. Whatever the answer, the outcomes count;
        unless the answer is ACCEPTED the run is evicted. Returns an attempt that the caller has to run. Raises
        :class:`WorkflowTaskError` when the commands are too large. ``another``: a workflow task is to follow at once;
        it is taken into ``cached.next_task``, or left to whoever polls."""
        commands, eager = take_eager(self._activities, result.commands, self._max_eager)
        check_sizes(commands)
        request = RespondWorkflowTaskCompletedRequest(
            namespace=self._namespace,
            task_token=task_token,
            nonce=self._next_nonce(),
            worker=self._worker,
            commands=commands,
            activity_outcomes=tuple([outcome for _, outcome in ended]),
            workflow_time=workflow_time,
            sdk_metadata=result.sdk_metadata,
            eager_activities=EagerActivities(task_queue=self._activities.task_queue, slots=eager) if eager else None,
            force_new_workflow_task=bool(another),
            return_new_workflow_task=another == "take",
        )
        leased = 0
        try:
            try:  # what until_answered does, without a coroutine around each step
                response = await self._calls.once(RESPOND_WORKFLOW_TASK_COMPLETED, request)
            except TRANSIENT as error:
                response = await self._calls.again(RESPOND_WORKFLOW_TASK_COMPLETED, request, error)
            leased = len(response.leases)
        except ApiError as error:
            await self._refused(cached, task_token, error, ended)
            return None
        finally:
            if eager > leased:
                self._activities.slots.give_back(eager - leased)
        if response.activity_replies:
            log_refused(response.activity_replies)
        if response.outcome is CompletionOutcome.ACCEPTED:
            return self._accepted(cached, commands, response)
        if response.outcome is CompletionOutcome.DROPPED:
            cached.run.dropped()
            cached.continuation_token = response.continuation_token if response.fusible else b""
            return None
        _log.debug("Completion of %s not accepted (%s): %s", cached.execution, response.outcome, response.message)
        self._cache.evict(cached)
        return None

    async def fail(self, cached: CachedRun, task_token: bytes, error: WorkflowTaskError, ended: Ended = ()) -> None:
        """Say that the workflow task failed; the run is evicted, and the task offered again."""
        self._cache.evict(cached)
        await self.fail_task(cached.workflow_type, task_token, error.failed_cause, error.failure, ended)

    async def fail_task(
        self,
        workflow_type: str,
        task_token: bytes,
        cause: WorkflowTaskFailedCause,
        failure: Failure,
        ended: Ended = (),
    ) -> None:
        self._activities.failure_metrics.workflow_task(workflow_type, cause)
        request = RespondWorkflowTaskFailedRequest(
            namespace=self._namespace,
            task_token=task_token,
            nonce=self._next_nonce(),
            worker=self._worker,
            cause=cause,
            failure=failure,
            activity_outcomes=tuple(outcome for _, outcome in ended),
        )
        try:
            response = await self._calls.until_answered(RESPOND_WORKFLOW_TASK_FAILED, request)
        except ApiError as error:
            _log.debug("The failure of a workflow task no longer counts: %s", error)
            if ended and not isinstance(error, NotFound):
                await self._activities.reporter.report(*request.activity_outcomes)
            return
        log_refused(response.activity_replies)

    def _next_nonce(self) -> str:
        return f"{self._worker.worker_key}-{next(self._nonces)}"

    def _accepted(
        self, cached: CachedRun, commands: Sequence[c.Command], response: RespondWorkflowTaskCompletedResponse
    ) -> Attempt | None:
        cached.run.accepted(response)
        cached.next_task = response.workflow_task
        cached.continuation_token = response.continuation_token if response.fusible else b""
        if response.commit_time is not None:
            cached.set_time(response.commit_time)
        following = self._start(cached, commands, response) if response.leases else None
        if cached.leases and len(commands) > len(response.leases):
            self._pass_on_cancellations(cached, commands)
        if cached.run.closed:
            self._cache.evict(cached)
            if commands and type(commands[-1]) is c.FailWorkflowExecution:
                self._activities.failure_metrics.workflow(cached.workflow_type, commands[-1].failure)
        return following

    def _start(
        self, cached: CachedRun, commands: Sequence[c.Command], response: RespondWorkflowTaskCompletedResponse
    ) -> Attempt | None:
        """Launch what is leased, but for the last one, which goes on in the caller's task."""
        scheduled = {}
        for command in commands:
            if type(command) is c.ScheduleActivityTask:
                scheduled[command.activity_id] = command
        following: Attempt | None = None
        for lease in response.leases:
            command = scheduled[lease.activity_id]
            cached.leases[lease.scheduled_event_id] = lease.task_token
            done = partial(self._on_lease_ended, cached, command, lease.scheduled_event_id)
            attempt = self._activities.prepare(leased_task(cached, command, lease, response), done)
            if following is not None:
                self._activities.launch(following)
            following = attempt
        return following

    def _pass_on_cancellations(self, cached: CachedRun, commands: Sequence[c.Command]) -> None:
        """To activities that run here, without waiting for their next heartbeat (AC-20)."""
        for command in commands:
            if type(command) is c.RequestCancelActivityTask:
                token = cached.leases.get(command.scheduled_event_id)
                if token is not None:
                    self._activities.cancel_requested(token)

    async def _refused(self, cached: CachedRun, task_token: bytes, error: ApiError, ended: Ended) -> None:
        """The engine did not look at the completion at all: the run is gone, or the request is not to its liking."""
        if isinstance(error, NotFound):
            _log.debug("Completion of %s no longer counts: %s", cached.execution, error)
            self._cache.evict(cached)
            if ended:
                await self._activities.reporter.report(*(outcome for _, outcome in ended))
            return
        _log.error("Completion of %s refused: %s", cached.execution, error)
        too_large = isinstance(error, PayloadTooLarge)
        if too_large and ended:  # which may be what is too large; without them the task is done anew
            self._cache.evict(cached)
            await self._activities.reporter.report(*(outcome for _, outcome in ended))
            return
        failure = Failure(message=f"The engine refused the completion: {error.code}: {error.message}")
        cause = WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE
        if too_large:
            cause = WorkflowTaskFailedCause.REQUEST_TOO_LARGE
        await self.fail(cached, task_token, WorkflowTaskError(cause, failure), ended)
