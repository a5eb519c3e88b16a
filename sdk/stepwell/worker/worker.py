"""The worker: polls one task queue and runs the workflows and activities that it was given."""

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import timedelta
from types import TracebackType
from typing import Any

from ..api.errors import ApiError
from ..api.operations import SHUTDOWN_WORKER
from ..api.requests import ShutdownWorkerRequest, WorkerInfo
from ..client import Client
from ..identity import process_identity
from ..replay.changes import PatchActivationInput
from ..workflow.metrics import MetricRecorder
from .activity_worker import ActivityWorker
from .cached_run import RunCache
from .engine_calls import EngineCalls
from .failure_metrics import FailureMetrics
from .heartbeats import HeartbeatPolicy
from .interceptors import Interceptor
from .options import activity_definitions, check_numbers, check_rate, check_sessions, workflow_definitions
from .runners import SandboxedWorkflowRunner, WorkflowRunner, is_sandboxed
from .sessions import session_workers
from .shared_state import SharedStateManager
from .slots import Slots
from .watchdog import Watchdog
from .workflow_turns import WorkflowTurns
from .workflow_worker import WorkflowWorker

_POLLS_END_WITHIN = 2.0
"""Seconds that open polls get to come back empty after the engine was told of the shutdown."""

_SANDBOXED = SandboxedWorkflowRunner()

_log = logging.getLogger("stepwell.worker")


class Worker:
    """``await worker.run()``, or ``async with worker:``. It works until :meth:`shutdown` or until ``run`` is
    cancelled."""

    def __init__(
        self,
        client: Client,
        *,
        task_queue: str,
        workflows: Sequence[Any] = (),
        activities: Sequence[Callable[..., Any]] = (),
        activity_executor: Executor | None = None,
        shared_state_manager: SharedStateManager | None = None,
        interceptors: Sequence[Interceptor] = (),
        workflow_runner: WorkflowRunner = _SANDBOXED,
        build_id: str | None = None,
        identity: str | None = None,
        max_cached_workflows: int = 1000,
        max_concurrent_workflow_tasks: int = 100,
        max_concurrent_activities: int = 100,
        max_concurrent_local_activities: int = 100,
        max_concurrent_sessions: int = 0,
        max_concurrent_workflow_task_polls: int = 2,
        max_concurrent_activity_task_polls: int = 2,
        max_eager_activity_reservations_per_workflow_task: int | None = None,
        max_task_queue_activities_per_second: float | None = None,
        max_heartbeat_throttle_interval: timedelta = timedelta(seconds=60),
        default_heartbeat_throttle_interval: timedelta = timedelta(seconds=30),
        graceful_shutdown_timeout: timedelta = timedelta(seconds=10),
        workflow_failure_exception_types: Sequence[type[BaseException]] = (),
        patch_activation_callback: Callable[[PatchActivationInput], bool] | None = None,
        metric_recorder: MetricRecorder | None = None,
        deadlock_timeout: timedelta = timedelta(seconds=2),
        debug_mode: bool = False,
        on_fatal_error: Callable[[BaseException], Awaitable[None]] | None = None,
    ) -> None:
        """``activity_executor`` runs synchronous activities; a thread pool with a thread for each concurrent (local)
        activity when none is given. With a process pool, activities must be found by module and name, and heartbeats go
        through ``shared_state_manager``, which is made when needed.

        ``max_cached_workflows`` runs are kept in memory between their tasks (WK-06).
        ``max_eager_activity_reservations_per_workflow_task`` is how many activities one workflow task may hand to
        this worker directly (AC-23); as many as there are free slots when None.
        ``max_concurrent_sessions`` is how many sessions (``workflow.session``) this worker holds at a time (AC-29).
        ``max_task_queue_activities_per_second`` limits the whole task queue, whichever workers poll it: the one that
        polled last with a limit sets it (TQ-08), and no activity goes past the queue then.
        ``graceful_shutdown_timeout`` is how long activities may go on after :meth:`shutdown` (WK-09).
        ``deadlock_timeout`` is how long workflow code may run without waiting (PM-23), and an ``async`` activity
        without a warning; ``debug_mode`` lifts that, for breakpoints.
        ``workflow_failure_exception_types`` are further exceptions that fail the workflow instead of its task
        (ER-04). ``workflow_runner=UnsandboxedWorkflowRunner()`` lifts the guards from all workflow code (PM-25).
        ``patch_activation_callback`` says whether a run that asks for a patch for the first time may take
        its new path, so that the code can be deployed before it is used (VE-04). ``metric_recorder`` gets what
        workflow code says to ``workflow.metric_meter()`` (PM-12), and counts of what fails that is not benign (AC-13):
        ``activity_execution_failed``, ``local_activity_execution_failed``, ``workflow_failed``,
        ``workflow_task_execution_failed``. It must not block.

        Raises ``ValueError`` for what is not a workflow or activity, for two of one name, for numbers below 1 and for
        negative times.
        """
        self._client = client
        self._task_queue = task_queue
        self._workflows = workflow_definitions(workflows)
        self._activities = activity_definitions(activities)
        if not self._workflows and not self._activities:
            raise ValueError("a worker needs workflows or activities; give it workflows=[…] or activities=[…]")
        if not task_queue:
            raise ValueError("task_queue must not be empty")
        check_numbers(
            max_concurrent_workflow_tasks=max_concurrent_workflow_tasks,
            max_concurrent_activities=max_concurrent_activities,
            max_concurrent_local_activities=max_concurrent_local_activities,
            max_concurrent_workflow_task_polls=max_concurrent_workflow_task_polls,
            max_concurrent_activity_task_polls=max_concurrent_activity_task_polls,
        )
        rate = max_task_queue_activities_per_second
        check_rate(rate)
        check_sessions(max_concurrent_sessions, self._activities)
        if max_cached_workflows < 0:
            raise ValueError(f"max_cached_workflows must not be negative, not {max_cached_workflows}")
        if deadlock_timeout <= timedelta(0):
            raise ValueError("deadlock_timeout must be above zero; set debug_mode=True to lift it")
        if graceful_shutdown_timeout < timedelta(0):
            raise ValueError("graceful_shutdown_timeout must not be negative; zero ends activities at once")
        self._executor = activity_executor
        self._shared_state_manager = shared_state_manager
        self._interceptors = interceptors
        self._sandboxed = is_sandboxed(workflow_runner)
        self._max_cached_workflows = max_cached_workflows
        self._workflow_slots = max_concurrent_workflow_tasks
        self._activity_slots = max_concurrent_activities
        self._local_slots = max_concurrent_local_activities
        self._workflow_polls = max_concurrent_workflow_task_polls
        self._activity_polls = max_concurrent_activity_task_polls
        self._max_eager = max_eager_activity_reservations_per_workflow_task if rate is None else 0
        self._max_per_second = rate
        self._heartbeat_policy = HeartbeatPolicy(max_heartbeat_throttle_interval, default_heartbeat_throttle_interval)
        self._grace = graceful_shutdown_timeout.total_seconds()
        self._failure_types = tuple(workflow_failure_exception_types)
        self._patch_activation = patch_activation_callback
        self._metric_recorder = metric_recorder
        self._deadlock_timeout = None if debug_mode else deadlock_timeout.total_seconds()
        self._on_fatal_error = on_fatal_error
        self._info = WorkerInfo(
            identity=identity or client.identity,
            build_id=build_id or "",
            process=process_identity(),
            worker_key=uuid.uuid4().hex,
        )
        self._session_workers = session_workers(
            Worker,
            client,
            task_queue,
            self._info.worker_key,
            max_concurrent_sessions,
            activities,
            common={
                "build_id": build_id,
                "identity": self._info.identity,
                "graceful_shutdown_timeout": graceful_shutdown_timeout,
                "on_fatal_error": self._session_worker_failed,
                "deadlock_timeout": deadlock_timeout,
                "debug_mode": debug_mode,
            },
            own={
                "activity_executor": activity_executor,
                "shared_state_manager": shared_state_manager,
                "interceptors": interceptors,
                "max_concurrent_activities": max_concurrent_activities,
                "max_concurrent_activity_task_polls": max_concurrent_activity_task_polls,
                "max_heartbeat_throttle_interval": max_heartbeat_throttle_interval,
                "default_heartbeat_throttle_interval": default_heartbeat_throttle_interval,
                "metric_recorder": metric_recorder,
            },
        )
        self._started = False
        self._stop = asyncio.Event()
        self._finished = asyncio.Event()
        self._polling = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._on_spawn: Callable[[asyncio.Task[Any]], None] | None = None
        """Told of every task but the polls; set before the worker runs by who has to know when it has nothing to do."""

    @property
    def task_queue(self) -> str:
        return self._task_queue

    @property
    def client(self) -> Client:
        return self._client

    @property
    def identity(self) -> str:
        return self._info.identity

    @property
    def is_running(self) -> bool:
        return self._started and not self._finished.is_set()

    async def run(self) -> None:
        """Work until :meth:`shutdown`. Cancelling this call shuts down as well, gracefully, before it ends.

        Raises an ``ApiError`` when the engine refuses this worker for good, and ``RuntimeError`` when run twice.
        """
        if self._started:
            raise RuntimeError("a worker runs once; make a new one")
        self._started = True
        try:
            async with AsyncExitStack() as stack:
                for worker in self._session_workers:
                    await stack.enter_async_context(worker)
                await self._work()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            _log.error("Worker of task queue %r stopped: %s", self._task_queue, error)
            if self._on_fatal_error is not None:
                await self._on_fatal_error(error)
            raise
        finally:
            self._finished.set()

    async def shutdown(self) -> None:
        """Stop taking work, let activities finish within the grace time, end the others (WC-32); returns when done."""
        self._stop.set()
        if self._started:
            await self._finished.wait()

    async def __aenter__(self) -> "Worker":
        self._running = asyncio.create_task(self.run())
        # The first polls are on their way when the caller goes on; what went wrong before that is raised at the end.
        polling = asyncio.create_task(self._polling.wait())
        await asyncio.wait([polling, self._running], return_when=asyncio.FIRST_COMPLETED)
        polling.cancel()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._running is not None
        self._stop.set()
        try:
            await self._running
        except BaseException:
            # What went wrong inside the block says more than what it did to the worker.
            if error is None:
                raise

    async def _work(self) -> None:
        calls = EngineCalls(self._client.transport, self._task_queue)
        executor, own_executor = self._executor_for_activities()
        watchdog = Watchdog(self._deadlock_timeout)
        activities = self._activity_worker(calls, executor, watchdog)
        workflows = self._workflow_worker(calls, activities, watchdog)
        if self._workflows or any(activity.is_async for activity in self._activities.values()):
            watchdog.start(interrupts=bool(self._workflows))
        polls = [activities.spawn(loop) for loop in [*workflows.poll_loops(), *activities.poll_loops()]]
        activities.on_spawn = self._on_spawn
        self._client.eager_hosts.append(workflows)
        try:
            await asyncio.sleep(0)
            self._polling.set()
            await self._until_stopped(polls)
        finally:
            self._stop.set()
            for worker in self._session_workers:
                worker._stop.set()
            self._client.eager_hosts.remove(workflows)
            await _uninterrupted(self._wind_down(calls, polls, activities, workflows))
            watchdog.stop()
            if own_executor is not None:
                own_executor.shutdown(wait=False, cancel_futures=True)

    async def _session_worker_failed(self, error: BaseException) -> None:
        self._stop.set()  # what went wrong is raised behind the end of this worker's own work

    async def _until_stopped(self, polls: list[asyncio.Task[None]]) -> None:
        """Raises what ended a poll loop."""
        stop = asyncio.create_task(self._stop.wait())
        try:
            done, _ = await asyncio.wait([stop, *polls], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
        for ended in done:
            if ended is not stop:
                await ended

    async def _wind_down(
        self, calls: EngineCalls, polls: list[asyncio.Task[None]], activities: ActivityWorker, workflows: WorkflowWorker
    ) -> None:
        activities.shutting_down.set()
        activities.slots.close()
        workflows.slots.close()
        await self._end_polls(calls, polls)
        await activities.stop(self._grace)
        workflows.evict_all()

    async def _end_polls(self, calls: EngineCalls, polls: list[asyncio.Task[None]]) -> None:
        """The engine ends them, so that no task is lost in one; one that comes in all the same is done or put back."""
        request = ShutdownWorkerRequest(
            namespace=self._client.namespace, task_queue=self._task_queue, worker=self._info
        )
        try:
            await asyncio.wait_for(calls.once(SHUTDOWN_WORKER, request), _POLLS_END_WITHIN)
        except (ApiError, TimeoutError) as error:
            _log.debug("The engine was not told of the shutdown: %s", error)
        pending = [poll for poll in polls if not poll.done()]
        if pending:
            _, late = await asyncio.wait(pending, timeout=_POLLS_END_WITHIN)
            for poll in late:
                poll.cancel()
        await asyncio.gather(*polls, return_exceptions=True)

    def _executor_for_activities(self) -> tuple[Executor | None, Executor | None]:
        """The executor, and it again when it is this worker's to shut down."""
        if self._executor is not None or all(activity.is_async for activity in self._activities.values()):
            return self._executor, None
        own = ThreadPoolExecutor(
            self._activity_slots + self._local_slots, thread_name_prefix=f"stepwell-{self._task_queue}"
        )
        return own, own

    def _activity_worker(self, calls: EngineCalls, executor: Executor | None, watchdog: Watchdog) -> ActivityWorker:
        return ActivityWorker(
            calls=calls,
            client=self._client,
            converter=self._client.data_converter,
            namespace=self._client.namespace,
            task_queue=self._task_queue,
            info=self._info,
            activities=self._activities,
            slots=Slots(self._activity_slots),
            polls=self._activity_polls,
            executor=executor,
            heartbeat_policy=self._heartbeat_policy,
            interceptors=self._interceptors,
            shared_state=self._shared_state_manager,
            loop_hold=watchdog.hold,
            failure_metrics=FailureMetrics(self._metric_recorder, self._client.namespace, self._task_queue),
            max_per_second=self._max_per_second,
        )

    def _workflow_worker(self, calls: EngineCalls, activities: ActivityWorker, watchdog: Watchdog) -> WorkflowWorker:
        turns = WorkflowTurns(
            calls=calls,
            converter=self._client.data_converter,
            namespace=self._client.namespace,
            task_queue=self._task_queue,
            info=self._info,
            definitions=self._workflows,
            failure_types=self._failure_types,
            patch_activation=self._patch_activation,
            metric_recorder=self._metric_recorder,
            interceptors=self._interceptors,
            sandboxed=self._sandboxed,
            watchdog=watchdog,
        )
        return WorkflowWorker(
            calls=calls,
            converter=self._client.data_converter,
            namespace=self._client.namespace,
            task_queue=self._task_queue,
            info=self._info,
            turns=turns,
            slots=Slots(self._workflow_slots),
            local_slots=Slots(self._local_slots),
            polls=self._workflow_polls,
            cache=RunCache(self._max_cached_workflows),
            activities=activities,
            max_eager=self._max_eager if self._max_eager is not None else self._activity_slots,
            stopping=self._stop.is_set,
        )


async def _uninterrupted(work: Coroutine[Any, Any, None]) -> None:
    """Finish ``work`` also when the caller is cancelled, and only then let the cancellation through."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    await task
    if cancelled is not None:
        raise cancelled
