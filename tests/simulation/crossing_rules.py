"""What must hold between workflows, checked at every write: what one asks of another gets there once, in order, and
whoever is told that it did can rely on it. Written from the design (sections 3, 7 and 9), not from the product."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from stepwell.api import events as e
from stepwell.api.events import HistoryEvent

from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.state import ExecutionState, OwedArchive, OwedDeletion, OwedSignal, OwedToOthers
from tests.simulation.lineage import Lineage, Name
from tests.simulation.violation import Violation

_DISCHARGES = ("Discharge", "ExternalDelivered")
_ANSWERS = (e.ExternalWorkflowExecutionSignaled, e.SignalExternalWorkflowExecutionFailed)


@dataclass
class _Sent:
    source: ExecutionKey
    target: ExecutionKey
    run_id: str
    """Of the target; empty for any."""
    of_chain: bool
    """The run is the first of a child's chain, any run of which is meant."""
    at: int
    """Commits that there were before."""


@dataclass
class _Arrived:
    first_run_id: str
    """Of the chain that took it in."""
    runs: set[str] = field(default_factory=set)
    """All that have it: those that resets made have it again."""


class CrossingRules:
    """Fed with every commit. ``heads`` is the model's: newest commit by key."""

    def __init__(self, heads: dict[ExecutionKey, Commit], lineage: Lineage) -> None:
        self._heads = heads
        self._lineage = lineage
        self._commits = 0
        self._sent: dict[Name, _Sent] = {}
        self._unanswered: dict[str, set[Name]] = defaultdict(set)
        self._recorded: dict[Name, _Arrived] = {}
        self._closed_until: dict[ExecutionKey, int] = {}
        self._last_from: dict[str, dict[str, int]] = {}
        """By run and sender; a run that follows another goes on from there, one of a reset from what it took over."""
        self._newest: dict[ExecutionKey, str] = {}

    def begin(self, key: ExecutionKey, state: ExecutionState, prefix: Sequence[HistoryEvent]) -> None:
        """Before the commit of a reset: what its run has from the runs before it."""
        self._last_from[state.run_id] = {}
        for event in prefix:
            body = event.attributes
            if isinstance(body, e.SignalExternalWorkflowExecutionInitiated):
                self._unanswered[state.run_id].add(self._lineage.name(state.run_id, event.event_id))
            elif isinstance(body, _ANSWERS):
                self._answered(state.run_id, body.initiated_event_id)
            elif isinstance(body, e.WorkflowExecutionSignaled) and body.external_workflow_execution is not None:
                self._arrived(key, state, event, body, by_reset=True)

    def add(self, commit: Commit, previous: Commit | None) -> None:
        """Before ``commit`` is the head. Raises :class:`Violation`."""
        self._commits += 1
        if previous is None or previous.state.close_time is not None or commit.closed is not None:
            self._closed_until[commit.key] = self._commits
        runs = [(commit.state, commit.events)]
        if commit.closed is not None:
            runs.insert(0, (commit.closed.state, commit.closed.events))
        for state, events in runs:
            if state.run_id not in self._last_from:
                self._last_from[state.run_id] = dict(self._last_from.get(self._newest.get(commit.key, ""), {}))
            self._newest[commit.key] = state.run_id
            by_reset = commit.kind == "Reset" and state is commit.state
            for event in events:
                self._event(commit.key, state, event, by_reset=by_reset)
            if state.close_time is not None and events:
                self._check_close(state, commit.state)
        if previous is not None:
            self._check_owed(previous.state, commit)

    def _event(self, key: ExecutionKey, state: ExecutionState, event: HistoryEvent, *, by_reset: bool) -> None:
        body = event.attributes
        match body:
            case e.SignalExternalWorkflowExecutionInitiated(workflow_execution=target):
                other = ExecutionKey(body.namespace or key.namespace, target.workflow_id)
                self._sent[state.run_id, event.event_id] = _Sent(
                    key, other, target.run_id, body.child_workflow_only, self._commits
                )
                self._unanswered[state.run_id].add((state.run_id, event.event_id))
            case e.WorkflowExecutionSignaled(external_workflow_execution=sender) if sender is not None:
                self._arrived(key, state, event, body, by_reset=by_reset)
            case e.ExternalWorkflowExecutionSignaled(initiated_event_id=initiated):
                name = self._answered(state.run_id, initiated)
                if not self._is_there(name):
                    raise Violation(f"event {event.event_id} says that signal {name} was delivered, but it was not")
            case e.SignalExternalWorkflowExecutionFailed(initiated_event_id=initiated):
                name = self._answered(state.run_id, initiated)
                if self._is_there(name):
                    raise Violation(f"event {event.event_id} says that signal {name} failed, but it was delivered")
                self._check_refusal(name)

    def _answered(self, run_id: str, initiated: int) -> Name:
        name = self._lineage.name(run_id, initiated)
        self._unanswered[run_id].discard(name)
        return name

    def _arrived(
        self,
        key: ExecutionKey,
        state: ExecutionState,
        event: HistoryEvent,
        body: e.WorkflowExecutionSignaled,
        *,
        by_reset: bool,
    ) -> None:
        """A reset takes over what runs of its chain had; never what strangers had, nor anything twice."""
        sender, _, initiated = body.request_id.rpartition(":")
        name = (sender, int(initiated))
        sent = self._sent.get(name)
        if sent is None or sent.target != key:
            raise Violation(f"event {event.event_id} is a signal {name} that nobody sent here")
        arrived = self._recorded.setdefault(name, _Arrived(state.first_run_id))
        if arrived.first_run_id != state.first_run_id:
            raise Violation(f"event {event.event_id} is signal {name}, which another chain of runs has")
        if state.run_id in arrived.runs or (arrived.runs and not by_reset):
            raise Violation(f"event {event.event_id} is signal {name} a second time")
        arrived.runs.add(state.run_id)
        last_from = self._last_from[state.run_id]
        if last_from.get(sender, 0) > name[1]:
            raise Violation(f"event {event.event_id} is signal {name}, which a later one has overtaken")
        last_from[sender] = name[1]

    def _is_there(self, name: Name) -> bool:
        """In a history, or in the buffer of its target."""
        if name in self._recorded:
            return True
        sent = self._sent[name]
        head = self._heads.get(sent.target)
        request_id = f"{name[0]}:{name[1]}"
        return head is not None and any(
            isinstance(entry.attributes, e.WorkflowExecutionSignaled) and entry.attributes.request_id == request_id
            for entry in head.state.buffered
        )

    def _check_refusal(self, name: Name) -> None:
        """It was not delivered: then there was a moment since it was sent at which nobody could take it."""
        sent = self._sent[name]
        head = self._heads.get(sent.target)
        if sent.target == sent.source or head is None or head.state.close_time is not None:
            return
        meant = head.state.first_run_id if sent.of_chain else head.run_id
        if sent.run_id not in ("", meant) or self._closed_until.get(sent.target, 0) >= sent.at:
            return
        raise Violation(f"signal {name} to {sent.target.workflow_id} was given up, though its target was open")

    def _check_close(self, state: ExecutionState, newest: ExecutionState) -> None:
        """What the run had not heard of is owed behind its close, or asked by the run that goes on for it."""
        owed = {self._name(entry) for entry in to_others(newest)} | self._asked_by(newest)
        for name in self._unanswered.pop(state.run_id, ()):
            if name not in owed:
                raise Violation(f"run {state.run_id} closed with signal {name} unanswered, and does not owe it")

    def _check_owed(self, before: ExecutionState, commit: Commit) -> None:
        """A debt goes when it was paid, cannot be paid any more, or is a reset's; whatever else happens, it stays."""
        still = {_identity(entry) for entry in to_others(commit.state)}
        taken_over = self._asked_by(commit.state) if commit.kind == "Reset" else set()
        for entry in to_others(before):
            if _identity(entry) in still or self._name(entry) in taken_over:
                continue
            if commit.kind not in _DISCHARGES:
                raise Violation(f"{entry} is owed no more, though it was neither delivered nor refused")
            if isinstance(entry, OwedSignal) and not self._is_there(self._name(entry)):
                self._check_refusal(self._name(entry))

    def _name(self, owed: OwedToOthers) -> Name:
        return self._lineage.name(owed.run_id, owed.initiated_event_id)

    def _asked_by(self, state: ExecutionState) -> set[Name]:
        """What an open run has asked and not heard of, children included."""
        asked = (*state.children, *state.external_signals, *state.external_cancels)
        return {self._lineage.name(state.run_id, event_id) for event_id in asked}


def to_others(state: ExecutionState) -> list[OwedToOthers]:
    """Without deletions and archives of runs, which nobody waits for."""
    return [entry for entry in state.owed if not isinstance(entry, OwedDeletion | OwedArchive)]


def _identity(owed: OwedToOthers) -> tuple[str, int]:
    return owed.run_id, owed.initiated_event_id
