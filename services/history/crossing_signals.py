"""Delivers signals from workflow to workflow: many in one commit of the target, each once, in their order (MS-11)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
from stepwell.api import limits
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import SignalExternalWorkflowExecutionFailedCause as Cause
from stepwell.api.errors import ApiError, InvalidArgument, NotFound
from stepwell.api.events import SignalExternalWorkflowExecutionInitiated
from stepwell.api.payloads import size_of

from . import request_ids
from .answers import Delivery
from .commit import ExecutionKey
from .crossing_entries import AskedId, Delivered, Entry, Pair
from .crossing_namespaces import OtherNamespaces
from .executions import Executions, unavailable
from .ports import ExecutionLog, StoreUnavailable
from .request_log import taken_in_since
from .requests import Request, Signal, Signals
from .scheduled_events import ScheduledEvents
from .state import ExecutionState, OwedSignal, ParentLink, PendingExternalSignal
from .transition import SignalsReply

_replace = msgspec.structs.replace

MOST_TOGETHER = 50
"""Signals in one commit of a target: half of the buffer's limit (MS-04)."""

_MOST_BYTES = limits.MAX_BUFFERED_BYTES

SKEW = timedelta(minutes=10)
"""How far a clock may have been set back between the asking and the delivery."""


class _Message(NamedTuple):
    asked: AskedId
    signal: Signal
    time: datetime
    event: SignalExternalWorkflowExecutionInitiated

    def delivery(self, cause: Cause | None) -> Delivery:
        return Delivery(
            run_id=self.asked[0],
            initiated_event_id=self.asked[1],
            workflow_task_completed_event_id=self.event.workflow_task_completed_event_id,
            namespace=self.event.namespace,
            execution=self.event.workflow_execution,
            cause=cause,
        )


class SignalDelivery:
    def __init__(
        self, log: ExecutionLog, executions: Executions, events: ScheduledEvents, others: OtherNamespaces
    ) -> None:
        self._others = others
        self._log = log
        self._executions = executions
        self._events = events

    async def deliver(
        self, pair: Pair, source: ExecutionState, entries: Sequence[Entry], fresh: set[AskedId]
    ) -> Delivered:
        """The signals that come first."""
        messages = await self._messages(pair.source, entries)
        answers, later = await self._send(pair, source, messages, fresh)
        tried = frozenset(message.asked for message in messages)
        return Delivered(tried=tried, answers=tuple(answers), later=later)

    async def _messages(self, source: ExecutionKey, entries: Sequence[Entry]) -> list[_Message]:
        messages: list[_Message] = []
        size = 0
        for entry in entries[:MOST_TOGETHER]:
            if not isinstance(entry.record, PendingExternalSignal | OwedSignal):
                break
            run_id, event_id = entry.asked
            event = await self._events.initiated(source, run_id, entry.seq, event_id)
            asked = event.attributes
            if not isinstance(asked, SignalExternalWorkflowExecutionInitiated):
                raise TypeError(f"event {event_id} of run {run_id} is {event.event_type}, which is no signal to others")
            size += size_of(asked.input)
            if messages and size > _MOST_BYTES:
                break
            meant = asked.workflow_execution.run_id
            signal = Signal(
                run_id="" if asked.child_workflow_only else meant,
                first_run_id=meant if asked.child_workflow_only else "",
                signal_name=asked.signal_name,
                input=asked.input,
                headers=asked.headers,
                request_id=entry.request_id,
                sender=WorkflowExecution(workflow_id=source.workflow_id, run_id=run_id),
            )
            messages.append(_Message(entry.asked, signal, event.event_time, asked))
        return messages

    async def _send(
        self, pair: Pair, source: ExecutionState, messages: Sequence[_Message], fresh: set[AskedId]
    ) -> tuple[list[Delivery], ApiError | None]:
        """What became of each, and why the rest must be tried again."""
        refused = await self._others.refusal(pair)
        not_there = Cause(refused) if refused else Cause.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND
        if refused and all(message.asked in fresh for message in messages):
            return [message.delivery(not_there) for message in messages], None
        if pair.target == pair.source:
            return [message.delivery(Cause.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND) for message in messages], None
        sent: list[_Message] = []
        strange: set[AskedId] = set()

        async def prepare(state: ExecutionState | None) -> Request:
            known = await self._known(pair.target, state, [entry for entry in messages if entry.asked not in fresh])
            strange.clear()
            strange.update(
                entry.asked
                for entry in messages
                if refused or (entry.event.child_workflow_only and not is_child(state, source, entry.asked[0]))
            )
            strange.difference_update(known)
            sent[:] = [entry for entry in messages if entry.asked not in strange]
            return Signals(signals=tuple([_replace(entry.signal, repeat=entry.asked in known) for entry in sent]))

        try:
            outcome = await self._executions.transact(pair.target, None, prepare)
        except NotFound:
            return [message.delivery(not_there) for message in messages], None
        reply = outcome.transition.reply
        if not isinstance(reply, SignalsReply):
            raise TypeError(f"signals were answered with {type(reply).__name__}")
        refusals = dict(zip([message.asked for message in sent], reply.refusals, strict=True))
        deliveries: list[Delivery] = []
        for message in messages:
            refusal = refusals.get(message.asked)
            if refusal is not None and refusal.retryable:
                return deliveries, refusal
            cause = not_there if message.asked in strange else _cause(refusal)
            deliveries.append(message.delivery(cause))
        return deliveries, None

    async def _known(
        self, target: ExecutionKey, state: ExecutionState | None, repeats: Sequence[_Message]
    ) -> set[AskedId]:
        """Which of what may have been delivered before is at the target."""
        if state is None or not repeats:
            return set()
        by_id = {message.signal.request_id: message.asked for message in repeats}
        since = min(message.time for message in repeats) - SKEW
        try:
            found = await taken_in_since(self._log, target, state, request_ids.SIGNAL, by_id, since)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        return {by_id[request_id] for request_id in found}


def is_child(state: ExecutionState | None, source: ExecutionState, run_id: str) -> bool:
    """Whether ``state`` is a child of the source's run ``run_id``, or of the run that this was reset from."""
    parent = state.parent if state is not None else None
    if parent is None or (parent.namespace, parent.workflow_id) != (source.namespace, source.workflow_id):
        return False
    lineage = source.original_run_id or run_id if source.run_id == run_id else run_id
    return parent.run_id == run_id or (parent.original_run_id or parent.run_id) == lineage


def _cause(refusal: ApiError | None) -> Cause | None:
    match refusal:
        case None:
            return None
        case InvalidArgument():
            return Cause.SIGNAL_COUNT_LIMIT_EXCEEDED
        case NotFound():
            return Cause.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND
        case _:
            raise refusal


def is_left_behind(state: ExecutionState, source: ExecutionState, link: ParentLink) -> bool:
    """Whether this open run is a child of a run that a reset of the same parent has left behind: the parent asks for
    one of the same id again, and goes on with the one that is there (WC-30)."""
    parent = state.parent
    if state.close_time is not None or parent is None or not link.original_run_id:
        return False
    if (parent.namespace, parent.workflow_id) != (link.namespace, link.workflow_id) or parent.run_id == link.run_id:
        return False
    is_its_own = any(child.run_id == state.first_run_id for child in source.children.values())
    return (parent.original_run_id or parent.run_id) == link.original_run_id and not is_its_own
