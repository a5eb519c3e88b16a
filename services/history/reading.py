"""What clients read: histories by page and long poll, descriptions. Nothing here writes."""

from collections.abc import Sequence

from stepwell.api import limits
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.errors import InvalidArgument, NotFound
from stepwell.api.events import CLOSE_EVENTS, HistoryEvent
from stepwell.api.requests import GetHistoryRequest, GetHistoryResponse

from ..common.clock import Clock
from ..common.settings import EngineSettings, at_most
from .commit import Commit, ExecutionKey, before
from .executions import Executions, unavailable
from .machines.run_checks import is_deleted, no_such_run
from .ports import ExecutionLog, StoreUnavailable
from .reading_backwards import Place, page_before
from .state import ExecutionState
from .tokens import BackwardsToken, HistoryToken, TokenSigner
from .watchers import Watchers

_PAGE_BYTES = 4 * 1024 * 1024
"""About how large a page of a history may be."""


class HistoryReader:
    """Raises NotFound for unknown workflows and runs, Unavailable when the store cannot serve."""

    def __init__(
        self,
        log: ExecutionLog,
        executions: Executions,
        watchers: Watchers,
        signer: TokenSigner,
        clock: Clock,
        settings: EngineSettings,
    ) -> None:
        self._log = log
        self._executions = executions
        self._watchers = watchers
        self._signer = signer
        self._clock = clock
        self._settings = settings

    async def state_of(self, key: ExecutionKey, run_id: str) -> ExecutionState:
        """The newest state of the run; with an empty ``run_id``, of the newest run."""
        state = await self._executions.read(key)
        if state is not None and is_deleted(state, run_id or state.run_id):
            raise no_such_run(state, run_id or state.run_id)
        if state is not None and (not run_id or state.run_id == run_id):
            return state
        if state is None or not run_id:
            raise NotFound(
                f"there is no such workflow as {key.workflow_id!r} in namespace {key.namespace!r}; check both "
                "(a closed run is deleted when its retention is over)"
            )
        try:
            commit = await self._log.find_run(key, run_id)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        state = None if commit is None else commit.state_of(run_id)
        if state is None:
            raise NotFound(
                f"workflow {key.workflow_id!r} in namespace {key.namespace!r} has no run {run_id!r}; "
                "leave the run id out for its newest run"
            )
        return state

    # --- history ---

    async def started_event(self, key: ExecutionKey, state: ExecutionState) -> HistoryEvent | None:
        """A run's first event; None when the log has it no more."""
        try:
            page = await self._log.read_events(key, state.run_id, before(state), 1)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        return page.events[0] if page.events and page.events[0].event_id == 1 else None

    async def get_history(self, request: GetHistoryRequest) -> GetHistoryResponse:
        key = ExecutionKey(request.namespace, request.execution.workflow_id)
        if request.reverse:
            return await self._newest_first(request, key)
        position = await self._position(request, key)
        ends = self._clock.monotonic() + at_most(request.timeout, self._settings.poll_timeout)
        if request.close_event_only:
            return await self._close_event(request, key, position, ends)
        while True:
            state = await self.state_of(key, position.run_id)
            events, following = await self._page(key, position, _page_size(request, state))
            if events and events[-1].event_id >= state.next_event_id:
                # Who has seen an event, and then queries, must not meet a head that does not have it yet (MS-20).
                await self._executions.written(key)
            # The page was read behind the state: another process may have closed the run in between.
            closed = state.status is not WorkflowExecutionStatus.RUNNING or (
                bool(events) and isinstance(events[-1].attributes, CLOSE_EVENTS)
            )
            complete = bool(events) and events[-1].event_id >= state.next_event_id - 1
            if events or closed or not request.wait_new_event:
                over = (complete or not events) and (closed or not request.wait_new_event)
                return self._answer(following, events, more=not over)
            if not await self._wait(key, state, ends) and self._watchers.over(ends):
                return self._answer(position, (), more=True)

    async def _newest_first(self, request: GetHistoryRequest, key: ExecutionKey) -> GetHistoryResponse:
        """What comes in behind the first page is in none of the later ones."""
        behind = b""
        if request.next_page_token:
            token = self._signer.open_as(request.next_page_token, BackwardsToken, request.namespace, "next_page_token")
            _check_owner(token, request)
            state = await self.state_of(key, token.run_id)
            place = Place(token.seq, token.skip)
        else:
            state = await self.state_of(key, request.execution.run_id)
            place = Place(state.numbered_seq)
            behind = self._signer.seal(HistoryToken(*key, state.run_id, state.numbered_seq))
        try:
            events, following = await page_before(self._log, key, state, place, _page_size(request, state))
        except StoreUnavailable as error:
            raise unavailable(error) from error
        token_bytes = b""
        if following is not None:
            token_bytes = self._signer.seal(BackwardsToken(key.namespace, key.workflow_id, state.run_id, *following))
        return GetHistoryResponse(
            run_id=state.run_id, events=tuple(events), next_page_token=token_bytes, following_token=behind
        )

    async def _position(self, request: GetHistoryRequest, key: ExecutionKey) -> HistoryToken:
        if request.next_page_token:
            token = self._signer.open_as(request.next_page_token, HistoryToken, request.namespace, "next_page_token")
            _check_owner(token, request)
            return token
        state = await self.state_of(key, request.execution.run_id)
        return HistoryToken(key.namespace, key.workflow_id, state.run_id, before(state))

    async def _page(
        self, key: ExecutionKey, position: HistoryToken, size: int
    ) -> tuple[Sequence[HistoryEvent], HistoryToken]:
        """Up to ``size`` events from ``position`` on, and the position behind them."""
        try:
            page = await self._log.read_events(key, position.run_id, position.after_seq, position.skip + size)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        events = page.events[position.skip : position.skip + size]
        if len(page.events) > position.skip + size:
            return events, HistoryToken(*_run(position), position.after_seq, position.skip + size)
        return events, HistoryToken(*_run(position), page.last_seq)

    async def _close_event(
        self, request: GetHistoryRequest, key: ExecutionKey, position: HistoryToken, ends: float
    ) -> GetHistoryResponse:
        """The close event alone; it is the last one of the run's last commit that numbered any."""
        while True:
            state = await self.state_of(key, position.run_id)
            if state.status is not WorkflowExecutionStatus.RUNNING:
                return self._answer(position, await self._last_event(key, state), more=False)
            if not request.wait_new_event:
                return self._answer(position, (), more=False)
            commit = await self._wait_closed(key, state, ends)
            events = () if commit is None else commit.events_of(state.run_id)
            if events:
                return self._answer(position, events[-1:], more=False)
            if commit is None and self._watchers.over(ends):
                return self._answer(position, (), more=True)

    async def _last_event(self, key: ExecutionKey, state: ExecutionState) -> Sequence[HistoryEvent]:
        entry = self._executions.cache.peek(key)
        if (
            entry is not None
            and entry.state is state
            and entry.tail
            and isinstance(entry.tail[-1].attributes, CLOSE_EVENTS)
        ):
            return entry.tail[-1:]
        try:
            commit = await self._log.get(key, state.numbered_seq)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        return () if commit is None else commit.events_of(state.run_id)[-1:]

    async def _wait(self, key: ExecutionKey, state: ExecutionState, ends: float) -> bool:
        """Whether something was numbered, or the run closed, before ``ends``."""
        entry = self._executions.cache.peek(key)
        if entry is None or entry.state is not state:
            return True  # something came in while the page was read
        seq = state.numbered_seq

        def numbered(commit: Commit) -> bool:
            return commit.state.numbered_seq > seq

        return await self._watchers.wait(key, numbered, ends) is not None

    async def _wait_closed(self, key: ExecutionKey, state: ExecutionState, ends: float) -> Commit | None:
        run_id = state.run_id

        def closed(commit: Commit) -> bool:
            return commit.run_id != run_id or commit.state.status is not WorkflowExecutionStatus.RUNNING

        return await self._watchers.wait(key, closed, ends)

    def _answer(self, position: HistoryToken, events: Sequence[HistoryEvent], *, more: bool) -> GetHistoryResponse:
        token = self._signer.seal(position) if more else b""
        return GetHistoryResponse(run_id=position.run_id, events=tuple(events), next_page_token=token)


def _check_owner(token: HistoryToken | BackwardsToken, request: GetHistoryRequest) -> None:
    execution = request.execution
    if token.workflow_id != execution.workflow_id or execution.run_id not in ("", token.run_id):
        raise InvalidArgument(
            "next_page_token belongs to another workflow or run; begin that one's history without a token",
            field="next_page_token",
        )


def _page_size(request: GetHistoryRequest, state: ExecutionState) -> int:
    """As many events as were asked for, but fewer where events are large on average."""
    asked = min(request.maximum_page_size or limits.HISTORY_PAGE_EVENTS, limits.MAX_HISTORY_PAGE_EVENTS)
    average = state.history_size // max(state.next_event_id - 1, 1)
    return max(min(asked, _PAGE_BYTES // max(average, 1)), 1)


def _run(token: HistoryToken) -> tuple[str, str, str]:
    return token.namespace, token.workflow_id, token.run_id
