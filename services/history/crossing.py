"""Delivers what runs ask of other executions, and records the answers at the asker (design sections 3, 7 and 9).

Theory of operation. What is to be delivered is read from the asker's newest state (pending, or owed behind a close),
never from the task: a task only says that there is something for a target. So one target gets what one asker sends in
the order of asking, after a loss too, and a repeat finds nothing to do. The work runs in the background, one at a time
for each (source, target), and never under a lock of the source: a target may answer its source, or be it.

The target is told first, under a request id derived from (run, initiated event), then the answer is recorded at the
source. What a crash leaves in between is delivered again by recovery or the source's deadline; whoever delivers for
what may be the second time searches the target's log where its ring of request ids has forgotten.
"""

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
from stepwell.api import limits
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import SignalExternalWorkflowExecutionFailedCause as Cause
from stepwell.api.errors import ApiError, InvalidArgument, NotFound, Unavailable
from stepwell.api.events import SignalExternalWorkflowExecutionInitiated
from stepwell.api.payloads import size_of

from ..common.background import Background
from . import deadlines, request_ids
from .commit import Commit, ExecutionKey
from .crossing_answers import CrossingAnswers
from .executions import Executions, unavailable
from .ports import ExecutionLog, StoreUnavailable
from .request_log import taken_in_since
from .requests import Delivery, Request, Signal, Signals
from .scheduled_events import ScheduledEvents
from .state import ExecutionState, Owed, PendingExternalSignal
from .tasks import SignalExternal
from .transition import SignalsReply

log = logging.getLogger(__name__)

_replace = msgspec.structs.replace

MOST_TOGETHER = 50
"""Signals in one commit of a target: half of the buffer's limit (MS-04)."""

_MOST_BYTES = limits.MAX_BUFFERED_BYTES
_PAUSES = (0.2, 1.0, 5.0)
"""Seconds until a target that cannot take it now is tried again; then the source's deadline does it."""

_SKEW = timedelta(minutes=10)
"""How far a clock may have been set back between the asking and the delivery."""

Asked = tuple[str, int]
"""Run and initiated event id of something asked."""


class _Pair(NamedTuple):
    source: ExecutionKey
    target: ExecutionKey


class _Work:
    """What is known of one (source, target) that is being worked on."""

    __slots__ = ("again", "fresh")

    def __init__(self) -> None:
        self.again = True
        self.fresh: set[Asked] = set()
        """Asked by a commit of this process and never tried: cannot be at the target yet."""


class _Entry(NamedTuple):
    asked: Asked
    initiated_seq: int


class _Message(NamedTuple):
    asked: Asked
    signal: Signal
    time: datetime
    workflow_task_completed_event_id: int
    namespace: str
    execution: WorkflowExecution
    child_workflow_only: bool

    def delivery(self, cause: Cause | None) -> Delivery:
        return Delivery(
            run_id=self.asked[0],
            initiated_event_id=self.asked[1],
            workflow_task_completed_event_id=self.workflow_task_completed_event_id,
            namespace=self.namespace,
            execution=self.execution,
            cause=cause,
        )


class Crossing:
    def __init__(
        self,
        log: ExecutionLog,
        executions: Executions,
        events: ScheduledEvents,
        background: Background,
        concurrency: int,
    ) -> None:
        self._executions = executions
        self._events = events
        self._background = background
        self._log = log
        self._room = asyncio.Semaphore(concurrency)
        self._pairs: dict[_Pair, _Work] = {}
        self._answers = CrossingAnswers(executions, background)
        self._sorted_of: ExecutionState | None = None
        self._sorted: dict[ExecutionKey, list[_Entry]] = {}

    def committed(self, commit: Commit, tasks: Sequence[SignalExternal]) -> None:
        """Right behind the commit that owes the tasks."""
        for task in tasks:
            events = commit.events_of(task.run_id)
            work = self._work_on(_Pair(commit.key, _target(commit.key.namespace, task)))
            if events and task.initiated_event_id >= events[0].event_id:
                work.fresh.add((task.run_id, task.initiated_event_id))

    def resume(self, source: ExecutionKey, state: ExecutionState) -> None:
        """Whatever the state still has for others: after a restart."""
        for target in _by_target(state):
            self._work_on(_Pair(source, target))

    def _work_on(self, pair: _Pair) -> _Work:
        work = self._pairs.get(pair)
        if work is None:
            work = self._pairs[pair] = _Work()
            self._background.spawn(self._run(pair, work))
        work.again = True
        return work

    async def _run(self, pair: _Pair, work: _Work) -> None:
        pauses = iter(_PAUSES)
        try:
            while work.again:
                work.again = False
                try:
                    await self._deliver(pair, work)
                    pauses = iter(_PAUSES)
                except Unavailable as error:
                    pause = next(pauses, None)
                    if pause is None:
                        log.info("Workflow %r gets what %r asks of it later: %s", pair.target, pair.source, error)
                        return
                    work.again = True
                    await asyncio.sleep(pause)
        finally:
            del self._pairs[pair]

    async def _deliver(self, pair: _Pair, work: _Work) -> None:
        """As much as fits one commit of the target. Raises Unavailable for what is to be tried again."""
        async with self._room:
            state = await self._executions.read(pair.source)
            entries = self._for_target(state, pair.target)
            if not entries:
                return
            messages = await self._messages(pair.source, entries)
            work.again = len(messages) < len(entries) or work.again
            fresh = work.fresh.copy()
            work.fresh.difference_update([message.asked for message in messages])
            deliveries, later = await self._send(pair, messages, fresh)
        # Not in there: a source whose buffer is full for a while would keep others from being served.
        if deliveries:
            await self._answers.record(pair.source, deliveries)
        if later is not None:
            raise Unavailable(later.message)

    def _for_target(self, state: ExecutionState | None, target: ExecutionKey) -> Sequence[_Entry]:
        """A state with thousands of targets is looked through once, not once for each."""
        if state is None:
            return ()
        if self._sorted_of is not state:
            self._sorted_of, self._sorted = state, _by_target(state)
        return self._sorted.get(target, ())

    async def _messages(self, source: ExecutionKey, entries: Sequence[_Entry]) -> list[_Message]:
        messages: list[_Message] = []
        size = 0
        for entry in entries[:MOST_TOGETHER]:
            run_id, event_id = entry.asked
            event = await self._events.initiated(source, run_id, entry.initiated_seq, event_id)
            asked = event.attributes
            if not isinstance(asked, SignalExternalWorkflowExecutionInitiated):
                raise TypeError(f"event {event_id} of run {run_id} is {event.event_type}, which asks nothing of others")
            size += size_of(asked.input)
            if messages and size > _MOST_BYTES:
                break
            signal = Signal(
                run_id=asked.workflow_execution.run_id,
                signal_name=asked.signal_name,
                input=asked.input,
                headers=asked.headers,
                request_id=request_id(run_id, event_id),
                sender=WorkflowExecution(workflow_id=source.workflow_id, run_id=run_id),
            )
            messages.append(
                _Message(
                    entry.asked,
                    signal,
                    event.event_time,
                    asked.workflow_task_completed_event_id,
                    asked.namespace,
                    asked.workflow_execution,
                    asked.child_workflow_only,
                )
            )
        return messages

    async def _send(
        self, pair: _Pair, messages: Sequence[_Message], fresh: set[Asked]
    ) -> tuple[list[Delivery], ApiError | None]:
        """What became of each, and why the rest must be tried again."""
        if pair.target.namespace != pair.source.namespace:
            return [message.delivery(Cause.NAMESPACE_NOT_FOUND) for message in messages], None
        if pair.target == pair.source:
            return [message.delivery(Cause.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND) for message in messages], None
        sent: list[_Message] = []
        strange: set[Asked] = set()

        async def prepare(state: ExecutionState | None) -> Request:
            known = await self._known(pair.target, state, [entry for entry in messages if entry.asked not in fresh])
            strange.clear()
            if not _is_child(state, pair.source):
                strange.update(entry.asked for entry in messages if entry.child_workflow_only)
                strange.difference_update(known)
            sent[:] = [entry for entry in messages if entry.asked not in strange]
            return Signals(signals=tuple([_replace(entry.signal, repeat=entry.asked in known) for entry in sent]))

        try:
            outcome = await self._executions.transact(pair.target, None, prepare)
        except NotFound:
            return [message.delivery(Cause.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND) for message in messages], None
        reply = outcome.transition.reply
        if not isinstance(reply, SignalsReply):
            raise TypeError(f"signals were answered with {type(reply).__name__}")
        refusals = dict(zip([message.asked for message in sent], reply.refusals, strict=True))
        deliveries: list[Delivery] = []
        for message in messages:
            refusal = refusals.get(message.asked)
            if refusal is not None and refusal.retryable:
                return deliveries, refusal
            cause = Cause.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND if message.asked in strange else _cause(refusal)
            deliveries.append(message.delivery(cause))
        return deliveries, None

    async def _known(
        self, target: ExecutionKey, state: ExecutionState | None, repeats: Sequence[_Message]
    ) -> set[Asked]:
        """Which of what may have been delivered before is at the target."""
        if state is None or not repeats:
            return set()
        by_id = {message.signal.request_id: message.asked for message in repeats}
        since = min(message.time for message in repeats) - _SKEW
        try:
            found = await taken_in_since(self._log, target, state, request_ids.SIGNAL, by_id, since)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        return {by_id[request_id] for request_id in found}


def request_id(run_id: str, initiated_event_id: int) -> str:
    """Of what a run asks of another execution: the same however often it is delivered."""
    return f"{run_id}:{initiated_event_id}"


def _target(own_namespace: str, asked: SignalExternal | Owed | PendingExternalSignal) -> ExecutionKey:
    return ExecutionKey(asked.namespace or own_namespace, asked.workflow_id)


def _by_target(state: ExecutionState) -> dict[ExecutionKey, list[_Entry]]:
    """All that the state has for others, each in the order of asking."""
    over = deadlines.ended_in_buffer(state)
    entries: dict[ExecutionKey, list[_Entry]] = {}
    for owed in state.owed:
        target = _target(state.namespace, owed)
        entries.setdefault(target, []).append(_Entry((owed.run_id, owed.initiated_event_id), owed.initiated_seq))
    for event_id, asked in state.external_signals.items():
        if event_id not in over:
            target = _target(state.namespace, asked)
            entries.setdefault(target, []).append(_Entry((state.run_id, event_id), asked.initiated_seq))
    return entries


def _is_child(state: ExecutionState | None, source: ExecutionKey) -> bool:
    parent = state.parent if state is not None else None
    return parent is not None and (parent.namespace, parent.workflow_id) == source


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
