"""What the simulation knows to be true: every commit, activity item and armed deadline that is durable, and the checks
of the engine's invariants made at each of these writes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec
from stepwell.api import events as e
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.events import HistoryEvent

from stepwell_server.common.spaces import has_activities
from stepwell_server.history.activity_item import FINISHED, ActivityItem
from stepwell_server.history.apply import apply, opened
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.state import ExecutionState, OwedDeletion, PendingActivity
from tests.simulation.child_rules import ChildRules
from tests.simulation.crossing_rules import CrossingRules
from tests.simulation.history_rules import HistoryRules, Violation
from tests.simulation.lineage import Lineage
from tests.simulation.needs import earliest_need, item_need
from tests.simulation.standalone_rules import StandaloneRules
from tests.simulation.update_rules import StandingUpdates

_GRAIN = timedelta(milliseconds=1)
"""Armed deadlines are kept to the millisecond."""

_MESSAGES = (e.WorkflowExecutionSignaled,)
"""What is for the workflow id rather than for the run, and may go on to the next one."""

_encode = msgspec.json.Encoder().encode

_TRANSIENT_STATE = (
    "seq",
    "first_seq",
    "prefix_tail_seq",
    "numbered_seq",
    "buffered",
    "next_buffer_index",
    "armed",
    "request_ids",
    "completion",
    "last_worker_key",
    "workflow_task",
    "activities",
    "children",
    "external_signals",
    "external_cancels",
    "updates",
    "ended_updates",
    "owed",
    "waiters",
)
_TRANSIENT_ACTIVITY = (
    "lease",
    "attempt",
    "next_attempt_time",
    "last_failure",
    "last_worker_identity",
    "heartbeat_details",
    "next_dispatch",
    "dispatches",
    "scheduled_seq",
    "detached",
)
_PENDING = ("children", "external_signals", "external_cancels")
_TRANSIENT_PENDING = ("initiated_seq", "next_dispatch", "dispatches")


@dataclass
class RunRecord:
    """One run as its commits tell it."""

    key: ExecutionKey
    run_id: str
    events: list[HistoryEvent] = field(default_factory=list)
    encoded: list[bytes] = field(default_factory=list)
    rules: HistoryRules | StandaloneRules = field(default_factory=HistoryRules)
    folded: ExecutionState | None = None
    began: int = 0
    ended: int = 0
    """Among all commits that there were of any workflow, in their order; 0: it has not ended."""
    was_reset: bool = False
    """It goes on from the middle of another one."""

    @property
    def close_event(self) -> HistoryEvent | None:
        return self.events[-1] if self.rules.closed else None


class Model:
    """Fed by the port wrappers right after each durable write. Raises :class:`Violation`."""

    def __init__(self) -> None:
        self.heads: dict[ExecutionKey, Commit] = {}
        self.deleted: set[str] = set()
        """Runs that count as deleted: in the end nothing is found of them."""
        self.runs: dict[tuple[ExecutionKey, str], RunRecord] = {}
        self.items: dict[tuple[ExecutionKey, str, int], ActivityItem] = {}
        self.armed: dict[ExecutionKey, list[datetime]] = {}
        self.lineage = Lineage()
        self.crossing = CrossingRules(self.heads, self.lineage)
        self.updates = StandingUpdates()
        self.children = ChildRules(self.heads, self.lineage)
        self._prefixes: dict[str, dict[int, Sequence[HistoryEvent]]] = {}
        self.commits = 0
        self.seen: Counter[str] = Counter()

    # --- deadlines ---

    def arm(self, key: ExecutionKey, fire_at: datetime) -> None:
        rows = self.armed.setdefault(key, [])
        if fire_at not in rows:
            rows.append(fire_at)

    def fired(self, key: ExecutionKey, fire_at: datetime, now: datetime) -> None:
        rows = self.armed.get(key, [])
        rows[:] = [row for row in rows if row != fire_at]
        head = self.heads.get(key)
        if head is not None:
            self._check_armed(head.state, now, f"the deadline {fire_at} was taken off")

    def _check_armed(self, state: ExecutionState, now: datetime, what: str) -> None:
        key = ExecutionKey(state.namespace, state.workflow_id)
        with_item = [event_id for event_id in state.activities if (key, state.run_id, event_id) in self.items]
        need = earliest_need(state, now, with_item)
        if need is None:
            return
        rows = self.armed.get(key, [])
        if not rows or min(rows) > need + _GRAIN:
            raise Violation(
                f"{state.workflow_id} seq {state.seq}: {what}, but work is due at {need} and the earliest armed "
                f"deadline is {min(rows) if rows else None} (invariant 3)"
            )

    # --- commits ---

    def append(self, commit: Commit, now: datetime) -> None:
        key, previous = commit.key, self.heads.get(commit.key)
        head_seq = previous.seq if previous is not None else 0
        where = f"{commit.workflow_id} commit {commit.seq} ({commit.kind})"
        if commit.seq != head_seq + 1:
            raise Violation(f"{where}: comes after commit {head_seq} (invariant 1)")
        self._check_runs(commit, previous, where)
        if previous is not None and previous.state.status is WorkflowExecutionStatus.RUNNING:
            check_buffer(previous.state, commit, where)
        try:
            if commit.state.prefix_tail_seq and (key, commit.run_id) not in self.runs:
                prefix = self._prefix_of(commit.run_id)
                self.lineage.begin(commit.run_id, prefix)
                self.crossing.begin(key, commit.state, prefix)
                self.children.begin(commit.state, prefix)
                self.updates.begin(commit.run_id, prefix)
            self.crossing.add(commit, previous)
            self.updates.add(commit, previous)
            self.children.add(commit, previous)
        except Violation as violation:
            raise Violation(f"{where}: {violation}") from None
        self.heads[key] = commit
        self.deleted.update(owed.run_id for owed in commit.state.owed if isinstance(owed, OwedDeletion))
        self.commits += 1
        self.seen[f"commit {commit.kind}"] += 1
        closed = commit.closed
        try:
            if closed is not None:
                self.seen["commit of two runs"] += 1
                self._record_events(commit, closed.state, closed.events)
                if not self.runs[key, closed.run_id].rules.closed:
                    raise Violation(f"run {closed.run_id} is followed by {commit.run_id}, but is open")
            self._record_events(commit, commit.state, commit.events)
        except Violation as violation:
            raise Violation(f"{where}: {violation}") from None
        self._strike(commit)
        self._check_authority(commit.state, where)
        self._check_armed(commit.state, now, f"commit of kind {commit.kind}")

    def _strike(self, commit: Commit) -> None:
        """What a run had armed may go with its close, unless it owes something; a next run that is opened with it has
        what it armed itself."""
        ended = commit.closed.state if commit.closed is not None else commit.state
        if ended.close_time is None or (commit.closed is None and commit.state.owed):
            return
        if commit.closed is not None and ended.armed == commit.state.armed:
            return
        rows = self.armed.get(commit.key, [])
        rows[:] = [row for row in rows if row != ended.armed]

    def _check_runs(self, commit: Commit, previous: Commit | None, where: str) -> None:
        closed = commit.closed
        if closed is not None and (previous is None or previous.run_id != closed.run_id):
            raise Violation(f"{where}: ends run {closed.run_id}, which is not the newest")
        if previous is None or previous.run_id == commit.run_id:
            return
        record = self.runs[commit.key, previous.run_id]
        if record.rules.closed == (closed is not None):
            raise Violation(
                f"{where}: opens run {commit.run_id} while run {previous.run_id} is open"
                if closed is None
                else f"{where}: ends run {previous.run_id} a second time"
            )
        if (commit.key, commit.run_id) in self.runs:
            raise Violation(f"{where}: goes back to run {commit.run_id}")

    def put_prefix(self, run_id: str, seq: int, events: Sequence[HistoryEvent]) -> None:
        """A part of the history that a reset run begins with, should it come to be."""
        self._prefixes.setdefault(run_id, {})[seq] = events

    def _prefix_of(self, run_id: str) -> list[HistoryEvent]:
        parts = self._prefixes[run_id]
        return [event for seq in sorted(parts) for event in parts[seq]]

    def _begin_with_prefix(self, commit: Commit, record: RunRecord) -> None:
        record.was_reset = True
        for event in self._prefix_of(record.run_id):
            record.rules.add(event)
            record.events.append(event)
            record.encoded.append(_encode(event))
            if isinstance(event.attributes, e.WorkflowExecutionStarted):
                record.folded = opened(event, event.attributes, commit.namespace, record.run_id)
            elif record.folded is not None:
                apply(record.folded, event)

    def _begin(self, commit: Commit, state: ExecutionState) -> RunRecord:
        record = self.runs[commit.key, state.run_id] = RunRecord(commit.key, state.run_id, began=self.commits)
        if has_activities(commit.namespace):
            record.rules = StandaloneRules()
        if state.prefix_tail_seq:
            self._begin_with_prefix(commit, record)
        return record

    def _record_events(self, commit: Commit, state: ExecutionState, events: Sequence[HistoryEvent]) -> None:
        """What the commit makes of one run."""
        record = self.runs.get((commit.key, state.run_id)) or self._begin(commit, state)
        for event in events:
            record.rules.add(event)
            self.seen[event.event_type] += 1
            record.events.append(event)
            record.encoded.append(_encode(event))
            if isinstance(event.attributes, e.WorkflowExecutionStarted):
                record.folded = opened(event, event.attributes, commit.namespace)
            elif record.folded is not None:
                apply(record.folded, event)
        record.rules.end_of_commit(state.workflow_task is not None)
        if record.rules.closed and not record.ended:
            record.ended = self.commits
        closed = state.status is not WorkflowExecutionStatus.RUNNING
        if closed != record.rules.closed:
            raise Violation(f"status {state.status}, but the history is {'closed' if record.rules.closed else 'open'}")
        if record.folded is None:
            raise Violation("the first commit of a run has no events")
        if state.deleted:
            return  # what is left of it does not say what its history did
        difference = state_difference(record.folded, state)
        if difference:
            raise Violation(f"the state is not the fold of its history: {difference} (invariant 2)")

    def _check_authority(self, state: ExecutionState, where: str) -> None:
        key = ExecutionKey(state.namespace, state.workflow_id)
        for activity in state.activities.values():
            if activity.lease is not None and (key, state.run_id, activity.scheduled_event_id) in self.items:
                raise Violation(
                    f"{where}: activity {activity.scheduled_event_id} is log-leased and has an item (invariant 4)"
                )

    # --- activity items ---

    def put_activity(self, item: ActivityItem, now: datetime) -> None:
        key = ExecutionKey(item.namespace, item.workflow_id)
        where = f"{item.workflow_id} item {item.scheduled_event_id} version {item.version}"
        previous = self.items.get((key, item.run_id, item.scheduled_event_id))
        if item.version != (previous.version if previous is not None else 0) + 1:
            raise Violation(f"{where}: was put over version {previous.version if previous is not None else 0}")
        if previous is not None and previous.state in FINISHED:
            raise Violation(f"{where}: changes a finished item {previous.state} to {item.state} (invariant 4)")
        again = previous is not None and item.stamp > previous.stamp
        if previous is not None and item.attempt < previous.attempt and item.state not in FINISHED and not again:
            raise Violation(f"{where}: goes back from attempt {previous.attempt} to {item.attempt}")
        self.items[key, item.run_id, item.scheduled_event_id] = item
        head = self.heads.get(key)
        if head is None or head.run_id != item.run_id:
            return
        pending = head.state.activities.get(item.scheduled_event_id)
        if pending is None:
            return
        if pending.lease is not None:
            raise Violation(f"{where}: the log holds this attempt (invariant 4)")
        need = item_need(item)
        if need is not None and not any(row <= need + _GRAIN for row in self.armed.get(key, [])):
            raise Violation(f"{where}: is due at {need}, but nothing is armed for it (invariant 3)")

    # --- readers ---

    def check_read(self, key: ExecutionKey, run_id: str, events: Sequence[HistoryEvent]) -> None:
        """Every reader sees the same events under the same numbers (invariant 9)."""
        record = self.runs.get((key, run_id))
        for event in events:
            known = record.encoded[event.event_id - 1] if record and event.event_id <= len(record.encoded) else None
            if known != _encode(event):
                raise Violation(
                    f"{key.workflow_id} run {run_id}: a reader was shown event {event.event_id} as {_encode(event)!r}, "
                    f"the history has {known!r} (invariant 9)"
                )

    def open_runs(self) -> list[RunRecord]:
        return [record for record in self.runs.values() if not record.rules.closed]


def check_buffer(before: ExecutionState, commit: Commit, where: str) -> None:
    """A buffered event stays buffered or gets its number; it never vanishes (invariant 5, rules 5 and 6).

    When its run ends and is followed in the same commit, a message may get its number in the next run instead, in one
    of the two; the end of an activity may go with its run.
    """
    if not before.buffered:
        return
    still = {entry.index for entry in commit.state.buffered} if commit.run_id == before.run_id else set()
    placed: list[bytes] = [_essence(event.attributes) for event in commit.events_of(before.run_id)]
    if commit.closed is not None:
        placed += [_essence(event.attributes) for event in commit.events if isinstance(event.attributes, _MESSAGES)]
    for entry in before.buffered:
        if entry.index in still:
            continue
        essence = _essence(entry.attributes)
        if essence in placed:
            placed.remove(essence)
        elif commit.closed is None or not hasattr(entry.attributes, "scheduled_event_id"):
            raise Violation(f"{where}: buffered {type(entry.attributes).__name__} {entry.index} was lost (invariant 5)")


def _essence(attributes: Any) -> bytes:
    if hasattr(attributes, "started_event_id"):
        attributes = msgspec.structs.replace(attributes, started_event_id=0)
    return _encode(attributes)


def state_difference(folded: ExecutionState, state: ExecutionState) -> str:
    """What of the state the history does not account for, less what is transient; empty when all is well."""
    for name in ExecutionState.__struct_fields__:
        if name not in _TRANSIENT_STATE and getattr(folded, name) != getattr(state, name):
            return f"{name} is {getattr(state, name)!r}, the history says {getattr(folded, name)!r}"
    if folded.activities.keys() != state.activities.keys():
        return f"pending activities are {sorted(state.activities)}, the history says {sorted(folded.activities)}"
    for key, activity in state.activities.items():
        for name in PendingActivity.__struct_fields__:
            if name not in _TRANSIENT_ACTIVITY and getattr(folded.activities[key], name) != getattr(activity, name):
                return f"activity {key}: {name} differs"
    difference = _pending_difference(folded, state) or _update_difference(folded, state)
    if difference:
        return difference
    task, expected = state.workflow_task, folded.workflow_task
    if task is not None and not task.scheduled_event_id and task.attempt == 1:
        task = None  # there for updates alone: the history does not know
    if (task.scheduled_event_id if task is not None else None) != (
        expected.scheduled_event_id if expected is not None else None
    ):
        return f"the workflow task is {task!r}, the history says {expected!r}"
    return ""


def _pending_difference(folded: ExecutionState, state: ExecutionState) -> str:
    for name in _PENDING:
        ours, theirs = getattr(state, name), getattr(folded, name)
        if ours.keys() != theirs.keys():
            return f"{name} are {sorted(ours)}, the history says {sorted(theirs)}"
        for key, one in ours.items():
            for field_name in type(one).__struct_fields__:
                if field_name not in _TRANSIENT_PENDING and getattr(one, field_name) != getattr(
                    theirs[key], field_name
                ):
                    return f"{name} {key}: {field_name} differs"
    return ""


def _update_difference(folded: ExecutionState, state: ExecutionState) -> str:
    """An update that is only admitted has left no event."""
    ours, theirs = (
        {
            update.update_id: (update.admitted_event_id, update.accepted_event_id)
            for update in one.updates.values()
            if update.admitted_event_id or update.accepted_event_id
        }
        for one in (state, folded)
    )
    if ours != theirs:
        return f"updates are {ours}, the history says {theirs}"
    ended, expected = (
        [(update.update_id, update.completed_event_id) for update in one.ended_updates] for one in (state, folded)
    )
    return f"ended updates are {ended}, the history says {expected}" if ended != expected else ""
