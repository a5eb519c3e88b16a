"""What must hold between workflows, checked at every write: what one asks of another gets there once, in order, and
whoever is told that it did can rely on it. Written from the design (sections 3, 7 and 9), not from the product."""

from collections import defaultdict
from dataclasses import dataclass

from stepwell.api import events as e
from stepwell.api.events import HistoryEvent

from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.state import ExecutionState, OwedSignal
from tests.simulation.violation import Violation

_DISCHARGES = ("Discharge", "ExternalDelivered")

Name = tuple[str, int]
"""Run and initiated event id."""


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


class CrossingRules:
    """Fed with every commit. ``heads`` is the model's: newest commit by key."""

    def __init__(self, heads: dict[ExecutionKey, Commit]) -> None:
        self._heads = heads
        self._commits = 0
        self._sent: dict[Name, _Sent] = {}
        self._unanswered: dict[str, set[Name]] = defaultdict(set)
        self._recorded: set[Name] = set()
        self._closed_until: dict[ExecutionKey, int] = {}
        self._last_from: dict[tuple[ExecutionKey, str], int] = {}

    def add(self, commit: Commit, previous: Commit | None) -> None:
        """Before ``commit`` is the head. Raises :class:`Violation`."""
        self._commits += 1
        if previous is None or previous.state.close_time is not None or commit.closed is not None:
            self._closed_until[commit.key] = self._commits
        runs = [(commit.state, commit.events)]
        if commit.closed is not None:
            runs.insert(0, (commit.closed.state, commit.closed.events))
        for state, events in runs:
            for event in events:
                self._event(commit.key, state, event)
            if state.close_time is not None and events:
                self._check_close(state, commit.state)
        if previous is not None:
            self._check_owed(previous.state, commit)

    def _event(self, key: ExecutionKey, state: ExecutionState, event: HistoryEvent) -> None:
        body = event.attributes
        match body:
            case e.SignalExternalWorkflowExecutionInitiated(workflow_execution=target):
                other = ExecutionKey(body.namespace or key.namespace, target.workflow_id)
                self._sent[state.run_id, event.event_id] = _Sent(
                    key, other, target.run_id, body.child_workflow_only, self._commits
                )
                self._unanswered[state.run_id].add((state.run_id, event.event_id))
            case e.WorkflowExecutionSignaled(external_workflow_execution=sender) if sender is not None:
                self._arrived(key, sender.run_id, event, body)
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
        self._unanswered[run_id].discard((run_id, initiated))
        return run_id, initiated

    def _arrived(self, key: ExecutionKey, run_id: str, event: HistoryEvent, body: e.WorkflowExecutionSignaled) -> None:
        initiated = int(body.request_id.rpartition(":")[2])
        name = (run_id, initiated)
        sent = self._sent.get(name)
        if sent is None or sent.target != key:
            raise Violation(f"event {event.event_id} is a signal {name} that nobody sent here")
        if name in self._recorded:
            raise Violation(f"event {event.event_id} is signal {name} a second time")
        self._recorded.add(name)
        if self._last_from.get((key, run_id), 0) > initiated:
            raise Violation(f"event {event.event_id} is signal {name}, which a later one has overtaken")
        self._last_from[key, run_id] = initiated

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
        """What the run had not heard of is owed behind its close."""
        owed = {(entry.run_id, entry.initiated_event_id) for entry in newest.owed}
        for name in self._unanswered.pop(state.run_id, ()):
            if name not in owed:
                raise Violation(f"run {state.run_id} closed with signal {name} unanswered, and does not owe it")

    def _check_owed(self, before: ExecutionState, commit: Commit) -> None:
        """A debt goes when it was paid, or cannot be paid any more; whatever else happens, it stays."""
        still = {(entry.run_id, entry.initiated_event_id) for entry in commit.state.owed}
        for entry in before.owed:
            name = (entry.run_id, entry.initiated_event_id)
            if name in still:
                continue
            if commit.kind not in _DISCHARGES:
                raise Violation(f"{entry} is owed no more, though it was neither delivered nor refused")
            if isinstance(entry, OwedSignal) and not self._is_there(name):
                self._check_refusal(name)
