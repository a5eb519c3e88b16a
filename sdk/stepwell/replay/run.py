"""One run of a workflow on a worker: history slices or activity ends in, commands out.

Pure and synchronous. The worker keeps a :class:`WorkflowRun` between workflow tasks and throws it away (``evict``)
whenever the engine did not accept what it computed; replay then builds it again.
"""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from ..api import common as wire
from ..api import events as ev
from ..api.commands import Command
from ..api.common import Headers, SdkMetadata
from ..api.enums import SuggestContinueAsNewReason, WorkflowTaskFailedCause
from ..api.events import HistoryEvent
from ..api.payloads import Payloads
from ..api.requests import RespondWorkflowTaskCompletedResponse
from ..api.updates import DeliveredUpdate
from ..converter.data_converter import DataConverter
from ..workflow.definition import WorkflowDefinition
from . import guards
from .activation import Activation, accepted_updates, activations, in_order, put_in
from .activity_ends import ActivityEnd, end_activity
from .changes import PatchActivationInput
from .errors import NondeterminismError, WorkflowTaskError
from .flags import LogicFlag
from .intercepted import InterceptorClass
from .jobs import JOBS
from .machines.command import Ask, match
from .machines.local_activity import LocalActivityEnd
from .main import MainFunction
from .queries import answer_query
from .runtime import WorkflowRuntime
from .start_info import start_info

if TYPE_CHECKING:
    from ..workflow.metrics import MetricRecorder

SDK_NAME = "stepwell-python"


class TaskResult(msgspec.Struct, frozen=True, gc=False):
    """What the workflow task decided."""

    commands: tuple[Command, ...]
    sdk_metadata: SdkMetadata | None = None
    closed: bool = False
    """The last command ends the run."""


class WorkflowRun:
    """State of one run. Not thread-safe; calls never overlap."""

    def __init__(
        self,
        definition: WorkflowDefinition,
        *,
        namespace: str,
        workflow_id: str,
        run_id: str,
        task_queue: str,
        converter: DataConverter = DataConverter.default,
        failure_types: Sequence[type[BaseException]] = (),
        sdk_version: str = "",
        interceptors: Sequence[InterceptorClass] = (),
        extern_functions: Mapping[str, Callable[..., Any]] | None = None,
        sandboxed: bool = True,
        patch_activation: Callable[[PatchActivationInput], bool] | None = None,
        metric_recorder: "MetricRecorder | None" = None,
    ) -> None:
        self.definition = definition
        self.namespace = namespace
        self.workflow_id = workflow_id
        self.run_id = run_id
        self.task_queue = task_queue
        self.last_event_id = 0
        """Everything up to here is applied, or an event of the run's own commands."""
        self.previous_started_event_id = 0
        """WorkflowTaskStarted of the last completed workflow task."""
        self.closed = False
        self.priority: wire.Priority | None = None
        """Of the workflow, once its start is known."""
        self._runtime = WorkflowRuntime(definition, converter, task_queue)
        self._runtime.extern_functions = extern_functions or {}
        self._runtime.changes.patch_activation = patch_activation
        self._runtime.metric_recorder = metric_recorder
        self.local = self._runtime.local
        """What the worker is to run beside the workflow task."""
        self._main = MainFunction(
            self._runtime, (*definition.failure_exception_types, *failure_types), interceptors=interceptors
        )
        self._before: Callable[[], None] | None = None
        """Undoes the last task."""
        self._metadata_pending: SdkMetadata | None = SdkMetadata(sdk_name=SDK_NAME, sdk_version=sdk_version)
        self._new_flags: tuple[int, ...] = ()
        self.mismatch: WorkflowTaskError | None = None
        """The code does not do what the history says, and that is to fail the workflow (ER-04): at the next task."""
        self._told_size = 0
        self._told_reasons: tuple[SuggestContinueAsNewReason, ...] = ()
        """As the last completion's answer told them; what a fused step behind it records."""
        self._guarded = definition.sandboxed and sandboxed
        if not self._guarded:
            self._runtime.unguarded = 1
        if self._guarded:
            guards.install(definition)

    # --- workflow tasks --------------------------------------------------------------------------------------------

    def run_task(self, events: Sequence[HistoryEvent], updates: Sequence[DeliveredUpdate] = ()) -> TaskResult:
        """Apply events that continue behind ``last_event_id`` (older ones are skipped) and end with the
        WorkflowTaskStarted to answer; with it came ``updates``.

        Completed workflow tasks inside are replayed and compared with what they recorded. Raises
        :class:`WorkflowTaskError`.
        """
        for activation in activations(events, self.last_event_id):
            if not activation.completed_event_id:
                for_updates = bool(updates) or not activation.jobs
                put_in(activation, updates)
                return self._live(activation, for_updates=for_updates)
            if self.mismatch is None:
                self._replay(activation)
        return TaskResult(())

    def run_step(self, ends: Sequence[ActivityEnd], time: datetime) -> TaskResult:
        """Fused step: feed activity ends that have no events yet; workflow time is ``time``.

        Raises :class:`WorkflowTaskError`.
        """
        runtime = self._runtime
        self._begin(time, self.last_event_id + 2 * len(ends) + 2, replaying=False)
        if self._told_size:
            runtime.info._progress.history_size = self._told_size
            runtime.info._progress.suggest(self._told_reasons)
        outer = self._enter()
        try:
            started_event_id = self.last_event_id + 1
            for end in ends:
                machine = runtime.activities.pop(end.scheduled_event_id, None)
                if machine is not None:
                    end_activity(runtime, machine, end, started_event_id)
                started_event_id += 2
            self._main.run_until_idle()
        except WorkflowTaskError:
            raise
        except Exception as error:
            raise self._task_error(WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE, error) from error
        finally:
            self._leave(outer)
        return self._result()

    def run_local(self, end: LocalActivityEnd) -> TaskResult:
        """Within the last task: a local activity ended, or its attempt did. What the task decided by now is all of the
        result. Raises :class:`WorkflowTaskError`.
        """
        outer = self._enter()
        try:
            if not self._main.closed and self._runtime.local.resolve(end):
                self._main.run_until_idle()
        except WorkflowTaskError:
            raise
        except Exception as error:
            raise self._task_error(WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE, error) from error
        finally:
            self._leave(outer)
        return self._result()

    @property
    def task_timeout(self) -> timedelta:
        """Of a workflow task."""
        return self._runtime.info.task_timeout

    def accepted(self, response: RespondWorkflowTaskCompletedResponse) -> None:
        """The completion was accepted: the event ids of its commands are known."""
        event_id = response.started_event_id + 2
        for ask in self._runtime.asks:
            ask.sent(event_id)
            event_id += 1
        self._runtime.asks = []
        if not self._runtime.evicting:
            self._runtime.updates.rejections = []
        self._told_size = response.history_size_bytes
        self._told_reasons = response.suggest_continue_as_new_reasons
        self.previous_started_event_id = response.started_event_id
        # What a step may follow at once is nothing to code (options of the run), but has numbers.
        self.last_event_id = max(event_id, response.next_event_id if response.fusible else 0) - 1
        self._metadata_pending = None
        self._new_flags = ()

    def dropped(self) -> None:
        """The last task, which has rejected all that it showed, is in no history: nothing of it is known."""
        assert self._before is not None
        if not self._runtime.evicting:
            self._runtime.updates.rejections = []
        self._before()
        self._before = None

    def query(self, query_type: str, args: Payloads = (), headers: Headers | None = None) -> Payloads:
        """Answer a query. Raises what the handler raises, ``PayloadError``, or ``ValueError`` when there is no such
        handler.
        """
        if self.mismatch is not None:
            raise self.mismatch
        outer = self._enter()
        self._runtime.read_only = "a query handler"
        try:
            return answer_query(self._runtime, query_type, args, headers or {})
        finally:
            self._runtime.read_only = ""
            self._leave(outer)

    def evict(self) -> None:
        """Drop all coroutines. What their ``finally`` blocks ask of the SDK does nothing; the object is of no use
        afterwards.
        """
        runtime = self._runtime
        if runtime.evicting:
            return
        runtime.evicting = True
        outer = self._enter() if runtime.loop.live_tasks() else None  # of one that has closed, no code runs
        try:
            runtime.loop.close_tasks()
        finally:
            if outer is not None:
                self._leave(outer)
            # These point back; without them a run is gone at once, and not only when the collector comes round.
            runtime.inbound = runtime.outbound = None
            del runtime.loop, runtime.handlers, runtime.updates

    # --- inside ----------------------------------------------------------------------------------------------------

    def _begin(self, time: datetime, started_event_id: int, *, replaying: bool) -> None:
        runtime = self._runtime
        runtime.advance(time)
        runtime.replaying = replaying
        if started_event_id > 2 and self._main.initialized:
            runtime.info._progress.history_length = started_event_id

    def _enter(self) -> Any:
        outer = asyncio._get_running_loop()
        asyncio._set_running_loop(self._runtime.loop)
        hooks = sys.get_asyncgen_hooks()
        if hooks.firstiter is not None or hooks.finalizer is not None:
            sys.set_asyncgen_hooks(None, None)
        if not self._guarded:
            return outer, hooks, 0, None
        thread = guards.this_thread()
        before = guards.running.get(thread)
        guards.running[thread] = self._runtime
        return outer, hooks, thread, before

    def _leave(self, state: Any) -> None:
        outer, hooks, thread, before = state
        if before is not None:
            guards.running[thread] = before
        elif thread:
            del guards.running[thread]
        if hooks.firstiter is not None or hooks.finalizer is not None:
            sys.set_asyncgen_hooks(hooks.firstiter, hooks.finalizer)
        asyncio._set_running_loop(outer)

    def _live(self, activation: Activation, *, for_updates: bool) -> TaskResult:
        """``for_updates``: it may be dropped, which a task that shows events alone never is."""
        self._before = self._way_back() if for_updates and self._main.initialized else None
        self._runtime.updates.rejections = []
        if self.mismatch is None:
            self._activate(activation, replaying=False)
        else:
            self._main.fail(self.mismatch.failure)
        self.last_event_id = activation.started_event_id
        runtime = self._runtime
        runtime.updates.reject_waiting()
        runtime.handlers.warn_unhandled(closing=self._main.closed)
        return self._result()

    def _way_back(self) -> Callable[[], None]:
        """Undoes a task in which no code of the workflow ran but validators."""
        runtime, flags = self._runtime, self._runtime.flags
        progress = runtime.info._progress
        last_event_id, now, seconds, known = self.last_event_id, runtime.now, runtime.loop.seconds, flags.known()
        told = progress.copy()

        def back() -> None:
            self.last_event_id, runtime.now, runtime.loop.seconds = last_event_id, now, seconds
            progress.back_to(told)
            flags.back_to(known)

        return back

    def _replay(self, activation: Activation) -> None:
        runtime = self._runtime
        runtime.changes.recorded(activation.command_events)
        runtime.local.recorded(activation.command_events)
        runtime.side_effects.recorded(activation.command_events)
        if activation.sdk_metadata is not None:
            runtime.flags.recorded(activation.sdk_metadata.flags)
        put_in(activation, accepted_updates(activation, runtime.updates.carried))
        self._activate(activation, replaying=True)
        asks = [ask for ask in runtime.asks if not ask.dropped]
        try:
            match(asks, activation.command_events, activation.completed_event_id)
        except NondeterminismError as error:
            failed = self._task_error(WorkflowTaskFailedCause.NON_DETERMINISTIC_ERROR, error)
            if not runtime.is_failure(error):
                raise failed from error
            self.mismatch = failed
            return
        runtime.asks = []
        events = activation.command_events
        self.last_event_id = events[-1].event_id if events else activation.completed_event_id
        self.previous_started_event_id = activation.started_event_id
        self.closed = self._main.closed
        self._metadata_pending = None

    def _activate(self, activation: Activation, *, replaying: bool) -> None:
        runtime = self._runtime
        self._begin(activation.time, activation.started_event_id, replaying=replaying)
        first = runtime.flags.use(LogicFlag.ORDERED_JOBS, replaying=replaying)
        jobs = in_order(activation.jobs, first)
        if jobs and isinstance(jobs[0], ev.WorkflowExecutionStarted):
            self._start(jobs[0])
        if not self._main.initialized:
            raise ValueError(
                "the history does not begin with WorkflowExecutionStarted; give run_task the whole history"
            )
        progress = runtime.info._progress
        progress.history_length = activation.started_event_id
        if activation.history_size_bytes:
            progress.history_size = activation.history_size_bytes
            progress.suggest(activation.suggested, suggested=activation.suggest_continue_as_new)
        outer = self._enter()
        try:
            try:
                if activation.new_seed:
                    runtime.loop.seed_hashes(activation.new_seed)
                    runtime.randomness.reseed(activation.new_seed)
                self._main.create()
                for job in jobs:
                    JOBS[type(job)](runtime, self._main, job)
                self._main.run_until_idle()
                while replaying and not self._main.closed and runtime.local.resolve_next():
                    self._main.run_until_idle()
            finally:
                self._leave(outer)
        except WorkflowTaskError:
            raise
        except Exception as error:
            raise self._task_error(WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE, error) from error

    def _start(self, started: ev.WorkflowExecutionStarted) -> None:
        runtime = self._runtime
        runtime.memo = dict(started.memo)
        runtime.search_attributes = dict(started.search_attributes)
        runtime.info = start_info(
            started,
            namespace=self.namespace,
            workflow_id=self.workflow_id,
            run_id=self.run_id,
            start_time=runtime.now,
        )
        self.priority = runtime.info.priority.to_record()
        runtime.default_task_queue = started.task_queue
        runtime.last_completion_result = started.last_completion_result
        runtime.continued_failure = started.continued_failure
        runtime.started_at = runtime.now
        runtime.loop.seconds = 0.0
        runtime.loop.seed_hashes(started.original_execution_run_id)
        runtime.randomness.begin(started.original_execution_run_id)
        self._main.initialize(started)

    def _result(self) -> TaskResult:
        runtime = self._runtime
        commands: list[Command] = [*runtime.updates.rejections]
        asks: list[Ask] = []
        for ask in runtime.asks:
            if not ask.dropped:
                asks.append(ask)
                commands.append(ask.command())
        runtime.asks = asks
        self.closed = self._main.closed
        flags = self._new_flags = (*self._new_flags, *runtime.flags.take_new())
        metadata = self._metadata_pending
        if flags or metadata is not None:
            base = metadata or SdkMetadata(sdk_name=SDK_NAME)
            metadata = SdkMetadata(flags=flags, sdk_name=base.sdk_name, sdk_version=base.sdk_version)
        return TaskResult(tuple(commands), metadata, self.closed)

    def _task_error(self, cause: WorkflowTaskFailedCause, error: BaseException) -> WorkflowTaskError:
        return WorkflowTaskError(cause, self._runtime.to_failure(error))
