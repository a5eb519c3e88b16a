"""The activity half of a worker: takes attempts by poll or by lease, runs them in slots, reports how they ended."""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, TypeVar

from ..activity import ActivityCancellationDetails, ActivityDefinition
from ..activity.context import LoopEvent
from ..api.limits import MAX_TASKS_PER_POLL, POLL_TIMEOUT
from ..api.operations import POLL_ACTIVITY_TASK
from ..api.requests import ActivityFailed, ActivityOutcome, ActivityTask, PollActivityTaskRequest, WorkerInfo
from ..converter import DataConverter
from ..exceptions import ApplicationError
from ..workflow.dynamic import DYNAMIC
from .attempt import Attempt, Done, whose
from .engine_calls import EngineCalls
from .failure_metrics import FailureMetrics
from .heartbeats import HeartbeatPolicy
from .interceptors import Interceptor
from .outcome_reporter import OutcomeReporter
from .poller import poll_until_stopped
from .shared_state import SharedStateManager
from .slots import Slots
from .watchdog import LoopHold

R = TypeVar("R")

_END_AFTER_CANCEL = 1.0
"""Seconds that cancelled activities get before they are reported as ended by the shutdown, whatever they still do."""

_REPORT_WITHIN = 5.0
"""Seconds for the last reports to get through."""

_CANCEL_REQUESTED = ActivityCancellationDetails(cancel_requested=True)
_MOST_EARLY = 100
"""Tokens kept for attempts that are not here yet; a heartbeat says so as well."""

_log = logging.getLogger("stepwell.worker")


class ActivityWorker:
    """One per worker, also when it has no activities (then it never polls)."""

    def __init__(
        self,
        *,
        calls: EngineCalls,
        client: Any,
        converter: DataConverter,
        namespace: str,
        task_queue: str,
        info: WorkerInfo,
        activities: Mapping[str, ActivityDefinition],
        slots: Slots,
        polls: int,
        executor: Executor | None,
        heartbeat_policy: HeartbeatPolicy,
        interceptors: Sequence[Interceptor],
        shared_state: SharedStateManager | None,
        loop_hold: LoopHold,
        failure_metrics: FailureMetrics,
        max_per_second: float | None = None,
    ) -> None:
        self.calls = calls
        self.client = client
        self.converter = converter
        self.namespace = namespace
        self.task_queue = task_queue
        self.info = info
        self.activities = activities
        self.slots = slots
        self.executor = executor
        self.heartbeat_policy = heartbeat_policy
        self.interceptors = interceptors
        self.loop_hold = loop_hold
        self.failure_metrics = failure_metrics
        self.loop = asyncio.get_running_loop()
        self.reporter = OutcomeReporter(calls, namespace, info)
        self.shutting_down = LoopEvent(threaded=True)
        self._polls = polls
        self._max_per_second = max_per_second
        self._given_shared_state = shared_state
        self._own_shared_state: SharedStateManager | None = None
        self._process_shutdown: Any = None
        self._shared_state_lock = asyncio.Lock()
        self._running: set[Attempt] = set()
        self.local: set[Attempt] = set()
        """Attempts of local activities; their workflow's turn waits for them."""
        self.grace_over = False
        """What begins now would only be ended."""
        self._cancelled_early: dict[bytes, None] = {}
        """Tokens that another poll's answer has overtaken; of attempts that have ended, most of them."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self.on_spawn: Callable[[asyncio.Task[Any]], None] | None = None
        self._base_context = contextvars.copy_context()

    def poll_loops(self) -> list[Coroutine[Any, Any, None]]:
        if not self.activities:
            return []
        return [self._poll() for _ in range(self._polls)]

    def prepare(self, task: ActivityTask, done: Done) -> Attempt | None:
        """An attempt to be launched, or run in a task that is there already; its slot is taken. None: it cannot run
        here."""
        definition = self.definition(task.activity_type)
        if definition is None:
            self.slots.give_back()
            self.spawn(self._refuse_unknown(task))
            return None
        attempt = Attempt(self, task, definition, done)
        self._running.add(attempt)
        if task.task_token in self._cancelled_early:
            del self._cancelled_early[task.task_token]
            attempt.cancel(_CANCEL_REQUESTED)
        return attempt

    def definition(self, activity_type: str) -> ActivityDefinition | None:
        """Of that type, else the dynamic one under that name."""
        found = self.activities.get(activity_type)
        if found is not None:
            return found
        dynamic = self.activities.get(DYNAMIC)
        return None if dynamic is None else replace(dynamic, name=activity_type)

    def launch(self, attempt: Attempt) -> None:
        """Run an attempt in a task of its own."""
        attempt.task_handle = self.spawn(attempt.run())

    def fresh_context(self) -> contextvars.Context:
        """That of the worker's start, so that nothing leaks from one activity into the next."""
        return self._base_context.copy()

    def spawn(self, work: Coroutine[Any, Any, R]) -> asyncio.Task[R]:
        """A task with a fresh context, kept until it ends."""
        task = self.loop.create_task(work, context=self.fresh_context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self.on_spawn is not None:
            self.on_spawn(task)
        return task

    def ended(self, attempt: Attempt) -> None:
        self._running.discard(attempt)
        self.slots.give_back()

    def cancel_requested(self, task_token: bytes) -> None:
        """The workflow asked for it: in a task that this worker completed, or the engine says so in the answer of a
        poll. No need to wait for a heartbeat (AC-20)."""
        for attempt in self._running:
            if attempt.task.task_token == task_token:
                attempt.cancel(_CANCEL_REQUESTED)
                return
        self._cancelled_early[task_token] = None
        if len(self._cancelled_early) > _MOST_EARLY:
            del self._cancelled_early[next(iter(self._cancelled_early))]

    async def shared_state(self) -> tuple[SharedStateManager, Any]:
        """For activities in other processes, with the flag of the worker's shutdown. Made when first asked for, off
        the loop."""
        async with self._shared_state_lock:
            shared = self._given_shared_state or self._own_shared_state
            if shared is None:
                shared = self._own_shared_state = await self.loop.run_in_executor(None, SharedStateManager)
            if self._process_shutdown is None:
                self._process_shutdown = await self.loop.run_in_executor(None, shared.new_event)
            return shared, self._process_shutdown

    async def put_back(self, task: ActivityTask) -> None:
        """Came in while the worker stops: another worker gets it at once, as the same attempt."""
        error = ApplicationError("The worker was shut down before the activity began", type="WorkerShutdown")
        failure = self.converter.to_failure(error)
        await self.reporter.report(
            ActivityFailed(task_token=task.task_token, failure=failure, worker_shutdown=True, begun=False)
        )

    async def stop(self, grace: float) -> None:
        """Let activities finish for ``grace`` seconds, then cancel and report them (WC-32). No poll is open any
        more."""
        self.shutting_down.set()
        if self._process_shutdown is not None:
            await self.loop.run_in_executor(None, self._process_shutdown.set)
        if not await self._idle(grace):
            self.grace_over = True
            for attempt in [*self._running, *self.local]:
                attempt.cancel(ActivityCancellationDetails(worker_shutdown=True))
            if not await self._idle(_END_AFTER_CANCEL):
                await self._report_still_running()
        await self._finish_reports()
        if self._own_shared_state is not None:
            await self.loop.run_in_executor(None, self._own_shared_state.close)

    async def _finish_reports(self) -> None:
        """What ended is still reported; an engine that is away is not waited for longer than a moment."""
        abandoned = {attempt.task_handle for attempt in [*self._running, *self.local]}
        pending = {task for task in self._tasks if task not in abandoned}
        if pending:
            _, unfinished = await asyncio.wait(pending, timeout=_REPORT_WITHIN)
            for task in unfinished:
                task.cancel()
            if unfinished:
                _log.warning("The engine did not take %d reports before the worker ended", len(unfinished))

    async def _idle(self, seconds: float) -> bool:
        """True when every running attempt ended and was reported within that time."""
        deadline = self.loop.time() + seconds
        while self._tasks:
            left = deadline - self.loop.time()
            if left <= 0:
                return not self._running and not self.local
            await asyncio.wait(set(self._tasks), timeout=left, return_when=asyncio.FIRST_COMPLETED)
        return True

    async def _report_still_running(self) -> None:
        """They do not react to the cancellation, such as a thread inside a blocking call. What they return is
        dropped."""
        stuck = [attempt for attempt in self._running if not attempt.reported]
        for attempt in stuck:
            attempt.reported = True
            _log.warning(
                "Activity %s of %s did not stop when the worker shut down; it is retried elsewhere",
                attempt.definition.name,
                whose(attempt.task),
            )
        if stuck:
            await self.reporter.report(*(attempt.shutdown_outcome() for attempt in stuck))

    async def _poll(self) -> None:
        await poll_until_stopped(self.calls, "activity", self.slots, self._poll_once, self.shutting_down.is_set)

    async def _poll_once(self) -> None:
        """Holds one slot already; takes as many more as leave room for the other polls and for leased activities."""
        slots = self.slots
        held = 1 + slots.take(min(MAX_TASKS_PER_POLL - 1, slots.free // (2 * self._polls)))
        try:
            request = PollActivityTaskRequest(
                namespace=self.namespace,
                task_queue=self.task_queue,
                worker=self.info,
                maximum_tasks=held,
                timeout=POLL_TIMEOUT,
                max_tasks_per_second=self._max_per_second,
            )
            response = await self.calls.once(POLL_ACTIVITY_TASK, request)
            for task_token in response.cancel_requested:
                self.cancel_requested(task_token)
            for task in response.tasks:
                if self.shutting_down.is_set():
                    self.spawn(self.put_back(task))
                else:
                    held -= 1
                    attempt = self.prepare(task, self._report)
                    if attempt is not None:
                        self.launch(attempt)
        finally:
            if held > 0:
                slots.give_back(held)

    async def _report(self, outcome: ActivityOutcome) -> Attempt | None:
        await self.reporter.report(outcome)
        return None

    async def _refuse_unknown(self, task: ActivityTask) -> None:
        """Retryable: a worker that has it may be on its way, and the last failure shows in describe until then."""
        known = ", ".join(sorted(self.activities)) or "none"
        message = (
            f"Activity {task.activity_type!r} is not registered with worker {self.info.identity} of task queue "
            f"{self.task_queue!r}; registered are: {known}"
        )
        _log.warning("%s (%s)", message, whose(task))
        error = ApplicationError(message, type="NotFoundError")
        failure = self.converter.to_failure(error)
        self.failure_metrics.activity(task.activity_type, task.workflow_type, failure)
        await self.reporter.report(ActivityFailed(task_token=task.task_token, failure=failure))
