"""Sends what workflow code decided, and starts what the answer leases: the exchange of a (fused) step."""

import itertools
import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from ..api import commands as c
from ..api.enums import CompletionOutcome, WorkflowTaskFailedCause
from ..api.errors import ApiError, NotFound
from ..api.failures import ApplicationFailureInfo, Failure
from ..api.limits import MAX_PAYLOAD_BYTES, MAX_TRANSITION_BYTES
from ..api.operations import RESPOND_WORKFLOW_TASK_COMPLETED, RESPOND_WORKFLOW_TASK_FAILED
from ..api.payloads import size_of
from ..api.requests import (
    ActivityFailed,
    ActivityLease,
    ActivityOutcome,
    ActivityTask,
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
from .engine_calls import EngineCalls
from .failure_size import failure_size
from .outcome_reporter import log_refused

LeaseEnded = Callable[[CachedRun, c.ScheduleActivityTask, int, ActivityOutcome], Coroutine[Any, Any, Attempt | None]]
Ended = Sequence[tuple[int, ActivityOutcome]]

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
    ) -> Attempt | None:
        """Send the commands, with the activity outcomes that led to them. Whatever the answer, the outcomes count;
        unless the answer is ACCEPTED the run is evicted. Returns an attempt that the caller has to run. Raises
        :class:`WorkflowTaskError` when the commands are too large."""
        commands, eager = self._with_eager(result.commands)
        check_sizes(commands)
        request = RespondWorkflowTaskCompletedRequest(
            namespace=self._namespace,
            task_token=task_token,
            nonce=self._next_nonce(),
            worker=self._worker,
            commands=commands,
            activity_outcomes=tuple(outcome for _, outcome in ended),
            workflow_time=workflow_time,
            sdk_metadata=result.sdk_metadata,
            eager_activities=EagerActivities(task_queue=self._activities.task_queue, slots=eager) if eager else None,
        )
        leased = 0
        try:
            response = await self._calls.until_answered(RESPOND_WORKFLOW_TASK_COMPLETED, request)
            leased = len(response.leases)
        except ApiError as error:
            await self._refused(cached, task_token, error, ended)
            return None
        finally:
            if eager > leased:
                self._activities.slots.give_back(eager - leased)
        if ended:
            log_refused(response.activity_replies)
        if response.outcome is CompletionOutcome.ACCEPTED:
            return self._accepted(cached, commands, response)
        _log.debug("Completion of %s not accepted (%s): %s", cached.execution, response.outcome, response.message)
        self._cache.evict(cached)
        return None

    async def fail(self, cached: CachedRun, task_token: bytes, error: WorkflowTaskError, ended: Ended = ()) -> None:
        """Say that the workflow task failed; the run is evicted, and the task offered again."""
        self._cache.evict(cached)
        await self.fail_task(task_token, error.failed_cause, error.failure, ended)

    async def fail_task(
        self, task_token: bytes, cause: WorkflowTaskFailedCause, failure: Failure, ended: Ended = ()
    ) -> None:
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
        cached.continuation_token = response.continuation_token if response.fusible else b""
        if response.commit_time is not None:
            cached.set_time(response.commit_time)
        following = self._start(cached, commands, response) if response.leases else None
        if cached.leases:
            self._pass_on_cancellations(cached, commands)
        if cached.run.closed:
            self._cache.evict(cached)
        return following

    def _start(
        self, cached: CachedRun, commands: Sequence[c.Command], response: RespondWorkflowTaskCompletedResponse
    ) -> Attempt | None:
        """Launch what is leased, but for the last one, which goes on in the caller's task."""
        scheduled = {command.activity_id: command for command in commands if type(command) is c.ScheduleActivityTask}
        following: Attempt | None = None
        for lease in response.leases:
            command = scheduled[lease.activity_id]
            cached.leases[lease.scheduled_event_id] = lease.task_token
            done = partial(self._on_lease_ended, cached, command, lease.scheduled_event_id)
            attempt = self._activities.prepare(_leased_task(cached, command, lease, response), done)
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

    def _with_eager(self, commands: tuple[c.Command, ...]) -> tuple[tuple[c.Command, ...], int]:
        """How many activities can be taken at once, with slots taken for them. Those that this worker does not have
        must not be leased to it."""
        eligible = 0
        queue, known = self._activities.task_queue, self._activities.activities
        changed: list[c.Command] | None = None
        for index, command in enumerate(commands):
            if type(command) is not c.ScheduleActivityTask or not command.request_eager_execution:
                continue
            if command.task_queue != queue or command.heartbeat_timeout is not None:
                continue
            if command.activity_type in known:
                eligible += 1
            else:
                changed = changed if changed is not None else list(commands)
                changed[index] = msgspec.structs.replace(command, request_eager_execution=False)
        eager = 0
        if eligible and not self._activities.shutting_down.is_set():
            eager = self._activities.slots.take(min(eligible, self._max_eager))
        return (commands if changed is None else tuple(changed)), eager

    async def _refused(self, cached: CachedRun, task_token: bytes, error: ApiError, ended: Ended) -> None:
        """The engine did not look at the completion at all: the run is gone, or the request is not to its liking."""
        if isinstance(error, NotFound):
            _log.debug("Completion of %s no longer counts: %s", cached.execution, error)
            self._cache.evict(cached)
            if ended:
                await self._activities.reporter.report(*(outcome for _, outcome in ended))
            return
        _log.error("Completion of %s refused: %s", cached.execution, error)
        failure = Failure(message=f"The engine refused the completion: {error.code}: {error.message}")
        cause = WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE
        await self.fail(cached, task_token, WorkflowTaskError(cause, failure), ended)


def check_sizes(commands: Sequence[c.Command]) -> None:
    """Raises :class:`WorkflowTaskError` for what the engine would refuse, so that it shows as a failed task (WC-26)."""
    total = 0
    for command in commands:
        size, what = _size(command)
        if size > MAX_PAYLOAD_BYTES:
            raise _too_large(f"{what} has {size} bytes, the limit is {MAX_PAYLOAD_BYTES}")
        total += size
    if total > MAX_TRANSITION_BYTES:
        raise _too_large(
            f"the {len(commands)} commands of one workflow task have {total} bytes, the limit is {MAX_TRANSITION_BYTES}"
        )


def _size(command: c.Command) -> tuple[int, str]:
    match command:
        case c.ScheduleActivityTask():
            return size_of(command.input), f"input of activity {command.activity_type!r} ({command.activity_id})"
        case c.CompleteWorkflowExecution():
            return size_of(command.result), "the workflow's result"
        case c.CancelWorkflowExecution():
            return size_of(command.details), "details of the workflow's cancellation"
        case c.FailWorkflowExecution():
            return failure_size(command.failure), "the workflow's failure"
        case c.RecordMarker():
            return size_of(tuple(command.details.values())), f"marker {command.marker_name!r}"
    return 0, ""


def _too_large(what: str) -> WorkflowTaskError:
    message = f"[payloads too large] {what}; store the data elsewhere and pass where it is"
    return WorkflowTaskError(WorkflowTaskFailedCause.PAYLOADS_TOO_LARGE, Failure(message=message))


def _leased_task(
    cached: CachedRun,
    command: c.ScheduleActivityTask,
    lease: ActivityLease,
    response: RespondWorkflowTaskCompletedResponse,
) -> ActivityTask:
    """What a poll would have given for it."""
    at = response.commit_time or cached.workflow_time()
    return ActivityTask(
        task_token=lease.task_token,
        execution=cached.execution,
        workflow_type=cached.workflow_type,
        activity_id=command.activity_id,
        activity_type=command.activity_type,
        task_queue=command.task_queue,
        headers=command.headers,
        input=command.input,
        scheduled_time=at,
        current_attempt_scheduled_time=at,
        started_time=at,
        schedule_to_close_timeout=command.schedule_to_close_timeout,
        start_to_close_timeout=command.start_to_close_timeout,
        retry_policy=command.retry_policy,
    )


def can_travel(outcome: ActivityOutcome, command: c.ScheduleActivityTask) -> bool:
    """Whether an outcome may be fed to the workflow before the engine has seen it. Of failures, only those that are
    never tried again whatever the policy: for the others the engine decides whether there is another attempt."""
    if not isinstance(outcome, ActivityFailed):
        return True
    info = outcome.failure.info
    if outcome.worker_shutdown or not isinstance(info, ApplicationFailureInfo):
        return False
    policy = command.retry_policy
    return info.non_retryable or (policy is not None and info.failure_type in policy.non_retryable_error_types)
