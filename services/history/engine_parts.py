"""What the engine is made of, wired together: the base of its operations.

Each ``operations_*`` module adds the operations of one subject to :class:`EngineParts`; ``engine`` puts them together
and owns their life.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from stepwell.api import requests as r
from stepwell.api.common import ProcessIdentity
from stepwell.api.enums import TaskQueueKind
from stepwell.api.errors import ApiError, NotFound, Unavailable, WorkflowExecutionClosed

from ..common.background import Background
from ..common.blobs import BlobStore
from ..common.clock import Clock, IdSource
from ..common.control import MARK, ControlWakeUps, UnknownWakeUp
from ..common.metrics import NO_METRICS, Metrics
from ..common.settings import EngineSettings
from ..common.spaces import namespace_of
from ..matching.service import Matching, QueueName
from ..namespaces.registry import Namespaces
from ..timer_sweeper.sweeper import TimerSweeper
from . import history_limits
from .activities_by_id import ActivitiesById
from .activities_shell import ActivityShell
from .activity_admin import ActivityAdmin
from .admission import Admission, never_quick
from .apply import event_size
from .archive_reading import ArchiveReader
from .archives import Archives
from .archiving import Archiving
from .armed_times import ArmedTimes
from .attribute_types import AttributeTypes
from .callback_addresses import admit_callbacks, parse_addresses
from .claims import Claims
from .commit import UNKNOWN, Awaited, Commit, ExecutionKey
from .crossing import Crossing
from .crossing_ends import ChainEnds
from .crossing_namespaces import OtherNamespaces
from .deleting import Deleting
from .describing import Describer
from .dispatching import MatchingDispatcher
from .executions import Executions, unavailable
from .firing import Firing
from .firing_ahead import FiringsAhead
from .handed_out import HandedOut, HandedOutTasks
from .holders import Holders
from .importing import Importing
from .items import ActivityItems
from .listing import Listing
from .liveness import Liveness, SystemLiveness
from .outcomes import ActivityOutcomes
from .outside_runs import OutsideRuns
from .outside_waiters import OutsideWaiters
from .paces import pace_of
from .pollers import Pollers
from .polling import Polling
from .ports import Dispatcher, ExecutionLog, PollersSeen, QueryBoard, StoreUnavailable, TimerIndex, VisibilityStore
from .queries import Queries
from .query_board import MemoryQueryBoard
from .reading import HistoryReader
from .recent_signals import RecentSignals
from .recovery import Recovery
from .resetting import Resetting
from .scheduled_events import ScheduledEvents
from .signalling import Signalling
from .task_processor import TaskProcessor
from .tasks import CancelActivity
from .tokens import TokenSigner
from .updates import Updates
from .watchers import Watchers
from .workflow_tasks_shell import WorkflowTaskShell

log = logging.getLogger(__name__)

T = TypeVar("T")

TaskSources = Callable[[QueueName], Awaitable[Sequence[str]]]
"""Addresses of the message queues from which workers receive the hints of a task queue themselves."""

QueueBacklog = Callable[[QueueName], Awaitable[int]]
"""About how many hints wait in message queues outside this process."""

_POLLED_SECONDS = 0.5
"""A worker that has asked for tasks this lately is about to ask again."""


class EngineParts:
    """See :class:`~stepwell_server.history.engine.Engine` for the arguments."""

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
        query_board: QueryBoard | None = None,
        task_sources: TaskSources | None = None,
        queue_backlog: QueueBacklog | None = None,
        pollers_seen: PollersSeen | None = None,
        wake_ups: ControlWakeUps | None = None,
        namespaces: Namespaces | None = None,
        archive: BlobStore | None = None,
        metrics: Metrics = NO_METRICS,
        is_quick: Callable[[], bool] = never_quick,
        make_dispatcher: Callable[[Matching], Dispatcher] = MatchingDispatcher,
        wrap_dispatcher: Callable[[Dispatcher], Dispatcher] | None = None,
    ) -> None:
        self._settings = settings = settings or EngineSettings()
        self._metrics, self._log, self._addresses = metrics, log, parse_addresses(settings.callback_addresses)
        self._clock, self._ids, self._pace = clock, ids, pace_of(settings)
        self.wake_ups, self.namespaces = wake_ups, namespaces or Namespaces(None, clock, ids)
        self._services: dict[type, object] = {}
        self._task_sources, self._queue_backlog = task_sources, queue_backlog
        self._signer = signer = TokenSigner(token_key)
        self._background = Background()
        self._starting, self._stopping = Admission(is_quick), False
        self._matching = matching = Matching(clock)
        self._pollers = pollers = Pollers(matching, clock, pollers_seen)
        self._watchers = Watchers(clock, None if settings.sole_owner else settings.look_again.total_seconds())
        dispatcher = make_dispatcher(matching)
        if wrap_dispatcher is not None:
            dispatcher = wrap_dispatcher(dispatcher)
        liveness = liveness or SystemLiveness()
        self._handed_out = HandedOutTasks(self._offer_again, remembers=settings.stays)
        ahead = FiringsAhead(self._handed_out.discard)
        self._executions = executions = Executions(
            log,
            clock,
            ids,
            settings,
            self._background,
            self._follow,
            ahead,
            metrics,
            self.retention,
            self._archive_after,
        )
        claims = Claims(log, clock, self.retention)
        self._signalling = Signalling(
            log,
            executions,
            claims,
            RecentSignals(log, clock),
            clock,
            self._background,
        )
        self._items = items = ActivityItems(
            log, ids, sole_owner=settings.sole_owner, maximum_bytes=settings.cached_bytes
        )
        self._sweeper = TimerSweeper(timers, clock, self._fire, settings.timer_concurrency)
        self._holders = Holders(
            self._handed_out, self._end_attempts, liveness, settings.liveness_interval.total_seconds()
        )
        self._dispatcher = dispatcher
        scheduled_events = ScheduledEvents(log, executions.cache, settings.cached_scheduled_bytes)
        self._armed = armed = ArmedTimes(self._sweeper.notify, sole_owner=settings.sole_owner)
        self._activities = ActivityShell(executions, items, scheduled_events, dispatcher, self._holders, armed, clock)
        self._workflow_tasks = WorkflowTaskShell(
            log, executions, items, self._handed_out, self._holders, dispatcher, signer, clock, ids
        )
        self._outcomes = ActivityOutcomes(self._activities, self._workflow_tasks, signer)
        self._by_id = ActivitiesById(executions, items, self._activities, self._outcomes, signer)
        self._activity_admin = ActivityAdmin(executions, self._activities, clock, ids)
        self._archives = archives = None if archive is None else Archives(archive)
        self._deleting = Deleting(
            log,
            visibility,
            executions,
            self._background,
            settings.crossing_concurrency,
            archives,
            self._is_archived,
        )
        self._attribute_types = types = AttributeTypes(self.namespaces, visibility)
        self.outside_waiters = OutsideWaiters()
        self.outside_runs = OutsideRuns(
            log, executions, ChainEnds(log, executions, scheduled_events), types, self.namespaces
        )
        crossing = Crossing(
            log,
            executions,
            scheduled_events,
            self._background,
            settings.crossing_concurrency,
            self.outside_waiters,
            OtherNamespaces(self.namespaces, types),
        )
        self._tasks = TaskProcessor(
            dispatcher,
            items,
            self._cancel_activities,
            crossing,
            self._deleting,
            Archiving(log, executions, archives, self._background, settings.archive_concurrency),
            at_once=not settings.sole_owner,
        )
        self._reader = HistoryReader(log, executions, self._watchers, signer, clock, settings)
        self._listing = Listing(visibility, self._attribute_types, signer)
        self._archive = ArchiveReader(archives, executions, types, signer, self._is_archived)
        self._resetting = Resetting(log, executions, self._reader, clock, ids)
        self._importing = Importing(log, executions, types, clock, self.retention, self._archive)
        self._queries = Queries(
            query_board or MemoryQueryBoard(),
            dispatcher,
            self._reader,
            self._watchers,
            matching,
            pollers,
            signer,
            clock,
            ids,
            settings,
        )
        self._updates = Updates(log, executions, claims, self._reader, self._watchers, pollers, clock, settings)
        self._polling = Polling(
            matching,
            pollers,
            self._workflow_tasks,
            self._activities,
            self._queries,
            signer,
            clock,
            settings,
            self._background,
            liveness,
            metrics,
        )
        self._describer = Describer(self._reader, items, matching, pollers)
        self._firing = Firing(
            log,
            executions,
            items,
            self._activities,
            ids,
            dispatcher,
            clock,
            self._is_polled,
            fire_once=settings.sole_owner,
            metrics=metrics,
        )
        self._recovery = Recovery(
            visibility,
            executions,
            items,
            self._activities,
            self._holders,
            dispatcher,
            liveness,
            crossing,
            self._deleting,
            settings.recovery_concurrency,
        )

    def attach(self, service: object) -> None:
        """Lets handlers find what stands beside the engine, such as schedules, by its type."""
        self._services[type(service)] = service

    def attached(self, kind: type[T]) -> T:
        """Raises Unavailable where there is none."""
        service = self._services.get(kind)
        if not isinstance(service, kind):
            raise Unavailable(f"this process does not serve {kind.__name__.lower()}; ask another one")
        return service

    @property
    def matching(self) -> Matching:
        """The task queues of this process."""
        return self._matching

    # --- for the operations ---

    def retention(self, namespace: str) -> timedelta:
        known = self.namespaces.known.get(namespace_of(namespace))
        return self._settings.default_retention if known is None else known.retention

    def _archive_after(self, namespace: str) -> timedelta | None:
        known = None if self._archives is None else self.namespaces.known.get(namespace)
        return self._settings.archive_after if known is not None and known.archival else None

    def _is_archived(self, namespace: str) -> bool:
        """Whether runs of it may be in the archive; who has no registry must look."""
        return not self.namespaces.keeps_records or self.namespaces.get(namespace).archived

    def _check_serving(self) -> None:
        if self._stopping:
            raise Unavailable("the engine is stopping; nothing acknowledged is lost, call again when it is back")

    def _admit_callbacks(self, request: r.StartWorkflowRequest) -> None:
        """Raises InvalidArgument."""
        if request.completion_callbacks:
            admit_callbacks(request.completion_callbacks, self._addresses)

    async def _better(self, refusal: NotFound, key: ExecutionKey, run_id: str) -> ApiError:
        """An older run that is still kept is closed, which says more than not found."""
        if not run_id or isinstance(refusal, WorkflowExecutionClosed):
            return refusal
        try:
            commit = await self._log.find_run(key, run_id)
        except StoreUnavailable as error:
            return unavailable(error)
        state = None if commit is None else commit.state_of(run_id)
        if state is None or state.close_time is None:
            return refusal
        status = state.status.value
        return WorkflowExecutionClosed(
            f"run {run_id} of workflow {key.workflow_id!r} is closed ({status}); "
            "leave run_id out to mean the newest run",
            status=status,
        )

    # --- between the parts ---

    async def _follow(self, key: ExecutionKey, commit: Commit, arm: datetime | None) -> None:
        """Right behind each commit: wakes who waits for it, forgets what it ended, hands on what it owes."""
        state = commit.state
        warning = history_limits.warning(state, commit.events, event_size)
        if warning:
            log.warning("Workflow %s run %s has %s: let it continue as new", key.workflow_id, state.run_id, warning)
        if commit.closed is not None or state.close_time is not None:
            self._armed.closed(key)
        if arm is not None:
            self._sweeper.notify(arm, key)
        self._watchers.committed(key, commit)
        self._handed_out.committed(key, state)
        self._holders.committed(key, state)
        self._items.committed(key, state)
        if commit.tasks and self._settings.hands_on_itself:
            await self._tasks.process(commit)
        if state.activities and self._items.may_be_finished(key, state):
            self._background.spawn(self._activities.wake_up(key, state.run_id))

    async def _fire(self, key: ExecutionKey, fire_at: datetime, awaited: Awaited = UNKNOWN) -> bool:
        if key.workflow_id[:1] == MARK:
            if self.wake_ups is None:
                raise UnknownWakeUp(f"this engine was made without wake-ups; {key!r} stays armed")
            return await self.wake_ups.fire(*key, fire_at, awaited.seq, awaited.run_id)
        self._armed.fired(key, fire_at)
        return await self._firing.fire(key, fire_at, awaited)

    def _is_polled(self, namespace: str, task_queue: str) -> bool:
        name = QueueName(namespace, task_queue, TaskQueueKind.WORKFLOW)
        return self._matching.seconds_without_poller(name) < _POLLED_SECONDS

    async def _end_attempts(self, key: ExecutionKey, process: ProcessIdentity) -> None:
        await self._recovery.end_attempts(key, process)

    async def _cancel_activities(self, key: ExecutionKey, run_id: str, tasks: list[CancelActivity]) -> None:
        self._background.spawn(self._activities.cancel(key, run_id, tasks))

    def _offer_again(self, record: HandedOut) -> None:
        """The worker has not answered in time, or is gone; it is not the one to prefer."""
        if not self._stopping:
            self._background.spawn(
                self._dispatcher.offer_workflow_task(record.task_queue, record.ref, priority=record.priority)
            )


def key_of(
    request: r.SignalWorkflowRequest
    | r.CancelWorkflowRequest
    | r.TerminateWorkflowRequest
    | r.DeleteWorkflowRequest
    | r.UpdateWorkflowOptionsRequest
    | r.PauseWorkflowRequest
    | r.UnpauseWorkflowRequest
    | r.ResetWorkerAffinityRequest,
) -> ExecutionKey:
    """Of the execution that a request names."""
    return ExecutionKey(request.namespace, request.execution.workflow_id)
