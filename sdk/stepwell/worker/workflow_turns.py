"""Turns of workflow code: runs made for tasks, fed with history, and watched while their code has the loop."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import TypeVar

from ..api.enums import WorkflowTaskFailedCause
from ..api.events import HistoryEvent
from ..api.failures import Failure
from ..api.limits import MAX_HISTORY_PAGE_EVENTS
from ..api.operations import GET_HISTORY
from ..api.requests import GetHistoryRequest, WorkerInfo, WorkflowTask
from ..api.updates import DeliveredUpdate
from ..converter import DataConverter
from ..identity import __version__
from ..replay.changes import PatchActivationInput
from ..replay.errors import WorkflowTaskError
from ..replay.run import TaskResult, WorkflowRun
from ..workflow.definition import WorkflowDefinition
from ..workflow.interceptors import InterceptsWorkflows, workflow_interceptors
from ..workflow.metrics import MetricRecorder
from .cached_run import CachedRun
from .engine_calls import EngineCalls
from .replay_slices import slices
from .watchdog import Watchdog, WorkflowDeadlock

R = TypeVar("R")

SLOW_TURN = 0.1
"""Seconds; design section 6."""


class WorkflowTurns:
    """One per worker, for its workflow tasks and its queries."""

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
        patch_activation: Callable[[PatchActivationInput], bool] | None,
        metric_recorder: MetricRecorder | None,
        interceptors: Sequence[InterceptsWorkflows],
        sandboxed: bool,
        watchdog: Watchdog,
    ) -> None:
        self._calls = calls
        self._converter = converter
        self._namespace = namespace
        self._task_queue = task_queue
        self._info = info
        self.definitions = definitions
        self._failure_types = failure_types
        self._sandboxed = sandboxed
        self._patch_activation = patch_activation
        self._metric_recorder = metric_recorder
        self._interceptors, self._extern_functions = workflow_interceptors(interceptors)
        self._watchdog = watchdog

    def new_run(self, task: WorkflowTask, definition: WorkflowDefinition) -> CachedRun:
        run = WorkflowRun(
            definition,
            namespace=self._namespace,
            workflow_id=task.execution.workflow_id,
            run_id=task.execution.run_id,
            task_queue=task.task_queue,
            converter=self._converter,
            failure_types=self._failure_types,
            patch_activation=self._patch_activation,
            metric_recorder=self._metric_recorder,
            sdk_version=__version__,
            interceptors=self._interceptors,
            extern_functions=self._extern_functions,
            sandboxed=self._sandboxed,
        )
        return CachedRun(run, task.execution, task.workflow_type)

    async def history(self, task: WorkflowTask, last_event_id: int) -> tuple[HistoryEvent, ...]:
        """Events up to this one, for a run that is not cached here."""
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

    def not_registered(self, task: WorkflowTask) -> str:
        known = ", ".join(sorted(self.definitions))
        return (
            f"Workflow type {task.workflow_type!r} is not registered with worker {self._info.identity} of task queue "
            f"{self._task_queue!r}; registered are: {known}"
        )

    # --- running workflow code ---

    async def run_events(
        self, cached: CachedRun, events: Sequence[HistoryEvent], updates: Sequence[DeliveredUpdate] = ()
    ) -> TaskResult:
        """Raises :class:`WorkflowTaskError`."""
        result: TaskResult | None = None
        for part in slices(events):
            if result is not None:
                await asyncio.sleep(0)
            result = self.guarded(cached, partial(cached.run.run_task, part, updates))
        assert result is not None
        return result

    def guarded(self, cached: CachedRun, turn: Callable[[], R], *, turn_of_run: bool = True) -> R:
        """Run workflow code under the watchdog. Raises :class:`WorkflowTaskError`, and what a query raises."""
        watchdog = self._watchdog
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
            cached.slow = monotonic() - watchdog.began > SLOW_TURN
        return result

    def _deadlock(self) -> WorkflowTaskError:
        message = (
            f"[deadlock] workflow code did not yield within {self._watchdog.timeout:g} s: a blocking call belongs "
            "into an activity; raise deadlock_timeout or set debug_mode when it only computes for long"
        )
        failure = Failure(message=message, stack_trace=self._watchdog.blocked_stack or "")
        return WorkflowTaskError(WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE, failure)
