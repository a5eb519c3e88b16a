"""Workflow tasks at the edge of the core: handed out without a write, and answered with one.

The answer is the hot path. A fused step costs one token check, one ``step``, one append and a few dictionary look-ups.
"""

from collections.abc import Sequence
from functools import partial

import msgspec
from stepwell.api.commands import ContinueAsNewWorkflowExecution
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import CompletionOutcome, WorkflowExecutionStatus
from stepwell.api.errors import InvalidArgument
from stepwell.api.events import HistoryEvent
from stepwell.api.requests import (
    ActivityLease,
    ActivityOutcome,
    ActivityOutcomeReply,
    RespondWorkflowTaskCompletedRequest,
    RespondWorkflowTaskCompletedResponse,
    RespondWorkflowTaskFailedRequest,
    RespondWorkflowTaskFailedResponse,
    WorkerInfo,
    WorkflowTask,
)
from stepwell.api.updates import DeliveredUpdate

from ..common.clock import Clock, IdSource
from .commit import ExecutionKey
from .executions import Executions, Known, Outcome, unavailable
from .firing_ahead import FiringAhead
from .handed_out import HandedOutTasks, identity_of
from .head_cache import Entry
from .holders import Holders
from .items import ActivityItems
from .leased_outcomes import leased_outcome
from .machines import workflow_task
from .machines.commands import closes
from .next_runs import next_run
from .ports import Dispatcher, ExecutionLog, StoreUnavailable, WorkflowTaskRef
from .requests import (
    NO_NEXT_RUN,
    CompleteWorkflowTask,
    FailWorkflowTask,
    FinishedActivity,
    LeasedOutcome,
    RecordLeasedOutcomes,
    Request,
    Worker,
)
from .run_limits import RUN_LIMITS, RunLimits
from .state import ExecutionState
from .task_tokens import ActivityToken, ContinuationToken, WorkflowTaskToken
from .tokens import TokenSigner
from .transition import CompletionReply, OutcomesReply

_TAIL_READ_EVENTS = 1_000
_TASK_TOKENS = (WorkflowTaskToken, ContinuationToken)
_GOES_ON = (CompletionOutcome.ACCEPTED, CompletionOutcome.DROPPED)
_replace = msgspec.structs.replace


class WorkflowTaskShell:
    def __init__(
        self,
        log: ExecutionLog,
        executions: Executions,
        items: ActivityItems,
        handed_out: HandedOutTasks,
        holders: Holders,
        dispatcher: Dispatcher,
        signer: TokenSigner,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._log = log
        self._executions = executions
        self._items = items
        self._handed_out = handed_out
        self._holders = holders
        self._dispatcher = dispatcher
        self._signer = signer
        self._clock = clock
        self._ids = ids

    # --- handing out ---

    async def begin(self, ref: WorkflowTaskRef, worker: WorkerInfo, task_queue: str = "") -> WorkflowTask | None:
        """The outstanding workflow task that ``ref`` hints at, for ``worker``; None when the hint is out of date, or is
        not of ``task_queue``, where that is given."""
        while True:
            entry = await self._executions.fresh(ref.key)
            ahead = self._executions.ahead.planned(ref.key, entry.state) if entry is not None else None
            state = _outstanding(entry if ahead is None else ahead, ref)
            if entry is None or state is None or state.workflow_task is None:
                return None
            if task_queue and task_queue != state.task_queue:
                return None
            if state.pause is not None and not state.workflow_task.kept_alive:
                return None  # unpausing offers it again
            now = max(self._clock.now(), state.last_event_time)
            not_before = state.workflow_task.not_before
            if not_before is not None and not_before > now:
                await self._dispatcher.offer_workflow_task(
                    state.task_queue, ref, state.last_worker_key, not_before, state.priority
                )
                return None
            finished = await self._items.finished(state)
            numbered = await self._numbered(entry, ref.key)
            newest = self._executions.cache.peek(ref.key)
            unchanged = newest is None or newest.state is entry.state
            if unchanged and self._executions.ahead.planned(ref.key, entry.state) is ahead:
                break
        numbered = workflow_task.behind_completed(numbered, shown_completed=worker.shown_completed)
        if ahead is not None:
            numbered = (*numbered, *ahead.firing.events)
        task = identity_of(state)
        if task is None or self._handed_out.is_held(ref.key, task):
            return None
        refused = self._handed_out.refused_closes(ref.key, task)
        token, shown = workflow_task.begin(state, now, finished, refused_closes=refused)
        if ahead is not None:
            token = _replace(token, ahead=ahead.time)
        seconds = workflow_task.attempt_timeout(state, state.workflow_task.attempt).total_seconds()
        self._handed_out.add(ref, task, state.task_queue, worker.process, seconds, state.priority)
        updates = workflow_task.delivered(state, token, finished) if state.updates else ()
        return self._task(state, token, (*numbered, *shown), updates, worker)

    def _task(
        self,
        state: ExecutionState,
        token: WorkflowTaskToken,
        events: tuple[HistoryEvent, ...],
        updates: tuple[DeliveredUpdate, ...],
        worker: WorkerInfo,
    ) -> WorkflowTask:
        outstanding = state.workflow_task
        if outstanding is None:
            raise ValueError("no workflow task is outstanding")
        return WorkflowTask(
            task_token=self._signer.seal(token),
            execution=WorkflowExecution(workflow_id=state.workflow_id, run_id=state.run_id),
            workflow_type=state.workflow_type,
            task_queue=state.task_queue,
            previous_started_event_id=state.previous_started_event_id,
            started_event_id=events[-1].event_id,
            attempt=outstanding.attempt,
            scheduled_time=outstanding.scheduled_time,
            started_time=token.started_time,
            events=events,
            last_event_id=events[-1].event_id,
            history_size_bytes=state.history_size,
            updates=updates,
            same_worker=bool(worker.worker_key) and worker.worker_key == state.last_worker_key,
        )

    async def _numbered(self, entry: Entry, key: ExecutionKey) -> Sequence[HistoryEvent]:
        """The events in the log from the last WorkflowTaskCompleted on."""
        if entry.tail is not None:
            return entry.tail
        state = entry.state
        began = state.prefix_tail_seq or state.first_seq
        after_seq = (state.completion.seq if state.completion is not None else began) - 1
        first = state.previous_started_event_id + 1 if state.previous_started_event_id else 1
        tail: list[HistoryEvent] = []
        while not tail or tail[-1].event_id < state.next_event_id - 1:
            try:
                page = await self._log.read_events(key, state.run_id, after_seq, _TAIL_READ_EVENTS)
            except StoreUnavailable as error:
                raise unavailable(error) from error
            tail += [event for event in page.events if event.event_id >= first]
            if page.last_seq == after_seq:
                break
            after_seq = page.last_seq
        shown = tuple(event for event in tail if event.event_id < state.next_event_id)
        self._executions.cache.learned_tail(key, state.seq, shown)
        return shown

    def give_back(self, ref: WorkflowTaskRef) -> None:
        """Nobody received the task (WC-32)."""
        self._handed_out.discard(ref.key)

    # --- answers ---

    async def complete(
        self, request: RespondWorkflowTaskCompletedRequest, misfit: str = "", limits: RunLimits = RUN_LIMITS
    ) -> RespondWorkflowTaskCompletedResponse:
        token = self._open(request.task_token, request.namespace)
        key = ExecutionKey(token.namespace, token.workflow_id)
        outcomes = self._leased_outcomes(request.activity_outcomes, token) if request.activity_outcomes else ()
        # No nested function: of what it would take from here, each name is an object that the collector looks at.
        prepare = partial(self._completion, key, token, request, outcomes, misfit, limits)
        outcome = await self._executions.transact(key, None, prepare)
        reply = outcome.transition.reply
        if not isinstance(reply, CompletionReply):
            raise TypeError(f"a completion was answered with {type(reply).__name__}")
        if reply.outcome is CompletionOutcome.UNSEEN_EVENTS:
            await self._offer_refused_close(key, outcome.transition.state)
        if reply.leases:
            self._holders.note(request.worker.process, key)
        response = self._completed(key, reply, outcome)
        same_run = reply.outcome is CompletionOutcome.ACCEPTED and outcome.transition.state.run_id == token.run_id
        if not (request.return_new_workflow_task and same_run):
            return response
        return msgspec.structs.replace(response, workflow_task=await self._following_task(key, request.worker, outcome))

    async def _completion(
        self,
        key: ExecutionKey,
        token: WorkflowTaskToken | ContinuationToken,
        request: RespondWorkflowTaskCompletedRequest,
        outcomes: tuple[LeasedOutcome, ...],
        misfit: str,
        limits: RunLimits,
        state: ExecutionState | None,
    ) -> Request:
        eager = request.eager_activities
        if eager is not None and not self._dispatcher.takes_eagerly(token.namespace, eager.task_queue):
            eager = None
        following = NO_NEXT_RUN
        if closes(request.commands):
            continues = type(request.commands[-1]) is ContinueAsNewWorkflowExecution
            following = await next_run(self._log, key, state, token.run_id, self._ids.run_id, continues=continues)
        return CompleteWorkflowTask(
            token=self._as_it_counts(key, token, state),
            nonce=request.nonce,
            worker=_worker(request.worker),
            commands=request.commands,
            outcomes=outcomes,
            finished=await self._finished(state, token.run_id),
            workflow_time=request.workflow_time,
            sdk_metadata=request.sdk_metadata,
            eager=eager,
            next_run=following,
            another_task=request.force_new_workflow_task,
            takes_task=request.return_new_workflow_task,
            misfit=misfit,
            limits=limits,
        )

    async def _following_task(self, key: ExecutionKey, worker: WorkerInfo, outcome: Outcome) -> WorkflowTask | None:
        """The task that a completion asked for, which was offered to nobody. Whoever does not get it here is offered
        it; a process that ends in between leaves it to recovery, and a request that is given up to the deadline."""
        state = outcome.transition.state
        if state.workflow_task is None:
            return None
        ref = WorkflowTaskRef(key, state.run_id, state.workflow_task.attempt)
        task: WorkflowTask | None = None
        if outcome.commit is None:
            self._handed_out.discard(key)  # the same completion again: the answer that had the task was lost
        try:
            task = await self.begin(ref, worker)
        finally:
            if task is None:
                await self._dispatcher.offer_workflow_task(
                    state.task_queue, ref, state.last_worker_key, priority=state.priority
                )
        return task

    async def fail(self, request: RespondWorkflowTaskFailedRequest) -> RespondWorkflowTaskFailedResponse:
        token = self._open(request.task_token, request.namespace)
        key = ExecutionKey(token.namespace, token.workflow_id)
        outcomes = self._leased_outcomes(request.activity_outcomes, token) if request.activity_outcomes else ()

        async def prepare(state: Known) -> Request:
            return FailWorkflowTask(
                token=self._as_it_counts(key, token, state),
                nonce=request.nonce,
                worker=_worker(request.worker),
                cause=request.cause,
                failure=request.failure,
                outcomes=outcomes,
                finished=await self._finished(state, token.run_id),
            )

        outcome = await self._executions.transact(key, None, prepare)
        reply = outcome.transition.reply
        if not isinstance(reply, CompletionReply):
            raise TypeError(f"a failed workflow task was answered with {type(reply).__name__}")
        return RespondWorkflowTaskFailedResponse(activity_replies=reply.outcome_replies)

    async def record_outcomes(
        self, key: ExecutionKey, run_id: str, outcomes: tuple[LeasedOutcome, ...]
    ) -> tuple[ActivityOutcomeReply, ...]:
        """Ends of log-leased attempts without a workflow part: one commit for all of them."""
        outcome = await self._executions.transact(key, RecordLeasedOutcomes(run_id=run_id, outcomes=outcomes))
        reply = outcome.transition.reply
        if not isinstance(reply, OutcomesReply):
            raise TypeError(f"ends of leased attempts were answered with {type(reply).__name__}")
        return reply.outcome_replies

    def _as_it_counts(
        self, key: ExecutionKey, token: WorkflowTaskToken | ContinuationToken, state: ExecutionState | None
    ) -> WorkflowTaskToken | ContinuationToken:
        if type(token) is WorkflowTaskToken and token.ahead is not None:
            return self._executions.ahead.token(key, token, state)
        return token

    def _open(self, data: bytes, namespace: str) -> WorkflowTaskToken | ContinuationToken:
        token = self._signer.open(data, "task_token")
        if not isinstance(token, _TASK_TOKENS) or token.namespace != namespace:
            raise InvalidArgument(
                f"task_token is not one of a workflow task in namespace {namespace!r}; send back the token of the task "
                "or the continuation_token of the last accepted completion",
                field="task_token",
            )
        return token

    def _leased_outcomes(
        self, outcomes: Sequence[ActivityOutcome], step: WorkflowTaskToken | ContinuationToken
    ) -> tuple[LeasedOutcome, ...]:
        leased = []
        for outcome in outcomes:
            token = self._signer.open_as(
                outcome.task_token, ActivityToken, step.namespace, "activity_outcomes.task_token"
            )
            if not token.leased or token.run_id != step.run_id or token.workflow_id != step.workflow_id:
                raise InvalidArgument(
                    f"activity_outcomes names activity {token.activity_id!r}, which is not leased with this run; "
                    "only leased activities of the run may travel with a completion; "
                    "send others to RespondActivityTasks",
                    field="activity_outcomes",
                )
            leased.append(leased_outcome(token, outcome))
        return tuple(leased)

    async def _finished(self, state: ExecutionState | None, run_id: str) -> tuple[FinishedActivity, ...]:
        if state is None or state.run_id != run_id or not state.activities:
            return ()
        finished = await self._items.finished(state)
        return tuple([FinishedActivity(item) for item in finished]) if finished else ()

    async def _offer_refused_close(self, key: ExecutionKey, state: ExecutionState) -> None:
        self._handed_out.discard(key)
        self._handed_out.close_refused(key, state)
        if state.workflow_task is not None:
            ref = WorkflowTaskRef(key, state.run_id, state.workflow_task.attempt)
            await self._dispatcher.offer_workflow_task(
                state.task_queue, ref, state.last_worker_key, priority=state.priority
            )

    def _completed(
        self, key: ExecutionKey, reply: CompletionReply, outcome: Outcome
    ) -> RespondWorkflowTaskCompletedResponse:
        continuation = b""
        if reply.outcome in _GOES_ON and reply.seq:
            continuation = self._signer.seal(ContinuationToken(key.namespace, key.workflow_id, reply.run_id, reply.seq))
        return RespondWorkflowTaskCompletedResponse(
            outcome=reply.outcome,
            continuation_token=continuation,
            started_event_id=reply.started_event_id,
            next_event_id=reply.next_event_id,
            history_size_bytes=reply.history_size,
            suggest_continue_as_new_reasons=reply.suggested,
            fusible=reply.fusible,
            commit_time=outcome.commit.time if outcome.commit is not None else None,
            leases=tuple(
                [
                    ActivityLease(
                        activity_id=lease.activity_id,
                        scheduled_event_id=lease.scheduled_event_id,
                        task_token=self._lease_token(key, reply.run_id, lease.scheduled_event_id, lease.activity_id),
                    )
                    for lease in reply.leases
                ]
            ),
            activity_replies=reply.outcome_replies,
            message=reply.message,
        )

    def _lease_token(self, key: ExecutionKey, run_id: str, scheduled_event_id: int, activity_id: str) -> bytes:
        return self._signer.seal(
            ActivityToken(key.namespace, key.workflow_id, run_id, scheduled_event_id, 1, True, activity_id)
        )


def _worker(info: WorkerInfo) -> Worker:
    return Worker(identity=info.identity, build_id=info.build_id, worker_key=info.worker_key, holder=info.process)


def _outstanding(entry: Entry | FiringAhead | None, ref: WorkflowTaskRef) -> ExecutionState | None:
    if entry is None:
        return None
    state = entry.state
    if state.run_id != ref.run_id or state.status is not WorkflowExecutionStatus.RUNNING:
        return None
    return state if state.workflow_task is not None else None
