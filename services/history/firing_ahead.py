"""Due timers whose workflow task is handed out before their firing is written: a timer costs one commit, not two.

Theory of operation. When nothing but timers of an idle run is due and its worker is polling, the firing is only worked
out: the worker is shown the events it will have (TimerFired, WorkflowTaskScheduled), and the first request that comes
for the execution is decided on the state behind them. Its commit records both. Mostly that is the completion of the
very task; a signal, or the firing itself when the worker is slow, does as well, and the task goes on from there.

Nothing is lost with this memory: until that commit the timer's row stays armed, and a token that was given out ahead
counts for nothing unless its firing is here or was written as it was shown. So what a worker has been shown either is
in the history, byte for byte, or its completion is refused and it evicts what it computed.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from ..common.timeouts import Timeouts
from .builder import owes
from .commit import ClosedRun, Commit, ExecutionKey
from .handed_out import TaskIdentity, identity_of
from .requests import FireDeadline
from .state import ExecutionState
from .step import step
from .task_tokens import WorkflowTaskToken
from .tasks import DispatchWorkflowTask
from .transition import Transition

_NOTHING = 0
"""A base on which no completion counts: the run's first commit has numbered events behind it."""

_NEXT_ROW = timedelta(milliseconds=1)
_replace = msgspec.structs.replace


@dataclass(slots=True)
class FiringAhead:
    """``state`` is as the firing leaves it, but with the ``seq`` of the state it is based on."""

    state: ExecutionState
    firing: Transition
    fire_at: datetime
    task: TaskIdentity
    time: datetime
    """Of the firing's events: with the state it is based on, it says what they are."""
    written_seq: int = 0
    """Seq of the commit that has the firing."""
    settled: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """Done once it is written, or given up."""

    def settle(self) -> None:
        if not self.settled.done():
            self.settled.set_result(None)

    def with_it(self, transition: Transition) -> Transition:
        """The transition from ``state``, as one that also records the firing."""
        state, events, closed = transition.state, transition.events, transition.closed
        tasks, arm = transition.tasks, transition.arm
        state.numbered_seq = state.seq
        if closed is not None:
            closed = ClosedRun(state=closed.state, events=self.firing.events + closed.events)
        else:
            events = self.firing.events + events
        if identity_of(state) == self.task:
            tasks = self.firing.tasks + tasks
        if arm == self.fire_at:
            # The row of that time is the one that is being fired, and will be struck off.
            state.armed = arm = arm + _NEXT_ROW
        return _replace(transition, events=events, tasks=tasks, closed=closed, arm=arm, owes=owes(state))


class FiringsAhead:
    """At most one per execution. ``given_up`` is told when what was shown to a worker will not be written."""

    def __init__(self, given_up: Callable[[ExecutionKey], None]) -> None:
        self._given_up = given_up
        self.firings: dict[ExecutionKey, FiringAhead] = {}
        """Mostly none, so that nothing here need be asked."""
        self._timeouts = Timeouts()

    def plan(self, key: ExecutionKey, state: ExecutionState, fire_at: datetime, now: datetime) -> FiringAhead | None:
        """None when more than timers is due, or the run is not idle: then the firing is a commit of its own."""
        if key in self.firings or not _only_timers(state, now) or fire_at > now:
            return None
        firing = step(state, FireDeadline(fire_at=fire_at), max(now, state.last_event_time))
        after = firing.state
        task = identity_of(after)
        dispatches = [task for task in firing.tasks if isinstance(task, DispatchWorkflowTask)]
        if task is None or after.close_time is not None or firing.closed or len(dispatches) != len(firing.tasks):
            return None
        after.seq, after.numbered_seq, after.armed = state.seq, state.numbered_seq, state.armed
        planned = self.firings[key] = FiringAhead(after, firing, fire_at, task, after.last_event_time)
        return planned

    async def settled(self, firing: FiringAhead, seconds: float) -> None:
        """Waits until it is, but not longer."""
        number = self._timeouts.after(seconds, firing.settle)
        try:
            await firing.settled
        finally:
            self._timeouts.call_off(number)

    def planned(self, key: ExecutionKey, state: ExecutionState) -> FiringAhead | None:
        """What is to be written with the next commit behind ``state``."""
        firing = self.firings.get(key)
        if firing is None or firing.written_seq or firing.state.seq != state.seq:
            return None
        return firing

    def token(self, key: ExecutionKey, token: WorkflowTaskToken, state: ExecutionState | None) -> WorkflowTaskToken:
        """A token that was given out ahead, as it counts for a request that is decided on ``state``."""
        firing = self.firings.get(key)
        if firing is not None and firing.state.seq == token.base and firing.time == token.ahead:
            if firing.written_seq:
                return _replace(token, base=firing.written_seq)
            if state is firing.state:
                return token
        return _replace(token, base=_NOTHING)

    def committed(self, key: ExecutionKey, commit: Commit, planned: FiringAhead | None) -> None:
        """Behind each commit; ``planned``: what it was decided on, if it was."""
        firing = self.firings.get(key)
        if firing is None:
            return
        if firing is planned:
            firing.written_seq = commit.seq
            firing.settle()
        elif not firing.written_seq:
            self.drop(key)
            return
        if identity_of(commit.state) != firing.task:
            del self.firings[key]

    def drop(self, key: ExecutionKey) -> None:
        """Somebody else's commit came first, or it is not known what became of one's own."""
        firing = self.firings.pop(key, None)
        if firing is not None:
            firing.settle()
            if not firing.written_seq:
                self._given_up(key)


def _only_timers(state: ExecutionState, now: datetime) -> bool:
    """Whether a firing has nothing to do but to fire timers, as far as can be told without working it out."""
    if not state.timers or (state.run_expires is not None and state.run_expires <= now):
        return False
    return not (state.pause or state.workflow_task or state.activities or state.buffered or state.owed or state.updates)
