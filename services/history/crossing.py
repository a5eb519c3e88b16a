"""Delivers what runs ask of other executions, and records the answers at the asker (design sections 3, 7 and 9).

Theory of operation. What is to be delivered is read from the asker's newest state (pending, or owed behind a close),
never from the task: a task only says that there is something for a target. So one target gets what one asker sends in
the order of asking, after a loss too, and a repeat finds nothing to do. The work runs in the background, one at a time
for each (source, target), and never under a lock of the source: a target may answer its source, or be it.

The target is told first, under a request id derived from (run, initiated event), then the answer is recorded at the
source. What a crash leaves in between is delivered again by recovery or the source's deadline; whoever delivers for
what may be the second time searches the target's log where its ring of request ids has forgotten.

How each kind is delivered: ``crossing_signals``, ``crossing_children``.
"""

import asyncio
import logging
from collections.abc import Sequence

from stepwell.api.errors import Unavailable

from ..common.background import Background
from ..common.control import is_wake_up
from .commit import Commit, ExecutionKey
from .crossing_answers import CrossingAnswers
from .crossing_children import ChildDelivery
from .crossing_ends import ChainEnds
from .crossing_entries import AskedId, Delivered, Entry, Pair, by_target, target_of
from .crossing_namespaces import OtherNamespaces
from .crossing_signals import MOST_TOGETHER, SignalDelivery
from .executions import Executions
from .outside_waiters import OutsideWaiters
from .ports import ExecutionLog
from .scheduled_events import ScheduledEvents
from .state import (
    ExecutionState,
    OwedCancel,
    OwedChild,
    OwedNotice,
    OwedSignal,
    PendingChild,
    PendingExternalCancel,
    PendingExternalSignal,
)
from .tasks import CrossRunTask, StartChild

log = logging.getLogger(__name__)

_PAUSES = (0.2, 1.0, 5.0)
"""Seconds until a target that cannot take it now is tried again; then the source's deadline does it."""


class _Work:
    """What is known of one (source, target) that is being worked on."""

    __slots__ = ("again", "fresh", "looks")

    def __init__(self) -> None:
        self.again = True
        self.fresh: set[AskedId] = set()
        """Asked by a commit of this process and never tried: cannot be at the target yet."""
        self.looks: set[AskedId] = set()
        """Children that have started and were not heard of for long."""


class Crossing:
    def __init__(
        self,
        log: ExecutionLog,
        executions: Executions,
        events: ScheduledEvents,
        background: Background,
        concurrency: int,
        outside: OutsideWaiters,
        others: OtherNamespaces,
    ) -> None:
        self._executions = executions
        self._outside = outside
        self._background = background
        self._room = asyncio.Semaphore(concurrency)
        self._pairs: dict[Pair, _Work] = {}
        self._answers = CrossingAnswers(executions, background)
        self._signals = SignalDelivery(log, executions, events, others)
        self._ends = ChainEnds(log, executions, events)
        self._children = ChildDelivery(log, executions, events, self._ends, others)
        self._sorted_of: ExecutionState | None = None
        self._sorted: dict[ExecutionKey, list[Entry]] = {}

    def committed(self, commit: Commit, tasks: Sequence[CrossRunTask]) -> None:
        """Right behind the commit that owes the tasks."""
        for task in tasks:
            events = commit.events_of(task.run_id)
            work = self._work_on(Pair(commit.key, target_of(commit.key.namespace, task)))
            asked = (task.run_id, task.initiated_event_id)
            if events and task.initiated_event_id >= events[0].event_id:
                work.fresh.add(asked)
            elif isinstance(task, StartChild) and _has_started(commit.state_of(task.run_id), task.initiated_event_id):
                work.looks.add(asked)

    def resume(self, source: ExecutionKey, state: ExecutionState) -> None:
        """Whatever the state still has for others: after a restart."""
        for target in by_target(state):
            self._work_on(Pair(source, target))

    def _work_on(self, pair: Pair) -> _Work:
        work = self._pairs.get(pair)
        if work is None:
            work = self._pairs[pair] = _Work()
            self._background.spawn(self._run(pair, work))
        work.again = True
        return work

    async def _run(self, pair: Pair, work: _Work) -> None:
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

    async def _deliver(self, pair: Pair, work: _Work) -> None:
        """As much as fits one commit of the target. Raises Unavailable for what is to be tried again."""
        async with self._room:
            state = await self._executions.read(pair.source)
            if state is None:
                return
            entries = self._for_target(state, pair.target)
            if not entries:
                looks, work.looks = work.looks, set()
                delivered = await self._ends.look(pair, state, looks)
            else:
                fresh = work.fresh.copy()
                # Before it is tried: what is not known to have failed may be there.
                work.fresh.difference_update([entry.asked for entry in entries[:MOST_TOGETHER]])
                delivered = await self._first(pair, state, entries, fresh)
                work.again = len(delivered.tried) < len(entries) or bool(work.looks) or work.again
        # Not in there: a source whose buffer is full for a while would keep others from being served.
        if delivered.for_target and is_wake_up(pair.target.workflow_id):
            await self._outside.tell(pair.target, delivered.for_target)
        elif delivered.for_target:
            await self._answers.record(pair.target, delivered.for_target)
        if delivered.answers:
            await self._answers.record(pair.source, delivered.answers)
        if delivered.later is not None:
            raise Unavailable(delivered.later.message)

    async def _first(
        self, pair: Pair, state: ExecutionState, entries: Sequence[Entry], fresh: set[AskedId]
    ) -> Delivered:
        """What comes first for the target, with what goes along in one commit."""
        first = entries[0]
        match first.record:
            case PendingExternalSignal() | OwedSignal():
                return await self._signals.deliver(pair, state, entries, fresh)
            case PendingExternalCancel() | OwedCancel():
                return await self._children.cancel(pair, state, first, fresh)
            case PendingChild():
                return await self._children.start(pair, state, first, fresh)
            case OwedChild():
                return await self._children.close(pair, state, first)
            case OwedNotice():
                return await self._children.notify(pair, first)

    def _for_target(self, state: ExecutionState, target: ExecutionKey) -> Sequence[Entry]:
        """A state with thousands of targets is looked through once, not once for each."""
        if self._sorted_of is not state:
            self._sorted_of, self._sorted = state, by_target(state)
        return self._sorted.get(target, ())


def _has_started(state: ExecutionState | None, initiated_event_id: int) -> bool:
    pending = state.children.get(initiated_event_id) if state is not None else None
    return pending is not None and pending.started_event_id != 0
