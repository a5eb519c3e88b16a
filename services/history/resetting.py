"""Resets at the edge of the core: reads what is kept, writes it as the new run's prefix, then makes the switch.

Theory of operation. A prefix is made of events that have numbers, so it is true whatever happens meanwhile; what comes
in while it is written is read behind it, for the very state that the switch is decided on. A crash before the switch
leaves parts that nobody reads and retention deletes. A repeat with the same request id finds the first one's run.
"""

from collections.abc import AsyncIterator
from datetime import datetime

from stepwell.api.enums import ResetType
from stepwell.api.errors import Internal, InvalidArgument
from stepwell.api.events import EventAttributes, HistoryEvent
from stepwell.api.requests import ResetWorkflowRequest

from ..common import principals
from ..common.clock import Clock, IdSource
from . import request_ids
from .commit import ExecutionKey, before
from .executions import Executions, unavailable
from .machines.reapplying import came_with_reset, may_count_again, post_reset
from .machines.reset import Prefix
from .machines.reset_point import PointFinder
from .ports import ExecutionLog, StoreUnavailable
from .reading import HistoryReader
from .request_log import RingWalk
from .requests import Request, Reset
from .state import ExecutionState
from .transition import ResetReply

_PAGE_EVENTS = 1_000


class Resetting:
    """Raises NotFound, InvalidArgument, Unavailable."""

    def __init__(
        self, log: ExecutionLog, executions: Executions, reader: HistoryReader, clock: Clock, ids: IdSource
    ) -> None:
        self._log = log
        self._executions = executions
        self._reader = reader
        self._clock = clock
        self._ids = ids

    async def reset(self, request: ResetWorkflowRequest) -> str:
        """The new run's id."""
        key = ExecutionKey(request.namespace, request.execution.workflow_id)
        try:
            return await self._reset(key, request)
        except StoreUnavailable as error:
            raise unavailable(error) from error

    async def _reset(self, key: ExecutionKey, request: ResetWorkflowRequest) -> str:
        head = await self._reader.state_of(key, "")
        made = await self._made_before(key, head, request.request_id)
        if made is not None:
            return made
        base, last_event_id = await self._point(key, request)
        run_id = self._ids.run_id()
        principal = principals.current()
        operations = post_reset(run_id, request.post_reset_operations, request.identity, principal=principal)
        walk = _Walk(self._log, key, base, last_event_id)
        excluded = frozenset(request.reset_reapply_exclude_types)
        prefix = Prefix(key.namespace, run_id, excluded)
        await self._write(key, request, prefix, walk, head)
        late: list[EventAttributes] = []

        async def prepare(state: ExecutionState | None) -> Request:
            if state is not None:
                late.extend([event.attributes async for event in walk.up_to(state)])
            return Reset(
                run_id=run_id,
                base_run_id=base.run_id,
                state=prefix.state,
                late=tuple(late),
                excluded=excluded,
                request_id=request.request_id,
                reason=request.reason,
                identity=request.identity,
                operations=operations,
                principal=principal,
            )

        outcome = await self._executions.transact(key, None, prepare)
        reply = outcome.transition.reply
        if not isinstance(reply, ResetReply):
            raise TypeError(f"a reset was answered with {type(reply).__name__}")
        return reply.run_id

    async def _write(
        self, key: ExecutionKey, request: ResetWorkflowRequest, prefix: Prefix, walk: "_Walk", head: ExecutionState
    ) -> None:
        now = self._clock.now()
        ended = False
        async for event in walk.up_to(head):
            if event.event_id <= walk.last_event_id and not ended:
                prefix.add(event)
                if event.event_id == walk.last_event_id:
                    prefix.fail_task(request.reason, request.identity, now, principal=principals.current())
                    ended = True
            else:
                prefix.reapply(event.attributes, now)
            await self._put(key, prefix, now)
        if not ended:
            raise Internal(f"the history of run {walk.base_run_id} ended before event {walk.last_event_id}")
        await self._put(key, prefix, now, last=True)

    async def _put(self, key: ExecutionKey, prefix: Prefix, now: datetime, *, last: bool = False) -> None:
        for seq, events in prefix.take_parts(last=last):
            await self._log.put_prefix(key, prefix.state.run_id, seq, events, now=now)

    async def _made_before(self, key: ExecutionKey, head: ExecutionState, request_id: str) -> str | None:
        """The run of an earlier call with this request id, also when the newest state has lost it."""
        made = request_ids.reset_run(head, request_id)
        walk = RingWalk(self._log, key, head, request_ids.RESET)
        while request_id and made is None and (older := await walk.older()) is not None:
            made = request_ids.reset_run(older[0].state, request_id)
        return made

    # --- where to ---

    async def _point(self, key: ExecutionKey, request: ResetWorkflowRequest) -> tuple[ExecutionState, int]:
        """The base run, and the last event of its that is kept."""
        base = await self._reader.state_of(key, request.execution.run_id)
        if request.reset_type is ResetType.LAST_CONTINUED_AS_NEW:
            if not base.continued_execution_run_id:
                raise InvalidArgument(
                    f"run {base.run_id} of workflow {key.workflow_id!r} is the first of its chain; "
                    "use another reset_type",
                    field="reset_type",
                )
            base = await self._reader.state_of(key, base.continued_execution_run_id)
        finder = await self._searched(key, base, request)
        while finder.may_be_earlier and base.continued_execution_run_id and not request.current_run_only:
            earlier = await self._reader.state_of(key, base.continued_execution_run_id)
            found = await self._searched(key, earlier, request)
            if not found.is_found and finder.is_found:
                break
            base, finder = earlier, found
        return base, finder.last_event_id(base)

    async def _searched(self, key: ExecutionKey, base: ExecutionState, request: ResetWorkflowRequest) -> PointFinder:
        finder = PointFinder(request.reset_type, request.workflow_task_finish_event_id, request.build_id)
        async for event in _events(self._log, key, base.run_id, before(base)):
            if not finder.look_at(event):
                break
        return finder


async def _events(log: ExecutionLog, key: ExecutionKey, run_id: str, after_seq: int) -> AsyncIterator[HistoryEvent]:
    while True:
        page = await log.read_events(key, run_id, after_seq, _PAGE_EVENTS)
        for event in page.events:
            yield event
        if page.last_seq == after_seq:
            return
        after_seq = page.last_seq


class _Walk:
    """From the base run's first event on through all later runs of its chain, as far as it has come: what a reset
    keeps, and what came in behind that. Runs of other chains, which are strangers (WC-31), are passed by."""

    def __init__(self, log: ExecutionLog, key: ExecutionKey, base: ExecutionState, last_event_id: int) -> None:
        self._log = log
        self._key = key
        self._first_run_id = base.first_run_id
        self.base_run_id = base.run_id
        self.last_event_id = last_event_id
        self._run_id = base.run_id
        self._after_seq = before(base)
        self._is_of_chain = True
        self._taken_over_before = 0
        """Events of this run before this one are what a reset made it from."""

    async def up_to(self, head: ExecutionState) -> AsyncIterator[HistoryEvent]:
        while True:
            async for event in self._of_this_run():
                yield event
            if self._run_id == head.run_id or not await self._go_on():
                return

    async def _of_this_run(self) -> AsyncIterator[HistoryEvent]:
        of_base = self._run_id == self.base_run_id
        while self._is_of_chain:
            page = await self._log.read_events(self._key, self._run_id, self._after_seq, _PAGE_EVENTS)
            if page.last_seq == self._after_seq:
                return
            self._after_seq = page.last_seq
            for event in page.events:
                kept = of_base and event.event_id <= self.last_event_id
                if kept or (self._is_news(event) and may_count_again(event.attributes, of_base=of_base)):
                    yield event

    def _is_news(self, event: HistoryEvent) -> bool:
        """What a run took over when a reset made it is where it came in as well; what came with the reset is not."""
        return event.event_id >= self._taken_over_before or came_with_reset(self._run_id, event.attributes)

    async def _go_on(self) -> bool:
        """To the next run of the workflow id; False when there is none."""
        newest = await self._log.find_run(self._key, self._run_id)
        if newest is None:
            return False
        opening = newest if newest.run_id != self._run_id else await self._log.get(self._key, newest.seq + 1)
        if opening is None:
            return False
        state = opening.state
        self._run_id = state.run_id
        self._is_of_chain = state.first_run_id == self._first_run_id
        self._after_seq = state.first_seq - 1  # passes a prefix by
        self._taken_over_before = state.next_event_id if state.prefix_tail_seq else 0
        return True
