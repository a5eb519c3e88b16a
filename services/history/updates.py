"""Updates at the edge of the core: claimed, admitted, and waited for until they have come as far as the caller wants.

Callers wait for commits of this process. Whoever waits in another one asks again when its call ends; what has been
accepted is in the history, and what was rejected is decided again for a repeat.
"""

from collections.abc import Sequence

import msgspec
from stepwell.api.enums import TaskQueueKind, WorkflowUpdateStage
from stepwell.api.errors import ApiError, FailedPrecondition, NotFound
from stepwell.api.events import HistoryEvent, WorkflowExecutionUpdateCompleted
from stepwell.api.requests import (
    PollWorkflowUpdateRequest,
    PollWorkflowUpdateResponse,
    UpdateWithStartWorkflowRequest,
    UpdateWithStartWorkflowResponse,
    UpdateWorkflowRequest,
    UpdateWorkflowResponse,
)
from stepwell.api.updates import UpdateInput, UpdateMeta, UpdateOutcome, UpdateRequest

from ..common import principals
from ..common.clock import Clock
from ..common.settings import EngineSettings, at_most
from ..matching.service import QueueName
from . import earlier_starts
from .claims import Claims, marker_name
from .commit import Commit, ExecutionKey
from .executions import Executions, unavailable
from .machines import update
from .pollers import Pollers
from .ports import ExecutionLog, StoreUnavailable
from .reading import HistoryReader
from .requests import AdmitUpdate, Request, Start, UpdateWithStart
from .state import REMEMBERED_UPDATES, EndedUpdate, ExecutionState
from .step import step
from .transition import UpdateReply
from .update_answers import answer_of, cut_off, held_up, is_stuck, not_taken, state_with
from .watchers import Watchers

UPDATE = "update"
"""Kind of the claims."""

_RANKS = {stage: rank for rank, stage in enumerate(WorkflowUpdateStage)}


class Updates:
    def __init__(
        self,
        log: ExecutionLog,
        executions: Executions,
        claims: Claims,
        reader: HistoryReader,
        watchers: Watchers,
        pollers: Pollers,
        clock: Clock,
        settings: EngineSettings,
    ) -> None:
        self._log = log
        self._executions = executions
        self._claims = claims
        self._reader = reader
        self._watchers = watchers
        self._pollers = pollers
        self._clock = clock
        self._settings = settings

    async def update(self, key: ExecutionKey, request: UpdateWorkflowRequest) -> UpdateWorkflowResponse:
        """Raises what ``step`` refuses with; WorkflowExecutionClosed when the run ends before it takes the update;
        FailedPrecondition when nobody is there to take it."""
        ends = self._ends(request)
        run_id = request.execution.run_id
        if run_id:
            state = await self._reader.state_of(key, run_id)
            if state.close_time is not None:
                return await self._of_closed(key, state, request, ends)
        asked = AdmitUpdate(
            run_id=run_id,
            first_run_id=request.first_execution_run_id,
            request=UpdateRequest(
                meta=UpdateMeta(update_id=request.update_id, identity=request.identity, principal=principals.current()),
                input=UpdateInput(name=request.update_name, args=request.input, headers=request.headers),
            ),
        )

        async def prepare(state: ExecutionState | None) -> Request:
            return await self.claimed(key, state, asked)

        transition = (await self._executions.transact(key, None, prepare)).transition
        reply = transition.reply
        if not isinstance(reply, UpdateReply):
            raise TypeError(f"an update was answered with {type(reply).__name__}")
        # No await in between: what comes behind the admission is waited for.
        return await self.wait(
            key, transition.state, request.update_id, request.wait_for_stage, ends, ended_seq=reply.ended_seq
        )

    async def update_with_start(
        self, key: ExecutionKey, start: Start, request: UpdateWithStartWorkflowRequest
    ) -> UpdateWithStartWorkflowResponse:
        """Raises as :meth:`update` does, and what the policies of the start refuse."""
        ends = self._ends(request)
        update_id = request.update_id
        asked = AdmitUpdate(
            run_id="",
            request=UpdateRequest(
                meta=UpdateMeta(update_id=update_id, identity=request.identity, principal=principals.current()),
                input=UpdateInput(name=request.update_name, args=request.update_input, headers=request.update_headers),
            ),
        )

        async def prepare(state: ExecutionState | None) -> Request:
            begun = await earlier_starts.marked(self._log, key, state, start, self._clock.now())
            unclaimed = UpdateWithStart(start=begun, update=asked)
            if (state is None or state.close_time is not None) and not self._would_take(state, unclaimed):
                return unclaimed
            return UpdateWithStart(start=begun, update=await self.claimed(key, state, asked, starts=True))

        transition = (await self._executions.transact(key, None, prepare)).transition
        reply = transition.reply
        if not isinstance(reply, UpdateReply) or reply.start is None:
            raise TypeError(f"an update with start was answered with {type(reply).__name__}")
        state = transition.state
        ended_seq = reply.ended_seq
        if reply.run_id != state.run_id:
            state, ended_seq = await self._in_older(key, reply.run_id, update_id)
        answer = await self.wait(key, state, update_id, request.wait_for_stage, ends, ended_seq=ended_seq)
        return UpdateWithStartWorkflowResponse(
            run_id=answer.run_id,
            update_id=update_id,
            stage=answer.stage,
            outcome=answer.outcome,
            started=reply.start.started,
            first_execution_run_id=reply.start.first_run_id,
        )

    def _would_take(self, state: ExecutionState | None, asked: UpdateWithStart) -> bool:
        """Whether it would be carried out; what would be refused claims nothing."""
        now = self._clock.now()
        try:
            step(state, asked, now if state is None else max(now, state.last_event_time))
        except ApiError:
            return False
        return True

    async def _in_older(self, key: ExecutionKey, run_id: str, update_id: str) -> tuple[ExecutionState, int]:
        """A repeat, of which the first call has started this run."""
        state = await self._reader.state_of(key, run_id)
        found = await self._find(key, state, update_id)
        if found is None:
            raise not_taken(state, update_id)
        return found

    async def poll(self, key: ExecutionKey, request: PollWorkflowUpdateRequest) -> PollWorkflowUpdateResponse:
        """Raises NotFound for an update that the run does not know: it was never sent there, or was rejected. For a
        closed run that is WorkflowExecutionClosed, which says how it ended."""
        ends = self._ends(request)
        state = await self._reader.state_of(key, request.execution.run_id)
        found = await self._find(key, state, request.update_id)
        if found is None and state.close_time is not None:
            raise not_taken(state, request.update_id)
        if found is None:
            raise NotFound(
                f"run {state.run_id} of workflow {key.workflow_id!r} knows no update {request.update_id!r}: it was "
                "rejected, or was not sent to this run; send it (again) with the same id to have it decided"
            )
        state, seq = found
        answer = await self.wait(key, state, request.update_id, request.wait_for_stage, ends, ended_seq=seq)
        return PollWorkflowUpdateResponse(
            run_id=answer.run_id, update_id=answer.update_id, stage=answer.stage, outcome=answer.outcome
        )

    def _ends(
        self, request: UpdateWorkflowRequest | UpdateWithStartWorkflowRequest | PollWorkflowUpdateRequest
    ) -> float:
        return self._clock.monotonic() + at_most(request.timeout, self._settings.poll_timeout)

    async def _of_closed(
        self, key: ExecutionKey, state: ExecutionState, request: UpdateWorkflowRequest, ends: float
    ) -> UpdateWorkflowResponse:
        """A repeat is told what became of it; the first call is too late."""
        found = await self._find(key, state, request.update_id)
        if found is None:
            raise not_taken(state, request.update_id)
        state, seq = found
        return await self.wait(key, state, request.update_id, request.wait_for_stage, ends, ended_seq=seq)

    # --- known or new ---

    async def claimed(
        self, key: ExecutionKey, state: ExecutionState | None, asked: AdmitUpdate, *, starts: bool = False
    ) -> AdmitUpdate:
        """In the turn of the commit: the request, marked if it is a repeat of what the state has forgotten. A new one
        is claimed first, so that it is known by its marker for as long; what would be refused claims nothing.
        ``starts``: a run is started for it when none is open."""
        update_id = asked.request.meta.update_id
        if state is not None:
            ended = update.ended(state, update_id)
            again = starts and ended is not None and update.is_cut_off(ended)
            if update_id in state.updates or (ended is not None and not again):
                return asked
        try:
            forgotten = None if state is None else await self._forgotten(key, state, update_id)
            if forgotten is not None:
                return msgspec.structs.replace(asked, ended_seq=forgotten.seq)
            is_open = state is not None and state.close_time is None
            if (is_open and state is not None and _takes(state, asked.request)) or (starts and not is_open):
                await self._claims.take(key, marker_name(UPDATE, update_id), 0 if state is None else state.seq)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        return asked

    async def _find(
        self, key: ExecutionKey, state: ExecutionState, update_id: str
    ) -> tuple[ExecutionState, int] | None:
        """The run that has the update, this one or one that it has passed it on to, and the seq of its end if it has
        one."""
        while True:
            ended = update.ended(state, update_id)
            if ended is None and update_id not in state.updates:
                try:
                    ended = await self._forgotten(key, state, update_id)
                except StoreUnavailable as error:
                    raise unavailable(error) from error
            if ended is not None or update_id in state.updates:
                return state, 0 if ended is None else ended.seq
            if not state.new_execution_run_id:
                return None
            state = await self._reader.state_of(key, state.new_execution_run_id)

    async def _forgotten(self, key: ExecutionKey, state: ExecutionState, update_id: str) -> EndedUpdate | None:
        """An end that the state has lost, but an earlier commit of the run remembers: from the oldest end that a state
        knows, back to the commit of that end, and so on until the claim."""
        if len(state.ended_updates) < REMEMBERED_UPDATES:
            return None
        claim = await self._claims.find(key, marker_name(UPDATE, update_id))
        while claim is not None and len(state.ended_updates) >= REMEMBERED_UPDATES:
            seq = state.ended_updates[0].seq
            if seq <= claim or seq >= state.seq:
                return None
            commit = await self._log.get(key, seq)
            earlier = None if commit is None else commit.state_of(state.run_id)
            if earlier is None:
                return None  # retention has deleted it
            found = update.ended(earlier, update_id)
            if found is not None:
                return found
            state = earlier
        return None

    # --- waiting ---

    async def wait(
        self,
        key: ExecutionKey,
        state: ExecutionState,
        update_id: str,
        stage: WorkflowUpdateStage,
        ends: float,
        *,
        ended_seq: int = 0,
    ) -> UpdateWorkflowResponse:
        """Where the update is when it has reached ``stage``, or at ``ends``. ``state`` is of the run that has it."""
        while True:
            ended = update.ended(state, update_id)
            if ended is not None or ended_seq:
                outcome = await self._outcome(key, state, update_id, ended_seq if ended is None else ended.seq)
                return answer_of(state, update_id, WorkflowUpdateStage.COMPLETED, outcome)
            pending = state.updates.get(update_id)
            if pending is None:
                raise not_taken(state, update_id)
            reached = WorkflowUpdateStage.ACCEPTED if pending.accepted_event_id else WorkflowUpdateStage.ADMITTED
            if _RANKS[reached] >= _RANKS[stage]:
                return answer_of(state, update_id, reached)
            if is_stuck(state):
                raise held_up(state, update_id)
            commit = await self._changed(key, state.run_id, update_id, reached, ends, state.seq)
            if commit is None:
                if reached is WorkflowUpdateStage.ADMITTED:
                    await self._check_served(state, update_id)
                return answer_of(state, update_id, reached)
            for rejected in commit.rejected:
                if rejected.run_id == state.run_id and rejected.update_id == update_id:
                    failure = UpdateOutcome(failure=rejected.failure)
                    return answer_of(state, update_id, WorkflowUpdateStage.COMPLETED, failure)
            state = state_with(commit, state.run_id, update_id)

    async def _changed(
        self,
        key: ExecutionKey,
        run_id: str,
        update_id: str,
        reached: WorkflowUpdateStage,
        ends: float,
        seen_seq: int,
    ) -> Commit | None:
        """The first commit behind ``seen_seq`` that changes something for the update; None at ``ends``."""

        def concerns(commit: Commit) -> bool:
            state = commit.state_of(run_id)
            pending = None if state is None else state.updates.get(update_id)
            if state is None or pending is None or is_stuck(state):
                return True
            return (pending.accepted_event_id > 0) != (reached is WorkflowUpdateStage.ACCEPTED)

        while True:
            commit = await self._watchers.wait(key, concerns, ends)
            if commit is not None or self._watchers.over(ends):
                return commit
            # What other processes have committed meanwhile: a rejection is in its commit and nowhere else.
            while (commit := await self._commit(key, seen_seq + 1)) is not None:
                seen_seq += 1
                if concerns(commit):
                    return commit

    async def _commit(self, key: ExecutionKey, seq: int) -> Commit | None:
        try:
            return await self._log.get(key, seq)
        except StoreUnavailable as error:
            raise unavailable(error) from error

    async def _check_served(self, state: ExecutionState, update_id: str) -> None:
        """Only who knows of all polls knows that there are none."""
        if not self._settings.sole_owner and not self._pollers.are_all_known:
            return
        name = QueueName(state.namespace, state.task_queue, TaskQueueKind.WORKFLOW)
        limit = self._settings.query_no_poller
        if not await self._pollers.polled_within(name, limit):
            raise FailedPrecondition(
                f"no worker has polled task queue {state.task_queue!r} in the last {limit.total_seconds():.0f} "
                f"seconds, so nobody can take update {update_id!r}; it is recorded and will be taken when a worker "
                "comes. Start one, and ask for the update by its id.",
                task_queue=state.task_queue,
            )

    async def _outcome(self, key: ExecutionKey, state: ExecutionState, update_id: str, seq: int) -> UpdateOutcome:
        try:
            events = await self._events(key, state.run_id, seq)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        for event in events or ():
            attributes = event.attributes
            if isinstance(attributes, WorkflowExecutionUpdateCompleted) and attributes.meta.update_id == update_id:
                return attributes.outcome
        if events is None:
            raise NotFound(f"the outcome of update {update_id!r} has been deleted, since its retention is over")
        return UpdateOutcome(failure=cut_off(state))

    async def _events(self, key: ExecutionKey, run_id: str, seq: int) -> Sequence[HistoryEvent] | None:
        """Of a commit, or of a part of what a reset run began with; None when it has been deleted."""
        if seq < 0:
            return (await self._log.read_events(key, run_id, seq - 1, 1)).events or None
        commit = await self._log.get(key, seq)
        return None if commit is None else commit.events_of(run_id)


def _takes(state: ExecutionState, request: UpdateRequest) -> bool:
    try:
        update.refuse(state, request)
    except ApiError:
        return False
    return True
