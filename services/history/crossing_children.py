"""Delivers between parents and children: starts, what a parent's close does, how a child ended; and requests to cancel.

A child's first run id is derived from what its parent asked, and so is the request id of its start. So a start that is
made again finds its own run, and whoever means the child says the first run of its chain: nobody hits a stranger that
has the child's workflow id now (WC-10).
"""

import logging
import uuid
from datetime import datetime
from hashlib import blake2b

import msgspec
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import (
    CancelExternalWorkflowExecutionFailedCause,
    ParentClosePolicy,
    StartChildWorkflowExecutionFailedCause,
    WorkflowIDConflictPolicy,
)
from stepwell.api.errors import (
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    WorkflowExecutionAlreadyStarted,
    WorkflowExecutionClosed,
)
from stepwell.api.events import (
    HistoryEvent,
    RequestCancelExternalWorkflowExecutionInitiated,
    StartChildWorkflowExecutionInitiated,
)
from stepwell.api.requests import StartWorkflowRequest

from . import request_ids
from .answers import Answer, ChildAnswer, ChildClosed, Delivery, Discharged
from .commit import ExecutionKey
from .crossing_ends import ChainEnds, link_of
from .crossing_entries import AskedId, Delivered, Entry, Pair
from .crossing_namespaces import NotLetIn, OtherNamespaces
from .crossing_signals import SKEW, is_child, is_left_behind
from .executions import Executions, unavailable
from .ports import ExecutionLog, StoreUnavailable
from .request_log import taken_in_since
from .requests import EarlierStart, Request, RequestCancel, Start, Terminate, Unwatch, Watch
from .scheduled_events import ScheduledEvents
from .state import ExecutionState, OwedChild, OwedNotice
from .transition import StartReply

log = logging.getLogger(__name__)

BY_POLICY = "by parent close policy"
"""Reason of what a parent's close does to its children; the field's words."""

_replace = msgspec.structs.replace

_REFUSED = StartChildWorkflowExecutionFailedCause
_NOT_CANCELLED = CancelExternalWorkflowExecutionFailedCause


class ChildDelivery:
    def __init__(
        self,
        log: ExecutionLog,
        executions: Executions,
        events: ScheduledEvents,
        ends: ChainEnds,
        others: OtherNamespaces,
    ) -> None:
        self._others = others
        self._log = log
        self._executions = executions
        self._events = events
        self._ends = ends

    # --- starts ---

    async def start(self, pair: Pair, source: ExecutionState, entry: Entry, fresh: set[AskedId]) -> Delivered:
        """Of an open parent. It may have closed when the answer comes; then its policy follows."""
        _, asked = await self._asked(pair.source, entry)
        if asked.watch_only:
            return await self._watch(pair, entry, source.original_run_id)
        answer = await self._start(
            pair, source, entry, source.original_run_id, source.root, known=entry.asked not in fresh
        )
        return Delivered(tried=frozenset([entry.asked]), answers=(answer,))

    async def _start(
        self,
        pair: Pair,
        source: ExecutionState,
        entry: Entry,
        original_run_id: str,
        root: WorkflowExecution | None,
        *,
        known: bool,
    ) -> Answer:
        event, asked = await self._asked(pair.source, entry)
        run_id, event_id = entry.asked
        child_run_id = first_run_of(original_run_id or run_id, event_id, event.event_time)
        link = link_of(pair.source, entry, original_run_id)
        start = Start(
            run_id=child_run_id,
            start=_start_request(pair.target, event, asked, child_run_id),
            parent=link,
            root=root or WorkflowExecution(workflow_id=pair.source.workflow_id, run_id=run_id),
        )

        async def prepare(state: ExecutionState | None) -> Request:
            if known and state is not None and await self._is_there(pair.target, state, child_run_id):
                return _replace(start, earlier=EarlierStart(run_id=child_run_id, first_run_id=child_run_id))
            started = state is not None and request_ids.started(state, child_run_id) is not None
            if pair.target.namespace != pair.source.namespace and not started:
                await self._others.let_start(pair, start.start)
            if state is not None and is_left_behind(state, source, link):
                existing = _replace(start.start, workflow_id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING)
                return _replace(start, start=existing)
            return start

        try:
            if pair.target == pair.source:
                raise WorkflowExecutionAlreadyStarted(f"workflow {pair.target.workflow_id!r} is no child of itself")
            outcome = await self._executions.transact(pair.target, None, prepare)
        except (NotLetIn, ResourceExhausted, WorkflowExecutionAlreadyStarted, InvalidArgument) as refusal:
            return _refused(entry, asked, _not_started(pair, refusal))
        reply = outcome.transition.reply
        if not isinstance(reply, StartReply):
            raise TypeError(f"a start was answered with {type(reply).__name__}")
        first_run_id = reply.run_id if reply.started else reply.first_run_id
        return ChildAnswer(run_id=run_id, initiated_event_id=event_id, asked=asked, child_run_id=first_run_id)

    async def _is_there(self, target: ExecutionKey, state: ExecutionState, child_run_id: str) -> bool:
        """Whether the child was started before, although the ring of the target's state does not tell any more."""
        if request_ids.started(state, child_run_id) is not None:
            return False  # the ring tells
        try:
            return await self._log.find_run(target, child_run_id) is not None
        except StoreUnavailable as error:
            raise unavailable(error) from error

    async def _watch(self, pair: Pair, entry: Entry, original_run_id: str) -> Delivered:
        """Of a workflow that is closed the end comes at once."""
        tried = frozenset([entry.asked])
        _, asked = await self._asked(pair.source, entry)
        run_id, event_id = entry.asked
        not_let_in = await self._others.refusal(pair)
        if not_let_in:
            await self._unwatch(pair, entry, original_run_id)  # it may have been let in before
            return Delivered(tried=tried, answers=(_refused(entry, asked, _REFUSED(not_let_in)),))
        waiter = link_of(pair.source, entry, original_run_id)
        try:
            if pair.target == pair.source:
                raise NotFound(f"workflow {pair.target.workflow_id!r} cannot wait for itself")
            outcome = await self._executions.transact(pair.target, Watch(waiter=waiter))
        except NotFound:
            return Delivered(tried=tried, answers=(_refused(entry, asked, _REFUSED.WORKFLOW_NOT_FOUND),))
        except ResourceExhausted:
            return Delivered(tried=tried, answers=(_refused(entry, asked, _REFUSED.WAITERS_LIMIT_EXCEEDED),))
        state = outcome.transition.state
        there = ChildAnswer(
            run_id=run_id,
            initiated_event_id=event_id,
            asked=asked,
            child_run_id=state.first_run_id,
            workflow_type=state.workflow_type,
        )
        if state.close_time is None:
            return Delivered(tried=tried, answers=(there,))
        return Delivered(tried=tried, answers=(there, await self._ends.closed(pair.target, state, waiter)))

    # --- the parent's close ---

    async def close(self, pair: Pair, source: ExecutionState, entry: Entry) -> Delivered:
        """What the close of a run does to a child of it."""
        owed = entry.record
        assert isinstance(owed, OwedChild)
        tried = frozenset([entry.asked])
        if owed.watched:
            await self._unwatch(pair, entry, owed.original_run_id)
            done = Discharged(run_id=owed.run_id, initiated_event_id=owed.initiated_event_id)
            return Delivered(tried=tried, answers=(done,))
        if owed.policy is ParentClosePolicy.ABANDON:
            answer = await self._start(pair, source, entry, owed.original_run_id, owed.root, known=True)
            return Delivered(tried=tried, answers=(answer,))
        event, _ = await self._asked(pair.source, entry)
        run_id, event_id = entry.asked
        first_run_id = first_run_of(owed.original_run_id or run_id, event_id, event.event_time)
        ask: Request
        if owed.policy is ParentClosePolicy.TERMINATE:
            ask = Terminate(run_id="", reason=BY_POLICY, first_run_id=first_run_id)
        else:
            ask = RequestCancel(
                run_id="",
                reason=BY_POLICY,
                request_id=entry.request_id,
                first_run_id=first_run_id,
                sender=WorkflowExecution(workflow_id=pair.source.workflow_id, run_id=run_id),
                sender_event_id=event_id,
            )
        try:
            await self._executions.transact(pair.target, ask)
        except NotFound:
            pass  # it has ended, or was never started
        return Delivered(tried=tried, answers=(Discharged(run_id=run_id, initiated_event_id=event_id),))

    async def _unwatch(self, pair: Pair, entry: Entry, original_run_id: str) -> None:
        try:
            await self._executions.transact(pair.target, Unwatch(waiter=link_of(pair.source, entry, original_run_id)))
        except NotFound:
            pass  # it is gone

    # --- the child's end ---

    async def notify(self, pair: Pair, entry: Entry) -> Delivered:
        """Tells who waits for the chain how it ended."""
        owed = entry.record
        assert isinstance(owed, OwedNotice)
        event = await self._events.initiated(pair.source, owed.run_id, owed.initiated_seq, owed.initiated_event_id)
        closed = ChildClosed(
            waiter=owed.waiter,
            workflow_id=pair.source.workflow_id,
            first_run_id=owed.first_run_id,
            workflow_type=owed.workflow_type,
            close=event.attributes,
        )
        done = Discharged(run_id=owed.run_id, initiated_event_id=owed.initiated_event_id, waiter=owed.waiter)
        return Delivered(tried=frozenset([entry.asked]), for_target=(closed,), answers=(done,))

    # --- requests to cancel ---

    async def cancel(self, pair: Pair, source: ExecutionState, entry: Entry, fresh: set[AskedId]) -> Delivered:
        """A target that is closed, or was asked before, needs no asking (CH-11)."""
        run_id, event_id = entry.asked
        event = await self._events.initiated(pair.source, run_id, entry.seq, event_id)
        asked = event.attributes
        if not isinstance(asked, RequestCancelExternalWorkflowExecutionInitiated):
            raise TypeError(f"event {event_id} of run {run_id} is {event.event_type}, which is no request to cancel")
        cause = await self._cancel(pair, source, entry, event, asked, known=entry.asked not in fresh)
        delivery = Delivery(
            run_id=run_id,
            initiated_event_id=event_id,
            workflow_task_completed_event_id=asked.workflow_task_completed_event_id,
            namespace=asked.namespace,
            execution=asked.workflow_execution,
            cause=cause,
        )
        return Delivered(tried=frozenset([entry.asked]), answers=(delivery,))

    async def _cancel(
        self,
        pair: Pair,
        source: ExecutionState,
        entry: Entry,
        event: HistoryEvent,
        asked: RequestCancelExternalWorkflowExecutionInitiated,
        *,
        known: bool,
    ) -> CancelExternalWorkflowExecutionFailedCause | None:
        # Its own child a parent may end anyhow: by its own end.
        not_let_in = "" if asked.child_workflow_only else await self._others.refusal(pair)
        if pair.target == pair.source:
            return _NOT_CANCELLED.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND
        run_id, event_id = entry.asked
        own_id = entry.request_id
        only_child = asked.child_workflow_only
        meant = asked.workflow_execution.run_id

        async def prepare(state: ExecutionState | None) -> Request:
            if only_child and not is_child(state, source, run_id):
                raise NotFound(f"workflow {pair.target.workflow_id!r} is no child of run {run_id}")
            repeat = known and state is not None and await self._was_asked(pair.target, state, event, own_id)
            if not_let_in and not repeat:
                raise NotLetIn(not_let_in)
            return RequestCancel(
                run_id="" if only_child else meant,
                first_run_id=meant if only_child else "",
                reason=asked.reason,
                request_id=own_id,
                sender=WorkflowExecution(workflow_id=pair.source.workflow_id, run_id=run_id),
                sender_event_id=event_id,
                repeat=repeat,
            )

        try:
            await self._executions.transact(pair.target, None, prepare)
        except NotLetIn:
            return _NOT_CANCELLED(not_let_in)
        except NotFound as refusal:
            if not await self._is_closed(pair.target, meant, refusal):
                return _NOT_CANCELLED.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND
        return None

    async def _was_asked(self, target: ExecutionKey, state: ExecutionState, event: HistoryEvent, own_id: str) -> bool:
        since = event.event_time - SKEW
        try:
            return bool(await taken_in_since(self._log, target, state, request_ids.CANCEL, [own_id], since))
        except StoreUnavailable as error:
            raise unavailable(error) from error

    async def _is_closed(self, target: ExecutionKey, run_id: str, refusal: NotFound) -> bool:
        """An earlier run of the id that is known is closed, which is as good as cancelled."""
        if isinstance(refusal, WorkflowExecutionClosed):
            return True
        if not run_id:
            return False
        try:
            return await self._log.find_run(target, run_id) is not None
        except StoreUnavailable as error:
            raise unavailable(error) from error

    # --- inside ---

    async def _asked(
        self, source: ExecutionKey, entry: Entry
    ) -> tuple[HistoryEvent, StartChildWorkflowExecutionInitiated]:
        run_id, event_id = entry.asked
        event = await self._events.initiated(source, run_id, entry.seq, event_id)
        asked = event.attributes
        if not isinstance(asked, StartChildWorkflowExecutionInitiated):
            raise TypeError(f"event {event_id} of run {run_id} is {event.event_type}, which is no start of a child")
        return event, asked


def first_run_of(parent_run_id: str, initiated_event_id: int, initiated: datetime) -> str:
    """First run id of the child that was asked for by this event. ``parent_run_id`` is the one that the parent's resets
    keep; the event's time tells it from one that a run asks for anew behind the point it was reset to."""
    asked = f"{parent_run_id}:{initiated_event_id}:{initiated.isoformat()}".encode()
    return str(uuid.UUID(bytes=blake2b(asked, digest_size=16).digest(), version=4))


def _start_request(
    target: ExecutionKey, event: HistoryEvent, asked: StartChildWorkflowExecutionInitiated, request_id: str
) -> StartWorkflowRequest:
    return StartWorkflowRequest(
        namespace=target.namespace,
        workflow_id=asked.workflow_id,
        workflow_type=asked.workflow_type,
        task_queue=asked.task_queue,
        input=asked.input,
        workflow_execution_timeout=asked.workflow_execution_timeout,
        workflow_run_timeout=asked.workflow_run_timeout,
        workflow_task_timeout=asked.workflow_task_timeout,
        request_id=request_id,
        workflow_id_reuse_policy=asked.workflow_id_reuse_policy,
        workflow_id_conflict_policy=asked.workflow_id_conflict_policy,
        retry_policy=asked.retry_policy,
        cron_schedule=asked.cron_schedule,
        memo=asked.memo,
        search_attributes=asked.search_attributes,
        headers=asked.headers,
        user_metadata=event.user_metadata,
        priority=asked.priority,
    )


def _not_started(
    pair: Pair, refusal: NotLetIn | ResourceExhausted | WorkflowExecutionAlreadyStarted | InvalidArgument
) -> StartChildWorkflowExecutionFailedCause:
    match refusal:
        case NotLetIn():
            return _REFUSED(refusal.cause)
        case ResourceExhausted():
            return _REFUSED.WAITERS_LIMIT_EXCEEDED
        case WorkflowExecutionAlreadyStarted():
            return _REFUSED.WORKFLOW_ALREADY_EXISTS
        case InvalidArgument():
            # Asked for under other limits than those of today, or of its namespace: to ask again does not help.
            log.warning("Child %r of %r cannot be started: %s", pair.target, pair.source, refusal)
            return _REFUSED.INVALID_ARGUMENT


def _refused(
    entry: Entry, asked: StartChildWorkflowExecutionInitiated, cause: StartChildWorkflowExecutionFailedCause
) -> ChildAnswer:
    run_id, event_id = entry.asked
    return ChildAnswer(run_id=run_id, initiated_event_id=event_id, asked=asked, cause=cause)
