"""The engine: one async method per operation of the API, over the ports and the pure core.

Code entry points: what a request does to an execution is decided in ``step``; ``executions`` commits it; ``polling``
hands work out; ``firing`` acts on deadlines; ``recovery`` rebuilds after a restart. This module wires them and owns
their life.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version

from stepwell.api import requests as r
from stepwell.api.common import ProcessIdentity
from stepwell.api.errors import ApiError, NotFound, Unavailable, WorkflowExecutionClosed

from ..common.background import Background
from ..common.clock import Clock, IdSource
from ..common.settings import EngineSettings
from ..matching.service import Matching
from ..timer_sweeper.sweeper import TimerSweeper
from .activities_shell import ActivityShell
from .armed_times import ArmedTimes
from .commit import Commit, ExecutionKey
from .describing import Describer
from .dispatching import MatchingDispatcher
from .executions import Executions, unavailable
from .firing import Firing
from .handed_out import HandedOut, HandedOutTasks
from .holders import Holders
from .items import ActivityItems
from .liveness import Liveness, SystemLiveness
from .outcomes import ActivityOutcomes
from .polling import Polling
from .ports import Dispatcher, ExecutionLog, StoreUnavailable, TimerIndex, VisibilityStore
from .queries import Queries
from .reading import HistoryReader
from .recovery import Recovery
from .requests import ActivityToken, RequestCancel, Signal, Start, Terminate
from .scheduled_events import ScheduledEvents
from .signalling import Signalling
from .task_processor import TaskProcessor
from .tokens import TokenSigner
from .transition import StartReply
from .watchers import Watchers
from .workflow_tasks_shell import WorkflowTaskShell

log = logging.getLogger(__name__)


class Engine:
    """Raises ``stepwell.api.errors``. Call it from one event loop; ``start`` before the first request, ``stop`` at the
    end.

    ``token_key``: 16 to 64 secret bytes, kept with the store, so that tokens outlive a restart. ``wrap_dispatcher``
    puts something between history and matching, such as a simulated fault.
    """

    def __init__(
        self,
        *,
        log: ExecutionLog,
        timers: TimerIndex,
        visibility: VisibilityStore,
        clock: Clock,
        ids: IdSource,
        token_key: bytes,
        settings: EngineSettings | None = None,
        liveness: Liveness | None = None,
        wrap_dispatcher: Callable[[Dispatcher], Dispatcher] | None = None,
    ) -> None:
        self._settings = settings = settings or EngineSettings()
        self._log = log
        self._ids = ids
        self._signer = signer = TokenSigner(token_key)
        self._background = Background()
        self._stopping = False
        self._matching = matching = Matching(clock)
        self._watchers = Watchers()
        dispatcher: Dispatcher = MatchingDispatcher(matching)
        if wrap_dispatcher is not None:
            dispatcher = wrap_dispatcher(dispatcher)
        liveness = liveness or SystemLiveness()
        self._executions = executions = Executions(log, clock, ids, settings, self._background, self._follow)
        self._signalling = Signalling(executions, self._background)
        self._items = items = ActivityItems(
            log, ids, sole_owner=settings.sole_owner, maximum_bytes=settings.cached_bytes
        )
        self._sweeper = TimerSweeper(timers, clock, self._fire, settings.timer_concurrency)
        self._handed_out = HandedOutTasks(self._offer_again)
        self._holders = Holders(
            self._handed_out, self._end_attempts, liveness, settings.liveness_interval.total_seconds()
        )
        self._dispatcher = dispatcher
        scheduled_events = ScheduledEvents(log, executions.cache, settings.cached_scheduled_bytes)
        self._armed = armed = ArmedTimes(self._sweeper.notify, sole_owner=settings.sole_owner)
        self._activities = ActivityShell(executions, items, scheduled_events, dispatcher, self._holders, armed, clock)
        self._workflow_tasks = WorkflowTaskShell(
            log, executions, items, self._handed_out, self._holders, dispatcher, signer, clock
        )
        self._outcomes = ActivityOutcomes(self._activities, self._workflow_tasks, signer)
        self._tasks = TaskProcessor(dispatcher, items, self._cancel_activities)
        self._reader = HistoryReader(log, visibility, executions, self._watchers, signer, clock, settings)
        self._queries = Queries(self._reader, self._watchers, matching, signer, clock, ids, settings)
        self._polling = Polling(
            matching,
            self._workflow_tasks,
            self._activities,
            self._queries,
            signer,
            clock,
            settings,
            self._background,
            liveness,
        )
        self._describer = Describer(self._reader, items, matching)
        self._firing = Firing(executions, items, self._activities)
        self._recovery = Recovery(
            visibility,
            executions,
            items,
            self._activities,
            self._holders,
            dispatcher,
            liveness,
            settings.recovery_concurrency,
        )

    # --- life ---

    async def start(self) -> None:
        """Rebuilds the queues, then fires deadlines. Raises Unavailable when the store cannot be read."""
        try:
            count = await self._recovery.run()
        except StoreUnavailable as error:
            raise unavailable(error) from error
        log.info("Recovered %d open executions that wait for workers", count)
        self._sweeper.start()
        self._holders.start()

    async def stop(self) -> None:
        """Graceful: open long polls end empty, what is being committed is finished, nothing new is taken."""
        self._stopping = True
        self._matching.stop()
        self._watchers.stop()
        self._queries.stop()
        self._handed_out.stop()
        await self._holders.stop()
        await self._sweeper.stop(self._settings.stop_grace.total_seconds())
        await self._background.drain(self._settings.stop_grace.total_seconds())

    def forget(self, keys: list[ExecutionKey]) -> None:
        """Retention deleted runs of these ids: what is cached of them may be out of date."""
        for key in keys:
            self._executions.cache.drop(key)

    # --- workflows ---

    async def start_workflow(self, request: r.StartWorkflowRequest) -> r.StartWorkflowResponse:
        self._check_serving()
        key = ExecutionKey(request.namespace, request.workflow_id)
        asked = Start(run_id=self._ids.run_id(), start=request)
        while True:
            outcome = await self._executions.transact(key, asked)
            reply = outcome.transition.reply
            if not isinstance(reply, StartReply):
                raise TypeError(f"a start was answered with {type(reply).__name__}")
            if not reply.step_again:
                return r.StartWorkflowResponse(
                    run_id=reply.run_id, started=reply.started, first_execution_run_id=reply.first_run_id
                )

    async def signal_workflow(self, request: r.SignalWorkflowRequest) -> r.SignalWorkflowResponse:
        self._check_serving()
        key = _key(request)
        asked = Signal(
            run_id=request.execution.run_id,
            signal_name=request.signal_name,
            input=request.input,
            identity=request.identity,
            headers=request.headers,
            request_id=request.request_id,
        )
        try:
            await self._signalling.record(key, asked)
        except NotFound as refusal:
            raise await self._better(refusal, key, asked.run_id) from None
        return r.SignalWorkflowResponse()

    async def cancel_workflow(self, request: r.CancelWorkflowRequest) -> r.CancelWorkflowResponse:
        self._check_serving()
        key = _key(request)
        asked = RequestCancel(
            run_id=request.execution.run_id,
            reason=request.reason,
            identity=request.identity,
            request_id=request.request_id,
            first_run_id=request.first_execution_run_id,
        )
        try:
            await self._executions.transact(key, asked)
        except NotFound as refusal:
            better = await self._better(refusal, key, asked.run_id)
            if not isinstance(better, WorkflowExecutionClosed):  # a closed run needs no cancelling (CH-09)
                raise better from None
        return r.CancelWorkflowResponse()

    async def terminate_workflow(self, request: r.TerminateWorkflowRequest) -> r.TerminateWorkflowResponse:
        self._check_serving()
        key = _key(request)
        asked = Terminate(
            run_id=request.execution.run_id,
            reason=request.reason,
            details=request.details,
            identity=request.identity,
            first_run_id=request.first_execution_run_id,
        )
        try:
            await self._executions.transact(key, asked)
        except NotFound as refusal:
            raise await self._better(refusal, key, asked.run_id) from None
        return r.TerminateWorkflowResponse()

    async def query_workflow(self, request: r.QueryWorkflowRequest) -> r.QueryWorkflowResponse:
        self._check_serving()
        return await self._queries.query(request)

    async def describe_workflow(self, request: r.DescribeWorkflowRequest) -> r.DescribeWorkflowResponse:
        return await self._describer.workflow(request)

    async def get_history(self, request: r.GetHistoryRequest) -> r.GetHistoryResponse:
        if request.wait_new_event:
            self._check_serving()
        return await self._reader.get_history(request)

    async def list_workflows(self, request: r.ListWorkflowsRequest) -> r.ListWorkflowsResponse:
        return await self._reader.list_workflows(request)

    # --- workers ---

    async def poll_workflow_task(self, request: r.PollWorkflowTaskRequest) -> r.PollWorkflowTaskResponse:
        self._check_serving()
        return await self._polling.workflow_task(request)

    async def poll_activity_task(self, request: r.PollActivityTaskRequest) -> r.PollActivityTaskResponse:
        self._check_serving()
        return await self._polling.activity_task(request)

    async def undelivered(self, response: r.PollWorkflowTaskResponse | r.PollActivityTaskResponse) -> None:
        """The answer of a poll could not be sent, so nobody has its tasks: they are offered again (WC-32)."""
        await self._polling.undelivered(response)

    def connection_lost(self, worker: r.WorkerInfo) -> None:
        """A connection of this worker ended while it waited for an answer."""
        if worker.process is not None and not self._stopping:
            self._background.spawn(self._holders.look_soon(worker.process))

    async def respond_workflow_task_completed(
        self, request: r.RespondWorkflowTaskCompletedRequest
    ) -> r.RespondWorkflowTaskCompletedResponse:
        self._check_serving()
        return await self._workflow_tasks.complete(request)

    async def respond_workflow_task_failed(
        self, request: r.RespondWorkflowTaskFailedRequest
    ) -> r.RespondWorkflowTaskFailedResponse:
        self._check_serving()
        return await self._workflow_tasks.fail(request)

    async def respond_query_task_completed(
        self, request: r.RespondQueryTaskCompletedRequest
    ) -> r.RespondQueryTaskCompletedResponse:
        return self._queries.respond(request)

    async def respond_activity_tasks(self, request: r.RespondActivityTasksRequest) -> r.RespondActivityTasksResponse:
        self._check_serving()
        return await self._outcomes.respond(request)

    async def record_activity_heartbeat(
        self, request: r.RecordActivityHeartbeatRequest
    ) -> r.RecordActivityHeartbeatResponse:
        self._check_serving()
        token = self._signer.open_as(request.task_token, ActivityToken, request.namespace, "task_token")
        cancel_requested = await self._activities.heartbeat(token, request.details)
        return r.RecordActivityHeartbeatResponse(cancel_requested=cancel_requested)

    async def shutdown_worker(self, request: r.ShutdownWorkerRequest) -> r.ShutdownWorkerResponse:
        self._matching.shut_down_worker(request.namespace, request.task_queue, request.worker)
        return r.ShutdownWorkerResponse()

    # --- system ---

    async def describe_task_queue(self, request: r.DescribeTaskQueueRequest) -> r.DescribeTaskQueueResponse:
        return self._describer.task_queue(request)

    async def get_system_info(self, request: r.GetSystemInfoRequest) -> r.GetSystemInfoResponse:
        settings = self._settings
        return r.GetSystemInfoResponse(
            server_version=settings.server_version or _installed_version(),
            database=settings.database,
            default_retention=settings.default_retention,
        )

    # --- between the parts ---

    async def _follow(self, key: ExecutionKey, commit: Commit, arm: datetime | None) -> None:
        """Right behind each commit: wakes who waits for it, forgets what it ended, hands on what it owes."""
        state = commit.state
        if arm is not None:
            self._sweeper.notify(arm)
        self._watchers.committed(key, commit)
        self._handed_out.committed(key, state)
        self._holders.committed(key, state)
        self._items.committed(key, state)
        if commit.tasks:
            await self._tasks.process(commit)
        if self._items.may_be_finished(key, state):
            self._background.spawn(self._activities.wake_up(key, state.run_id))

    async def _fire(self, key: ExecutionKey, fire_at: datetime) -> None:
        self._armed.fired(key, fire_at)
        await self._firing.fire(key, fire_at)

    async def _end_attempts(self, key: ExecutionKey, process: ProcessIdentity) -> None:
        await self._recovery.end_attempts(key, process)

    async def _cancel_activities(self, key: ExecutionKey, run_id: str, scheduled_event_ids: list[int]) -> None:
        self._background.spawn(self._activities.cancel(key, run_id, scheduled_event_ids))

    def _offer_again(self, record: HandedOut) -> None:
        """The worker has not answered in time, or is gone; it is not the one to prefer."""
        if not self._stopping:
            self._background.spawn(self._dispatcher.offer_workflow_task(record.task_queue, record.ref))

    async def _better(self, refusal: NotFound, key: ExecutionKey, run_id: str) -> ApiError:
        """An older run that is still kept is closed, which says more than not found."""
        if not run_id or isinstance(refusal, WorkflowExecutionClosed):
            return refusal
        try:
            commit = await self._log.find_run(key, run_id)
        except StoreUnavailable as error:
            return unavailable(error)
        if commit is None or commit.state.close_time is None:
            return refusal
        status = commit.state.status.value
        return WorkflowExecutionClosed(
            f"run {run_id} of workflow {key.workflow_id!r} is closed ({status}); "
            "leave run_id out to mean the newest run",
            status=status,
        )

    def _check_serving(self) -> None:
        if self._stopping:
            raise Unavailable("the engine is stopping; nothing acknowledged is lost, call again when it is back")


def _key(request: r.SignalWorkflowRequest | r.CancelWorkflowRequest | r.TerminateWorkflowRequest) -> ExecutionKey:
    return ExecutionKey(request.namespace, request.execution.workflow_id)


def _installed_version() -> str:
    try:
        return version("stepwell-server")
    except PackageNotFoundError:
        return "unknown"
