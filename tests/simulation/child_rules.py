"""What must hold between parents and their children, checked at every write: one child for each thing that was asked
for, told the truth about its start and its end, and dealt with by its parent's close, and nobody else (WC-10)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from stepwell.api import events as e
from stepwell.api.enums import ParentClosePolicy, WorkflowIDConflictPolicy
from stepwell.api.events import CLOSE_EVENTS, EventAttributes, HistoryEvent

from stepwell_server.common.control import is_wake_up
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.crossing_children import BY_POLICY
from stepwell_server.history.lawful_messages import CHILD_ENDS
from stepwell_server.history.state import ExecutionState, OwedChild, OwedNotice
from tests.simulation.crossing_rules import to_others
from tests.simulation.lineage import Lineage, Name
from tests.simulation.violation import Violation

_ENDS: dict[type, type] = {
    e.ChildWorkflowExecutionCompleted: e.WorkflowExecutionCompleted,
    e.ChildWorkflowExecutionFailed: e.WorkflowExecutionFailed,
    e.ChildWorkflowExecutionCanceled: e.WorkflowExecutionCanceled,
    e.ChildWorkflowExecutionTimedOut: e.WorkflowExecutionTimedOut,
    e.ChildWorkflowExecutionTerminated: e.WorkflowExecutionTerminated,
}


@dataclass
class _Chain:
    """Of runs, by its first."""

    key: ExecutionKey
    parent: Name | None
    close: EventAttributes | None = None
    closed_at: int = 0
    """Commits that there were before."""
    asked_to_cancel: bool = False


@dataclass
class _Asked:
    body: e.StartChildWorkflowExecutionInitiated
    ended: bool = False
    first_run_id: str = ""
    """Once the parent knows."""


@dataclass
class _Run:
    first_run_id: str
    began_at: int
    """Commits that there were before."""
    closed: bool = False
    by_reset: bool = False
    asked: dict[int, _Asked] = field(default_factory=dict)


class ChildRules:
    """Fed with every commit, before it is the head. Raises :class:`Violation`."""

    def __init__(self, heads: dict[ExecutionKey, Commit], lineage: Lineage) -> None:
        self._heads = heads
        self._lineage = lineage
        self._commits = 0
        self._chains: dict[str, _Chain] = {}
        self._runs: dict[str, _Run] = {}
        self._child_of: dict[Name, str] = {}

    def begin(self, state: ExecutionState, prefix: Sequence[HistoryEvent]) -> None:
        """Before the commit of a reset: the children that its run has from the runs before it."""
        run = self._runs[state.run_id] = _Run(state.first_run_id, self._commits, by_reset=True)
        self._chains[run.first_run_id].close = None  # the chain goes on
        for event in prefix:
            self._asked_before(run, event)

    def add(self, commit: Commit, previous: Commit | None) -> None:
        self._commits += 1
        runs = [(commit.state, commit.events)]
        if commit.closed is not None:
            runs.insert(0, (commit.closed.state, commit.closed.events))
        for state, events in runs:
            for event in events:
                self._event(commit.key, state, event)
            if state.close_time is not None and events:
                self._check_close(state, commit.state)
        if commit.kind == "Reset":
            self._check_taken_over(commit.state)
        if previous is not None:
            taken_over = self._has(commit.state) if commit.kind == "Reset" else set()
            still = {_name(owed) for owed in commit.state.owed}
            for owed in to_others(previous.state):
                if (
                    _name(owed) not in still
                    and self._lineage.name(owed.run_id, owed.initiated_event_id) not in taken_over
                ):
                    self._check_discharge(owed)

    def _event(self, key: ExecutionKey, state: ExecutionState, event: HistoryEvent) -> None:
        body = event.attributes
        if isinstance(body, e.WorkflowExecutionStarted):
            self._started(key, state, body)
        run = self._runs[state.run_id]
        chain = self._chains[run.first_run_id]
        if isinstance(body, e.StartChildWorkflowExecutionInitiated):
            run.asked[event.event_id] = _Asked(body)
        elif isinstance(body, e.StartChildWorkflowExecutionFailed):
            run.asked[body.initiated_event_id].ended = True
            if self._lineage.name(state.run_id, body.initiated_event_id) in self._child_of:
                raise Violation(f"event {event.event_id} says that there is no child, but there is")
        elif isinstance(body, e.ChildWorkflowExecutionStarted):
            self._confirmed(run.asked[body.initiated_event_id], body)
        elif isinstance(body, CHILD_ENDS):
            run.asked[body.initiated_event_id].ended = True
            self._heard(run.asked[body.initiated_event_id], body)
        else:
            self._at_child(run, chain, body)

    def _asked_before(self, run: _Run, event: HistoryEvent) -> None:
        """The same as when it was recorded; a child may have gone on since."""
        body = event.attributes
        if isinstance(body, e.StartChildWorkflowExecutionInitiated):
            run.asked[event.event_id] = _Asked(body)
        elif isinstance(body, e.ChildWorkflowExecutionStarted):
            self._confirmed(run.asked[body.initiated_event_id], body)
        elif isinstance(body, (e.StartChildWorkflowExecutionFailed, *CHILD_ENDS)):
            run.asked[body.initiated_event_id].ended = True

    def _at_child(self, run: _Run, chain: _Chain, body: EventAttributes) -> None:
        if isinstance(body, e.WorkflowExecutionCancelRequested):
            chain.asked_to_cancel = True
            if body.cause == BY_POLICY:
                self._check_policy(chain, ParentClosePolicy.REQUEST_CANCEL)
        elif isinstance(body, CLOSE_EVENTS):
            run.closed = True
            chain.close = None if getattr(body, "new_execution_run_id", "") else body
            chain.closed_at = self._commits
            if isinstance(body, e.WorkflowExecutionTerminated) and body.reason == BY_POLICY:
                self._check_policy(chain, ParentClosePolicy.TERMINATE)

    def _started(self, key: ExecutionKey, state: ExecutionState, body: e.WorkflowExecutionStarted) -> None:
        first = body.first_execution_run_id
        parent = body.parent_workflow_execution
        name = self._lineage.name(parent.run_id, body.parent_initiated_event_id) if parent is not None else None
        self._runs[state.run_id] = _Run(first, self._commits)
        known = self._chains.get(first)
        if known is not None:
            if known.parent != name:
                raise Violation(f"run {state.run_id} has parent {name}, its chain {known.parent}")
            return
        self._chains[first] = _Chain(key, name)
        if name is None:
            return
        asked = self._runs[name[0]].asked.get(name[1]) if name[0] in self._runs else None
        if asked is None or asked.body.workflow_id != key.workflow_id:
            raise Violation(f"run {state.run_id} says that it is child {name}, which nobody has asked for")
        if name in self._child_of:
            raise Violation(f"child {name} is started a second time")
        self._child_of[name] = first

    def _confirmed(self, asked: _Asked, body: e.ChildWorkflowExecutionStarted) -> None:
        asked.first_run_id = body.workflow_execution.run_id
        chain = self._chains.get(asked.first_run_id)
        if chain is None or chain.key.workflow_id != asked.body.workflow_id:
            raise Violation(f"a parent is told of child {body.workflow_execution}, which does not exist")

    def _heard(self, asked: _Asked, body: EventAttributes) -> None:
        close = self._chains[asked.first_run_id].close
        if close is None or type(close) is not _ENDS[type(body)]:
            raise Violation(f"a parent is told {type(body).__name__} of a child that ended with {close!r}")
        if getattr(close, "result", ()) != getattr(body, "result", ()):
            raise Violation(f"a parent is told another result than its child's {close!r}")

    def _check_policy(self, chain: _Chain, policy: ParentClosePolicy) -> None:
        name = chain.parent
        if name is None:
            raise Violation(f"{chain.key.workflow_id} is dealt with as a child, and is none")
        parent = self._runs[name[0]]
        asked = parent.asked[name[1]].body
        if asked.workflow_id_conflict_policy is WorkflowIDConflictPolicy.USE_EXISTING:
            raise Violation(f"child {name} is dealt with by {policy}, though it may be anybody's (CH-18)")
        if not parent.closed or asked.parent_close_policy is not policy:
            raise Violation(f"child {name} is dealt with as if its parent had closed with {policy}")

    def _check_close(self, state: ExecutionState, newest: ExecutionState) -> None:
        """Behind a run's close stands what its policies are for, unless a reset has the child now; behind a chain's,
        the news for its parent."""
        owed = [entry for entry in newest.owed if isinstance(entry, OwedChild) and entry.run_id == state.run_id]
        policies = {entry.initiated_event_id: entry.policy for entry in owed}
        taken_over = self._has(newest)
        for event_id, asked in self._runs[state.run_id].asked.items():
            policy = asked.body.parent_close_policy
            name = self._lineage.name(state.run_id, event_id)
            child = self._chains.get(asked.first_run_id)
            watched = child is not None and child.parent != name
            needed = not asked.first_run_id if policy is ParentClosePolicy.ABANDON else not watched
            if needed and not asked.ended and name not in taken_over and policies.get(event_id) is not policy:
                raise Violation(f"run {state.run_id} closed, and owes its child {event_id} no {policy}")
        chain = self._chains[state.first_run_id]
        notices = [entry for entry in newest.owed if isinstance(entry, OwedNotice) and entry.run_id == state.run_id]
        if chain.close is not None and chain.parent is not None and not notices:
            raise Violation(f"the chain of {state.run_id} ended, and does not owe its parent the news")
        if chain.close is not None:
            self._check_waiters(state, notices)

    def _check_waiters(self, state: ExecutionState, notices: Sequence[OwedNotice]) -> None:
        """Whoever knows that it waits for this chain is to hear of its end; a run that a reset made looks itself."""
        told = {self._lineage.name(notice.waiter.run_id, notice.waiter.initiated_event_id) for notice in notices}
        for run_id, run in self._runs.items():
            if run.closed or run.by_reset:
                continue
            head = self._heads[self._chains[run.first_run_id].key].state
            buffered = {
                entry.attributes.initiated_event_id
                for entry in head.buffered
                if isinstance(entry.attributes, CHILD_ENDS)
            }
            for event_id, asked in run.asked.items():
                waits = asked.first_run_id == state.first_run_id and not asked.ended and event_id not in buffered
                if waits and self._lineage.name(run_id, event_id) not in told:
                    raise Violation(f"run {run_id} waits for the chain of {state.run_id}, which owes it no news")

    def _has(self, state: ExecutionState) -> set[Name]:
        """The children of an open run."""
        return {self._lineage.name(state.run_id, event_id) for event_id in state.children}

    def _check_taken_over(self, state: ExecutionState) -> None:
        """What a run of a reset has is none of those that ended before it (WC-30)."""
        for owed in to_others(state):
            name = self._lineage.name(owed.run_id, owed.initiated_event_id)
            if isinstance(owed, OwedChild) and not owed.watched and name in self._has(state):
                raise Violation(f"run {state.run_id} has child {name}, and {owed} is still to end it")

    def _check_discharge(self, owed: object) -> None:
        if isinstance(owed, OwedChild):
            self._check_dealt_with(owed)
        elif isinstance(owed, OwedNotice) and not is_wake_up(owed.workflow_id):  # a schedule checks itself
            self._check_told(owed)

    def _check_told(self, owed: OwedNotice) -> None:
        """Who waits for the child has heard of its end, or is over; one that a reset made since then looks itself."""
        initiated = owed.waiter.initiated_event_id
        name = self._lineage.name(owed.waiter.run_id, initiated)
        head = self._heads[ExecutionKey(owed.waiter.namespace, owed.waiter.workflow_id)]
        buffered = [entry.attributes for entry in head.state.buffered]
        closed_at = self._chains[owed.first_run_id].closed_at
        for run in (self._runs[run_id] for run_id in (name[0], *self._lineage.runs_with(name))):
            heard = run.asked[initiated].ended or any(
                isinstance(body, CHILD_ENDS) and body.initiated_event_id == initiated for body in buffered
            )
            if not heard and not run.closed and run.began_at < closed_at:
                raise Violation(f"{owed} is done, but its waiter was not told")

    def _check_dealt_with(self, owed: OwedChild) -> None:
        if owed.watched:  # whoever made it: such a child is none of its parent's business (CH-18)
            return
        first = self._child_of.get(self._lineage.name(owed.run_id, owed.initiated_event_id))
        if first is None:
            return
        chain = self._chains[first]
        buffered = [entry.attributes for entry in self._heads[chain.key].state.buffered]
        done = {
            ParentClosePolicy.TERMINATE: False,
            ParentClosePolicy.REQUEST_CANCEL: chain.asked_to_cancel
            or any(isinstance(body, e.WorkflowExecutionCancelRequested) for body in buffered),
            ParentClosePolicy.ABANDON: True,
        }[owed.policy]
        if chain.close is None and not done:
            raise Violation(f"{owed} is done, but the child goes on as if nothing had been")


def _name(owed: object) -> object:
    return (
        type(owed),
        getattr(owed, "run_id", ""),
        getattr(owed, "initiated_event_id", 0),
        getattr(owed, "waiter", None),
    )
