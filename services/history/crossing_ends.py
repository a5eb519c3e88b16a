"""How a chain of runs ended, for those that wait for it: read where its history says so."""

import logging
from collections.abc import Iterable

from stepwell.api.errors import ResourceExhausted
from stepwell.api.events import WorkflowExecutionTerminated

from .answers import Answer, ChildClosed
from .commit import ExecutionKey
from .crossing_entries import AskedId, Delivered, Entry, Pair
from .executions import Executions, unavailable
from .ports import ExecutionLog, StoreUnavailable
from .requests import Watch
from .scheduled_events import ScheduledEvents
from .state import ExecutionState, ParentLink, PendingChild

log = logging.getLogger(__name__)

_GONE = "the child is gone, and nothing is left that says how it ended"


class ChainEnds:
    def __init__(self, log: ExecutionLog, executions: Executions, events: ScheduledEvents) -> None:
        self._log = log
        self._executions = executions
        self._events = events

    async def closed(self, target: ExecutionKey, state: ExecutionState, waiter: ParentLink) -> ChildClosed:
        """How a workflow that is closed ended."""
        event_id = state.next_event_id - 1
        event = await self._events.initiated(target, state.run_id, state.numbered_seq, event_id)
        return ChildClosed(
            waiter=waiter,
            workflow_id=target.workflow_id,
            first_run_id=state.first_run_id,
            workflow_type=state.workflow_type,
            close=event.attributes,
        )

    async def look(self, pair: Pair, source: ExecutionState, looks: Iterable[AskedId]) -> Delivered:
        """A child that was not heard of for long, or that ended while its parent was closed: it tells by itself how it
        ended, and if that was lost, or nobody was there to be told, this does."""
        ends: list[Answer] = []
        for run_id, initiated_event_id in looks:
            pending = source.children.get(initiated_event_id) if run_id == source.run_id else None
            if pending is None or not pending.started_event_id:
                continue
            end = await self._end_of(pair, source, pending)
            if end is not None:
                ends.append(end)
        return Delivered(answers=tuple(ends))

    async def _end_of(self, pair: Pair, source: ExecutionState, pending: PendingChild) -> ChildClosed | None:
        waiter = link_of(
            pair.source, Entry((source.run_id, pending.initiated_event_id), pending), source.original_run_id
        )
        state = await self._executions.read(pair.target)
        if state is None or state.first_run_id != pending.run_id:
            state = await self.last_of_chain(pair.target, pending.run_id)
        if state is not None and state.close_time is None and pending.attached:
            state = await self._waited_for(pair.target, state, waiter)
        if state is not None:
            return None if state.close_time is None else await self.closed(pair.target, state, waiter)
        return ChildClosed(
            waiter=waiter,
            workflow_id=pending.workflow_id,
            first_run_id=pending.run_id,
            workflow_type=pending.workflow_type,
            close=WorkflowExecutionTerminated(reason=_GONE),
        )

    async def _waited_for(self, key: ExecutionKey, state: ExecutionState, waiter: ParentLink) -> ExecutionState:
        """A run that only waits leaves its place among the waiters when it closes; if it is reset, it needs one again,
        unless the run before had one, whose news are its own."""
        if any(_is_same(there, waiter) for there in state.waiters):
            return state
        try:
            outcome = await self._executions.transact(key, Watch(waiter=waiter))
        except ResourceExhausted as refusal:
            log.warning("A reset run waits without a place, and looks now and then: %s", refusal)
            return state
        return outcome.transition.state

    async def last_of_chain(self, key: ExecutionKey, first_run_id: str) -> ExecutionState | None:
        """Of a chain that another one has followed under its workflow id; None when it is no longer there."""
        last: ExecutionState | None = None
        run_id = first_run_id
        while run_id:
            try:
                commit = await self._log.find_run(key, run_id)
            except StoreUnavailable as error:
                raise unavailable(error) from error
            last = commit.state_of(run_id) if commit is not None else None
            run_id = last.new_execution_run_id if last is not None else ""
        return last


def _is_same(one: ParentLink, other: ParentLink) -> bool:
    """Both mean what one run, or a run that a reset of it made, has asked."""
    lineage = (one.original_run_id or one.run_id) == (other.original_run_id or other.run_id)
    where = (one.namespace, one.workflow_id) == (other.namespace, other.workflow_id)
    return lineage and where and one.initiated_event_id == other.initiated_event_id


def link_of(source: ExecutionKey, entry: Entry, original_run_id: str) -> ParentLink:
    """Who waits: the run that has asked."""
    run_id, initiated_event_id = entry.asked
    return ParentLink(
        namespace=source.namespace,
        workflow_id=source.workflow_id,
        run_id=run_id,
        initiated_event_id=initiated_event_id,
        original_run_id=original_run_id,
    )
