"""One attempt of an activity, from its task to its outcome."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import msgspec

from ..activity import ActivityCancellationDetails, ActivityDefinition, Info
from ..activity.context import CompleteAsyncError, LoopEvent, current
from ..api.failures import ApplicationFailureInfo, Failure
from ..api.limits import MAX_PAYLOAD_BYTES, WARN_PAYLOAD_BYTES
from ..api.payloads import Payloads, size_of
from ..api.requests import (
    ActivityCanceled,
    ActivityCompleted,
    ActivityFailed,
    ActivityOutcome,
    ActivityPending,
    ActivityTask,
    RecordActivityHeartbeatRequest,
)
from ..common import Priority, RetryPolicy
from ..converter import DataConverter, PayloadConverter
from ..converter.failure_converter import readable
from ..converter.failure_size import within_limit
from ..converter.large_payloads import warn_large
from ..exceptions import ApplicationError, CancelledError
from .failure_metrics import is_benign
from .heartbeats import Heartbeats
from .in_context import InContext
from .interceptors import ActivityInboundInterceptor, ExecuteActivityInput
from .running import ActivityRoot

if TYPE_CHECKING:
    from .activity_worker import ActivityWorker

_log = logging.getLogger("stepwell.activity")

Done = Callable[[ActivityOutcome], Coroutine[Any, Any, "Attempt | None"]]
"""Takes the outcome; what it returns runs next, in the same task."""


class Attempt:
    """Runs in an asyncio task that goes on to report the outcome, and then to whatever attempt that brings. To the code
    of its activity it is ``activity.context.Running``."""

    __slots__ = (
        "_began",
        "_heartbeats",
        "_interrupt",
        "_over",
        "_running",
        "_timer",
        "cancelled",
        "cancelled_because",
        "definition",
        "done",
        "reported",
        "shield",
        "task",
        "task_handle",
        "worker",
    )

    is_local = False

    def __init__(
        self, worker: "ActivityWorker", task: ActivityTask, definition: ActivityDefinition, done: Done
    ) -> None:
        self.worker = worker
        self.task = task
        self.definition = definition
        self.done = done
        self.cancelled = LoopEvent(threaded=not definition.is_async)
        self.cancelled_because: ActivityCancellationDetails | None = None
        self.task_handle: asyncio.Task[Any] | None = None
        self.reported = False
        """True once an outcome was sent, or there is none to send."""
        self.shield: Callable[[], AbstractContextManager[None]] | None = None
        """Keeps what interrupts a thread away from it for a while."""
        self._running = False
        self._over = False
        self._interrupt: Callable[[], None] | None = None
        self._heartbeats: Heartbeats | None = None
        self._began = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """The attempt, and those that its outcome leases one after the other: a sequence of steps needs no other
        task."""
        following = await self._run()
        if following is not None:
            await following.run_in(asyncio.current_task())

    async def run_in(self, task: "asyncio.Task[Any] | None") -> None:
        """As :meth:`run`, inside of the task that is running, yet in contexts of their own."""
        following: Attempt | None = self
        while following is not None:
            following.task_handle = task
            following = await following._run()

    async def _run(self) -> "Attempt | None":
        try:
            outcome = await self.outcome()
        finally:
            self.worker.ended(self)
        if self.reported:
            return None
        self.reported = True
        if outcome is None:
            return None
        task = self.task_handle
        if task is not None and task.cancelling():
            # A cancellation that is still in the task must not hit what follows.
            self.worker.spawn(self._done_elsewhere(outcome))
            return None
        return await self.done(outcome)

    async def _done_elsewhere(self, outcome: ActivityOutcome) -> None:
        following = await self.done(outcome)
        if following is not None:
            self.worker.launch(following)

    def cancel(self, details: ActivityCancellationDetails) -> None:
        """Ask the activity to stop; only the first reason counts."""
        if self._over or self.cancelled_because is not None:
            return
        self.cancelled_because = details
        self.cancelled.set()
        if self._interrupt is not None:
            self._interrupt()
        elif self.definition.is_async and self._running and self.task_handle is not None:
            self.task_handle.cancel()

    def interrupt_with(self, interrupt: Callable[[], None]) -> None:
        """How a running thread or process is told; for async activities the task is cancelled."""
        self._interrupt = interrupt
        if self.cancelled_because is not None:
            interrupt()

    def shutdown_outcome(self) -> ActivityFailed:
        """Ended by the worker's shutdown: retried elsewhere at once (WC-32)."""
        error = ApplicationError("The worker was shut down while the activity ran", type="WorkerShutdown")
        return self._failed(error, worker_shutdown=True)

    def description(self) -> str:
        return f"Activity {self.definition.name} of {whose(self.task)}"

    def info(self) -> Info:
        return info_of(self.task, self.worker.namespace, self.worker.converter)

    def heartbeat(self, *details: Any) -> None:
        """From an async activity on the loop, from any other in its thread."""
        details_sent = encode_details(self.worker.converter, details)
        self.heartbeats().record(details_sent, from_loop=self.definition.is_async)

    @property
    def worker_shutdown(self) -> LoopEvent:
        return self.worker.shutting_down

    @property
    def payload_converter(self) -> PayloadConverter:
        return self.worker.converter.payload_converter

    @property
    def client(self) -> Any:
        """None off the loop, to which it belongs."""
        return self.worker.client if self.definition.is_async else None

    def cancellation_details(self) -> ActivityCancellationDetails | None:
        return self.cancelled_because

    def heartbeats(self) -> Heartbeats:
        if self._heartbeats is None:
            worker = self.worker
            interval = worker.heartbeat_policy.interval(self.task.heartbeat_timeout)
            self._heartbeats = Heartbeats(worker.loop, worker.calls, self._heartbeat_request, self.cancel, interval)
        return self._heartbeats

    def _heartbeat_request(self, details: Payloads) -> RecordActivityHeartbeatRequest:
        return RecordActivityHeartbeatRequest(
            namespace=self.worker.namespace,
            task_token=self.task.task_token,
            details=details,
            identity=self.worker.info.identity,
        )

    async def outcome(self) -> ActivityOutcome | None:
        """How it ended; None when it was ended from outside, and nobody is to be told."""
        if self.cancelled_because is not None:
            return self._stopped(asyncio.CancelledError())  # before it began
        self._running = True
        self._began = self.worker.loop.time()
        try:
            worker = self.worker
            running = InContext(self._execute(), worker.fresh_context(), self._start_timer, worker.loop_hold, self)
            return self._completed(await running)
        except (asyncio.CancelledError, CancelledError) as error:
            return self._stopped(error)
        except CompleteAsyncError:
            return None if self._is_over() else ActivityPending(task_token=self.task.task_token)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return self._raised(error)
        finally:
            self._running = False
            self._over = True
            if self._timer is not None:
                self._timer.cancel()
            if self._heartbeats is not None:
                self._heartbeats.close()

    async def _execute(self) -> Any:
        definition = self.definition
        args = definition.arguments(self.worker.converter.payload_converter, self.task.input)
        current.set(self)
        if definition.is_async and not self.worker.interceptors:
            return await definition.fn(*args)
        chain: ActivityInboundInterceptor = ActivityRoot(self)
        for interceptor in reversed(self.worker.interceptors):
            chain = interceptor.intercept_activity(chain)
        executor = None if definition.is_async else self.worker.executor
        call = ExecuteActivityInput(definition.fn, args, executor, self.task.headers)
        return await chain.execute_activity(call)

    def _completed(self, value: Any) -> ActivityOutcome | None:
        if self.cancelled_because is not None and self._is_over():
            return None
        result = self.definition.signature.encode_result(self.worker.converter.payload_converter, value)
        size = size_of(result)
        if size > MAX_PAYLOAD_BYTES:
            raise ApplicationError(
                f"Result of activity {self.definition.name} has {size} bytes, the limit is {MAX_PAYLOAD_BYTES} "
                "(limits.MAX_PAYLOAD_BYTES); store it elsewhere and return where it is",
                type="PayloadTooLarge",
                non_retryable=True,
            )
        if size > WARN_PAYLOAD_BYTES:
            warn_large(f"result of activity {self.definition.name}", size)
        return ActivityCompleted(task_token=self.task.task_token, result=result)

    def _stopped(self, error: BaseException) -> ActivityOutcome | None:
        """It ended by a cancellation: its own, the workflow's, the time limit's or the worker's."""
        if self._is_over():
            return None
        because = self.cancelled_because
        if because is None:
            return self._raised(error)
        if because.worker_shutdown:
            return self.shutdown_outcome()
        if not because.cancel_requested and (because.paused or because.reset):
            return self._interrupted(because)
        details: Payloads = ()
        if isinstance(error, CancelledError) and error.details:
            details = encode_details(self.worker.converter, error.details)
        elif self._heartbeats is not None:
            details = self._heartbeats.last or ()
        return ActivityCanceled(task_token=self.task.task_token, details=details)

    def _interrupted(self, because: ActivityCancellationDetails) -> ActivityFailed:
        """It stopped as it was told to, and is tried again: when it is unpaused, or from its first attempt on (AC-25).
        To its workflow it is not cancelled."""
        what, name = ("reset", "ActivityReset") if because.reset else ("paused", "ActivityPause")
        error = ApplicationError(f"The activity was {what} while it ran, and stopped", type=name)
        return msgspec.structs.replace(self._failed(error), uncounted=True)

    def _raised(self, error: BaseException) -> ActivityOutcome | None:
        if self._is_over():
            return None
        because = self.cancelled_because
        if because is not None and because.worker_shutdown:
            return self.shutdown_outcome()
        raised = error
        if isinstance(error, asyncio.CancelledError | CancelledError):
            # Nobody asked for it: to the workflow this is a failure like any other.
            error = ApplicationError(f"Activity cancelled itself: {error}", type="CancelledError")
        outcome = self._failed(error)
        self._log_failure(raised, outcome.failure)
        self.worker.failure_metrics.activity(
            self.definition.name, self.task.workflow_type, outcome.failure, local=self.is_local
        )
        return outcome

    def _failed(self, error: BaseException, *, worker_shutdown: bool = False) -> ActivityFailed:
        last = self._heartbeats.last if self._heartbeats is not None else None
        return ActivityFailed(
            task_token=self.task.task_token,
            failure=within_limit(self.worker.converter.to_failure(error)),
            last_heartbeat_details=last or (),
            worker_shutdown=worker_shutdown,
        )

    def _is_over(self) -> bool:
        """The engine has ended this attempt already, so that whatever it returns is too late (WC-04)."""
        because = self.cancelled_because
        if because is None or not (because.timed_out or because.not_found):
            return False
        why = "its start-to-close timeout had passed" if because.timed_out else "its attempt was no longer current"
        _log.warning("Activity %s of %s ended after %s", self.definition.name, whose(self.task), why)
        return True

    def _start_timer(self) -> None:
        """Only once the activity waits: before, nothing could be told to it anyway."""
        timeout = self.task.start_to_close_timeout or self.task.schedule_to_close_timeout
        if timeout is not None:
            self._timer = self.worker.loop.call_at(self._began + timeout.total_seconds(), self._time_out)

    def _time_out(self) -> None:
        self._timer = None
        self.cancel(ActivityCancellationDetails(timed_out=True))

    def _log_failure(self, error: BaseException, failure: Failure) -> None:
        """With the record's text: that of a user's exception may itself raise (WC-24)."""
        level = logging.DEBUG if is_benign(failure) else logging.WARNING
        if _log.isEnabledFor(level):
            details = self.info().logger_details()
            failure = readable(failure, self.worker.converter.payload_converter)
            kind = failure.info.failure_type if isinstance(failure.info, ApplicationFailureInfo) else ""
            _log.log(
                level,
                "Activity %s failed (%s, attempt %d): %s",
                self.definition.name,
                whose(self.task),
                self.task.attempt,
                f"{kind}: {failure.message}" if kind else failure.message,
                exc_info=error,
                extra={"stepwell_activity": details},
            )


def info_of(task: ActivityTask, namespace: str, converter: DataConverter) -> Info:
    return Info(
        activity_id=task.activity_id,
        activity_type=task.activity_type,
        attempt=task.attempt,
        scheduled_time=task.scheduled_time,
        current_attempt_scheduled_time=task.current_attempt_scheduled_time,
        started_time=task.started_time,
        heartbeat_details=converter.payload_converter.from_payloads(task.heartbeat_details),
        heartbeat_timeout=task.heartbeat_timeout,
        schedule_to_close_timeout=task.schedule_to_close_timeout,
        start_to_close_timeout=task.start_to_close_timeout,
        retry_policy=RetryPolicy.from_record(task.retry_policy) if task.retry_policy is not None else None,
        task_queue=task.task_queue,
        task_token=task.task_token,
        workflow_id=task.execution.workflow_id,
        workflow_namespace=namespace,
        workflow_run_id=task.execution.run_id,
        workflow_type=task.workflow_type,
        priority=Priority.from_record(task.priority),
        activity_run_id=task.activity_run_id,
    )


def whose(task: ActivityTask) -> str:
    """For the log: the workflow, or the id of one that has none."""
    if task.execution.workflow_id:
        return f"workflow {task.execution.workflow_id}"
    return f"no workflow, id {task.activity_id}"


def encode_details(converter: DataConverter, details: Sequence[Any]) -> Payloads:
    """Raises ``PayloadError`` for what cannot be encoded, ``ValueError`` for what is too large."""
    payloads = converter.payload_converter.to_payloads(details)
    size = size_of(payloads)
    if size > MAX_PAYLOAD_BYTES:
        raise ValueError(
            f"details have {size} bytes, the limit is {MAX_PAYLOAD_BYTES}; "
            "store the data elsewhere and report where it is"
        )
    return payloads
