"""Faults planted into the engine at named seams, one at a time, to show that the simulation finds them."""

import contextlib
from collections.abc import Callable, Coroutine, Iterator
from datetime import datetime
from typing import Any
from unittest import mock

import msgspec
from stepwell.api.enums import WorkflowExecutionStatus

from stepwell_server.history import builder, executions, items, outcomes
from stepwell_server.history.activity_item import FINISHED, ActivityItem
from stepwell_server.history.armed_times import ArmedTimes
from stepwell_server.history.builder import unchanged
from stepwell_server.history.claims import Claims
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.machines import completion, start
from stepwell_server.history.ports import VersionConflict
from stepwell_server.history.requests import CompleteWorkflowTask, FireDeadline, Request
from stepwell_server.history.state import ExecutionState
from stepwell_server.history.step import REQUESTS, step
from stepwell_server.history.task_tokens import WorkflowTaskToken
from stepwell_server.history.transition import Transition
from stepwell_server.matching.task_queue import TaskQueue
from stepwell_server.timer_sweeper import sweeper
from tests.simulation.model import Model
from tests.simulation.ports import FaultyLog

_replace = msgspec.structs.replace
_step = step
_complete = completion.complete
_stale = completion._stale


def _completing(complete: Callable[[ExecutionState, CompleteWorkflowTask, datetime], Transition]) -> Any:
    return mock.patch.dict(REQUESTS, {CompleteWorkflowTask: complete})


Plant = Callable[[], contextlib.AbstractContextManager[Any]]


def completion_validation_removed() -> Any:
    """Whatever the history did since, a completion of the open run counts."""

    def never(state: ExecutionState, request: CompleteWorkflowTask, now: datetime) -> str:
        gone = request.token.run_id != state.run_id or state.close_time is not None
        impossible = isinstance(request.token, WorkflowTaskToken) == (state.workflow_task is None)
        return _stale(state, request, now) if gone or impossible else ""

    return mock.patch.object(completion, "_stale", never)


def arm_after_write() -> Any:
    """The deadline is armed behind the write that needs it; a crash in between leaves none."""

    async def write(self: FaultyLog, key: ExecutionKey, arm: datetime | None, write: Coroutine[Any, Any, None]) -> None:
        await self._disk.do(write)
        if arm is not None:
            await self._disk.do(self._disk.arm(key, arm))

    return mock.patch.object(FaultyLog, "_write", write)


def firing_without_rearm() -> Any:
    """The commit of a firing says that a deadline is armed, and none is."""

    def planted(state: ExecutionState | None, request: Request, now: datetime) -> Transition:
        transition = _step(state, request, now)
        return _replace(transition, arm=None) if isinstance(request, FireDeadline) else transition

    return mock.patch.object(executions, "step", planted)


def rebase_instead_of_refuse() -> Any:
    """A stale completion is put on top of what has happened since."""

    def complete(state: ExecutionState, request: CompleteWorkflowTask, now: datetime) -> Transition:
        token, task = request.token, state.workflow_task
        if isinstance(token, WorkflowTaskToken) and task is not None and state.numbered_seq > token.base:
            rebased = _replace(token, base=state.seq, attempt=task.attempt, placed=(), started_time=now)
            request = _replace(request, token=rebased)
        return _complete(state, request, now)

    return _completing(complete)


def second_nonce_answered() -> Any:
    """Another worker's completion of a task that is done is answered like a repeat of the first one."""

    def complete(state: ExecutionState, request: CompleteWorkflowTask, now: datetime) -> Transition:
        mark, token = state.completion, request.token
        if mark is not None and isinstance(token, WorkflowTaskToken) and token.run_id == state.run_id:
            if mark.nonce != request.nonce and token.base < mark.seq:
                return unchanged(state, completion._again(state, request, mark))
        return _complete(state, request, now)

    return _completing(complete)


def no_wake_up_on_repeat() -> Any:
    """A repeated result is acknowledged without a look whether the workflow was ever told."""

    async def held(
        self: outcomes.ActivityOutcomes, key: ExecutionKey, run_id: str, asked: outcomes.Asked, worker_key: str
    ) -> Any:
        shell = self._activities
        known = [await shell._items.get(key, run_id, token.scheduled_event_id) for _, token, _ in asked]
        replies = {position: await shell.respond(token, outcome, worker_key) for position, token, outcome in asked}
        if not all(item is not None and item.state in FINISHED for item in known):
            await shell.wake_up(key, run_id)
        return replies

    return mock.patch.object(outcomes.ActivityOutcomes, "_held", held)


_HARMLESS = {"Signal", "RequestCancel", "RecordLeasedOutcomes", "RecordFinishedActivities"}
"""Kinds of commits that mostly only buffer; a signal that overflows the buffer numbers it."""


@contextlib.contextmanager
def validity_by_kind() -> Iterator[None]:
    """A completion is valid unless a commit of some other kind came after its base."""
    kinds: dict[tuple[str, int], str] = {}
    append = Model.append

    def noted(self: Model, commit: Commit, now: datetime) -> None:
        kinds[commit.workflow_id, commit.seq] = commit.kind
        append(self, commit, now)

    def complete(state: ExecutionState, request: CompleteWorkflowTask, now: datetime) -> Transition:
        token = request.token
        since = {kinds.get((state.workflow_id, seq), "") for seq in range(token.base + 1, state.seq + 1)}
        if isinstance(token, WorkflowTaskToken) and since and since <= _HARMLESS:
            request = _replace(request, token=_replace(token, base=state.seq))
        return _complete(state, request, now)

    with mock.patch.object(Model, "append", noted), _completing(complete):
        yield


def equal_puts_are_one() -> Any:
    """A put of an activity item that meets an equal one is taken for a repeat of its own."""
    put = items.ActivityItems.put

    async def forgiving(self: items.ActivityItems, item: ActivityItem, arm: datetime | None) -> None:
        try:
            await put(self, item, arm)
        except VersionConflict as conflict:
            if conflict.existing is None or _replace(conflict.existing, nonce=item.nonce) != item:
                raise

    return mock.patch.object(items.ActivityItems, "put", forgiving)


@contextlib.contextmanager
def early_firing_struck_off() -> Iterator[None]:
    """A firing that runs when the clock has gone back leaves what is armed as it is, and its row is struck off."""

    async def strike_off(self: sweeper.TimerSweeper) -> None:
        rows, self._fired = self._fired, []
        await self._timers.fired(rows)
        self._busy.difference_update(rows)

    def planted(state: ExecutionState | None, request: Request, now: datetime) -> Transition:
        return _step(state, _replace(request, fire_at=None) if isinstance(request, FireDeadline) else request, now)

    with (
        mock.patch.object(sweeper.TimerSweeper, "_strike_off", strike_off),
        mock.patch.object(executions, "step", planted),
    ):
        yield


def timers_left_to_a_task_forgotten() -> Any:
    """A workflow task that is done does not look at the timers that a firing had left to it."""
    touched = builder.TransitionBuilder._touched

    def only_own(self: builder.TransitionBuilder, earliest: datetime) -> datetime:
        self._had_task = False
        return touched(self, earliest)

    return mock.patch.object(builder.TransitionBuilder, "_touched", only_own)


def hint_for_a_cancelled_poll_lost() -> Any:
    """Matching hands a hint to a poll whose caller has just gone."""

    def poll_for(self: TaskQueue[Any], prefer_worker: str) -> Any:
        own = [poll for poll in self.polls if poll.worker_key == prefer_worker]
        return next(iter(own or self.polls), None)

    return mock.patch.object(TaskQueue, "_poll_for", poll_for)


def fired_times_counted_on() -> Any:
    """An item's armed time is remembered also when it has fired, which a clock that goes back makes the future."""
    return mock.patch.object(ArmedTimes, "fired", return_value=None)


def buffer_lost_between_runs() -> Any:
    """A start over an open run ends it without what it has not seen."""

    def forget(draft: builder.TransitionBuilder) -> None:
        draft.state.buffered = ()

    return mock.patch.object(start.inbox, "flush", forget)


def end_of_a_followed_run_not_found() -> Any:
    """The newest commit of a run that another follows shows it as running."""

    def before(self: Commit, run_id: str) -> ExecutionState | None:
        state = state_of(self, run_id)
        if state is None or state is self.state:
            return state
        return _replace(state, status=WorkflowExecutionStatus.RUNNING, close_time=None)

    state_of = Commit.state_of
    return mock.patch.object(Commit, "state_of", before)


def armed_time_of_closed_run_kept() -> Any:
    """A run behind a closed one counts on what that one had armed, though it may have fired since."""
    opening = builder.TransitionBuilder.opening

    def counting(head: ExecutionState | None, *rest: Any) -> builder.TransitionBuilder:
        draft = opening(head, *rest)
        draft.state.armed = head.armed if head is not None else None
        return draft

    return mock.patch.object(builder.TransitionBuilder, "opening", counting)


def claims_always_taken_over() -> Any:
    """Who finds a claim of a key does not look whether it was kept."""
    return mock.patch.object(Claims, "is_done", mock.AsyncMock(return_value=False))


def claims_taken_for_kept() -> Any:
    """Who finds a claim of a key believes that the signal was recorded."""
    is_done = Claims.is_done

    async def believed(self: Claims, key: ExecutionKey, state: ExecutionState, claim: int, *rest: str) -> bool:
        return claim < state.seq or await is_done(self, key, state, claim, *rest)

    return mock.patch.object(Claims, "is_done", believed)
