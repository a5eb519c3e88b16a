"""What one transaction writes: any number of waiting writes of any kind, as a handful of multi-row statements.

Conditions (put-if-absent, item versions) are checked by counting the changed rows, the one that a commit follows the
newest by what the only writer knows of its log. If one was not met, ``Unmet`` is
raised, the caller rolls back and writes one by one, which tells which write it was. That is rare: a conflict means
that two writers worked on one workflow at once.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
from stepwell.api import limits

from ...common.control import MARK
from ...history import codec
from ...history.activity_item import ActivityItem
from ...history.commit import Commit, ExecutionKey
from ...history.ports import Conflict, SequenceGap, StateTooLarge, VersionConflict
from ...history.tasks import RecordVisibility
from .found_by import FoundBy, found_by, visibility_row
from .plan import Plan, Row
from .values import execute_rows, from_run, select_rows, to_run, to_us

_CACHED_LOGS = 20_000
"""Workflow ids whose numbers are kept at hand, about 8 MB; any other is looked up together with those of its batch."""

_UPSERT_LOGS = "INSERT INTO logs (id, namespace, workflow_id, owes)"
_UPSERT_LOGS_TAIL = "ON CONFLICT (id) DO UPDATE SET owes = excluded.owes"
_INSERT_COMMITS = "INSERT OR IGNORE INTO commits (log, seq, events, head)"
_INSERT_ITEMS = "INSERT OR IGNORE INTO activity_items (log, run, scheduled_event_id, version, item)"
_UPDATE_ITEMS = "UPDATE activity_items SET version = new.column4, item = new.column5 FROM ("
_UPDATE_ITEMS_TAIL = (
    ") AS new WHERE log = new.column1 AND run = new.column2 AND scheduled_event_id = new.column3 "
    "AND version = new.column4 - 1"
)
_DROP_FIRED = "DELETE FROM armed WHERE (fire_us, log) IN (SELECT column1, column2 FROM ("
_DROP_WOKEN = "DELETE FROM wake_ups WHERE (fire_us, namespace, workflow_id) IN (SELECT column1, column2, column3 FROM ("
_ARM_WAKE_UPS = "INSERT OR IGNORE INTO wake_ups (fire_us, namespace, workflow_id)"
_UPSERT_RUNS = (
    "INSERT INTO runs (id, log, first_seq, run, namespace, status, workflow_type, task_queue, start_us, close_us, "
    "history_length, history_size, first_run, attributes, execution_us, parent_id, parent_run, root_id, root_run, "
    "transitions)"
)
_UPSERT_RUNS_TAIL = (
    "ON CONFLICT (id) DO UPDATE SET status = excluded.status, workflow_type = excluded.workflow_type, "
    "task_queue = excluded.task_queue, start_us = excluded.start_us, close_us = excluded.close_us, "
    "history_length = excluded.history_length, history_size = excluded.history_size, "
    "first_run = excluded.first_run, attributes = excluded.attributes, execution_us = excluded.execution_us, "
    "parent_id = excluded.parent_id, parent_run = excluded.parent_run, root_id = excluded.root_id, "
    "root_run = excluded.root_run, transitions = excluded.transitions"
)
_UPDATE_OTHER_RUNS = (
    "UPDATE runs SET status = new.column3, close_us = new.column4, history_length = new.column5, "
    "history_size = new.column6, attributes = new.column7, transitions = new.column8 FROM ("
)
_UPDATE_OTHER_RUNS_TAIL = ") AS new WHERE runs.log = new.column1 AND runs.run = new.column2"
_NO_VISIBILITY: Row = (None,) * 15
_DROP_FOUND_BY = "DELETE FROM found_by WHERE number IN (SELECT column1 FROM ("
_INSERT_FOUND_BY = "INSERT OR REPLACE INTO found_by (namespace, name, kind, value, start_us, run, number)"


_NOTHING = hash(())


class Unmet(Exception):
    """Some write's condition did not hold."""


class AppendCommit(msgspec.Struct, frozen=True, gc=False):
    """A commit, encoded by its caller, with what is projected from it."""

    key: ExecutionKey
    seq: int
    run_id: str
    head: bytes
    events: bytes | None
    arm_us: int | None
    struck_us: int | None
    """What a closed run had armed that owes nothing. Nothing is due any more, so it need not fire first to be gone."""
    owes: bool | None
    visibility: Row | None
    found_by: FoundBy
    other_runs: list[Row]
    """The visibility of the run that the commit closed before it opened another."""
    others_found_by: dict[str, tuple[int, FoundBy]]
    """By run id, with the run's start."""
    size: int
    """Of the state, as it is before compression."""

    @classmethod
    def of(cls, commit: Commit, arm: datetime | None) -> "AppendCommit":
        """Raises StateTooLarge for an open run's."""
        head, events, size = codec.encode_sized_commit(commit)
        if size > limits.MAX_STATE_BYTES and commit.state.close_time is None:
            raise StateTooLarge(size, limits.MAX_STATE_BYTES)
        visibility: Row | None = None
        own: FoundBy = ()
        other_runs: list[Row] = []
        others: dict[str, tuple[int, FoundBy]] = {}
        for task in commit.tasks:
            if type(task) is RecordVisibility:
                row = visibility_row(commit, task)
                rows = found_by(task.search_attributes) if task.search_attributes else ()
                if task.run_id == commit.run_id:
                    visibility, own = row, rows
                else:
                    other_runs.append((to_run(task.run_id), row[0], row[4], row[5], row[6], row[8], row[-1]))
                    others[task.run_id] = (to_us(task.start_time), rows)
        return cls(
            commit.key,
            commit.seq,
            commit.run_id,
            head,
            events or None,
            None if arm is None else to_us(arm),
            None if (struck := _struck(commit)) is None else to_us(struck),
            commit.owes,
            visibility,
            own,
            other_runs,
            others,
            size,
        )


class PutItem(msgspec.Struct, frozen=True, gc=False):
    key: ExecutionKey
    run_id: str
    scheduled_event_id: int
    version: int
    item: bytes
    arm_us: int | None

    @classmethod
    def of(cls, item: ActivityItem, arm: datetime | None) -> "PutItem":
        return cls(
            ExecutionKey(item.namespace, item.workflow_id),
            item.run_id,
            item.scheduled_event_id,
            item.version,
            codec.encode_activity_item(item),
            None if arm is None else to_us(arm),
        )


class Arm(msgspec.Struct, frozen=True, gc=False):
    key: ExecutionKey
    arm_us: int


class DropFired(msgspec.Struct, frozen=True, gc=False):
    """Deadlines that were handled."""

    rows: Sequence[tuple[int, ExecutionKey]]


Write = AppendCommit | PutItem | Arm | DropFired


class _Log(msgspec.Struct, gc=False):
    """What is known of a workflow id: its number, its newest commit, and its newest run."""

    number: int
    last_seq: int = 0
    run_number: int = 0
    run_id: str = ""
    first_seq: int = 0
    found_by: int | None = None
    """Hash of the newest run's rows there; None when it is not known."""


class WriteTables:
    """The tables from the writer's side. Used by one thread at a time, the only writer."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._logs: dict[ExecutionKey, _Log] = {}
        self._next_log: int = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM logs").fetchone()[0]
        self._next_run: int = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM runs").fetchone()[0]

    def plan(self, writes: Sequence[Write]) -> Plan:
        """What is to be written. Whatever fails from here on, the caller calls :meth:`forget`."""
        plan = Plan()
        self._look_up(writes, plan)
        for write in writes:
            if isinstance(write, AppendCommit):
                self._append(write, plan)
            elif isinstance(write, PutItem):
                number = self._logs[write.key].number
                row = (number, to_run(write.run_id), write.scheduled_event_id, write.version, write.item)
                (plan.new_items if write.version == 1 else plan.changed_items).append(row)
                if write.arm_us is not None:
                    plan.armed.append((write.arm_us, number))
            elif isinstance(write, Arm):
                if write.key.workflow_id[:1] == MARK:
                    plan.wake_ups.append((write.arm_us, *write.key))
                else:
                    plan.armed.append((write.arm_us, self._logs[write.key].number))
            else:
                plan.woken += [(fire_us, *key) for fire_us, key in write.rows if key.workflow_id[:1] == MARK]
                plan.fired += [(fire_us, self._logs[key].number) for fire_us, key in write.rows if key in self._logs]
        if len(self._logs) > _CACHED_LOGS:
            for key in list(self._logs)[: _CACHED_LOGS // 10]:
                del self._logs[key]
        return plan

    def forget(self, keys: Iterable[ExecutionKey] | None = None) -> None:
        """Drops what is known of these ids, or of all: after a rollback, or when they were deleted."""
        if keys is None:
            self._logs.clear()
            return
        for key in keys:
            self._logs.pop(key, None)

    def conflict(self, write: Write) -> Exception:
        """What stands where ``write`` wanted to write."""
        if isinstance(write, AppendCommit):
            row = self._connection.execute(
                "SELECT head, events FROM commits WHERE seq = ? AND log = "
                "(SELECT id FROM logs WHERE namespace = ? AND workflow_id = ?)",
                (write.seq, *write.key),
            ).fetchone()
            return SequenceGap(write.seq) if row is None else Conflict(codec.decode_commit(*row))
        assert isinstance(write, PutItem)
        row = self._connection.execute(
            "SELECT item FROM activity_items WHERE run = ? AND scheduled_event_id = ? AND log = "
            "(SELECT id FROM logs WHERE namespace = ? AND workflow_id = ?)",
            (to_run(write.run_id), write.scheduled_event_id, *write.key),
        ).fetchone()
        return VersionConflict(None if row is None else codec.decode_activity_item(row[0]))

    def _look_up(self, writes: Sequence[Write], plan: Plan) -> None:
        """Makes every key of the batch known, with a new number (and a row to insert) where it is new."""
        logs = self._logs
        missing: dict[ExecutionKey, bool] = {}
        for write in writes:
            if isinstance(write, DropFired):
                for _, key in write.rows:
                    if key not in logs and key.workflow_id[:1] != MARK:
                        missing.setdefault(key, False)
            elif write.key not in logs and write.key.workflow_id[:1] != MARK:
                missing[write.key] = True
        if not missing:
            return
        found = self._find(list(missing))
        logs.update(found)
        for key in found:
            del missing[key]
        for key, written in missing.items():
            if not written:
                continue  # a deadline of an id that retention deleted
            logs[key] = _Log(self._next_log)
            plan.logs[self._next_log] = (self._next_log, *key, 0)
            self._next_log += 1

    def _find(self, keys: list[ExecutionKey]) -> dict[ExecutionKey, _Log]:
        rows = select_rows(
            self._connection,
            "SELECT logs.namespace, logs.workflow_id, logs.id, "
            "coalesce((SELECT max(seq) FROM commits WHERE commits.log = logs.id), 0), "
            "newest.id, newest.run, newest.first_seq FROM (",
            keys,
            ") JOIN logs ON logs.namespace = column1 AND logs.workflow_id = column2 "
            "LEFT JOIN runs AS newest ON newest.log = logs.id "
            "AND newest.first_seq = (SELECT max(first_seq) FROM runs WHERE runs.log = logs.id)",
        )
        found: dict[ExecutionKey, _Log] = {}
        for namespace, workflow_id, number, last_seq, run_number, run, first_seq in rows:
            known = _Log(number, last_seq)
            if run is not None:
                known.run_number, known.run_id, known.first_seq = run_number, from_run(run), first_seq
            found[ExecutionKey(namespace, workflow_id)] = known
        return found

    def _append(self, write: AppendCommit, plan: Plan) -> None:
        log = self._logs[write.key]
        number = log.number
        if write.seq > log.last_seq + 1:
            raise Unmet
        log.last_seq = max(log.last_seq, write.seq)
        plan.commits.append((number, write.seq, write.events, write.head))
        if write.struck_us is not None:
            plan.fired.append((write.struck_us, number))
        if write.arm_us is not None:
            plan.armed.append((write.arm_us, number))
        if write.owes is not None:
            plan.logs[number] = (number, *write.key, int(write.owes))
        if log.run_id in write.others_found_by:
            self._find_by(log, write.key.namespace, *write.others_found_by[log.run_id], plan)
        new_run = log.run_id != write.run_id
        if new_run:
            log.found_by = _NOTHING
            log.run_number, log.run_id, log.first_seq = self._next_run, write.run_id, write.seq
            self._next_run += 1
        if new_run or write.visibility is not None:
            row = (log.run_number, number, log.first_seq, to_run(write.run_id), write.key.namespace)
            plan.runs.append(row + (write.visibility or _NO_VISIBILITY))
        if write.visibility is not None:
            start_us = write.visibility[3]
            assert isinstance(start_us, int)
            self._find_by(log, write.key.namespace, start_us, write.found_by, plan)
        for other in write.other_runs:
            plan.other_runs.append((number, *other))

    def _find_by(self, log: _Log, namespace: str, start_us: int, rows: FoundBy, plan: Plan) -> None:
        """What the log's newest run is found by from now on; mostly that is as before."""
        hashed = hash(rows)
        if hashed == log.found_by:
            return
        if log.found_by != _NOTHING:
            plan.lost.append((log.run_number,))
        log.found_by = hashed
        run = to_run(log.run_id)
        plan.found_by[log.run_number] = [(namespace, *row, start_us, run, log.run_number) for row in rows]

    def carry_out(self, plan: Plan) -> None:
        """In a transaction that the caller opened. Raises :class:`Unmet`; then the caller rolls back."""
        connection = self._connection
        if plan.fired or plan.woken or plan.armed or plan.wake_ups:
            self._deadlines(plan)
        if plan.logs:
            execute_rows(connection, _UPSERT_LOGS, list(plan.logs.values()), _UPSERT_LOGS_TAIL)
        unmet = False
        if plan.commits:
            unmet |= execute_rows(connection, _INSERT_COMMITS, plan.commits) < len(plan.commits)
        if plan.new_items:
            unmet |= execute_rows(connection, _INSERT_ITEMS, plan.new_items) < len(plan.new_items)
        if plan.changed_items:
            changed = execute_rows(connection, _UPDATE_ITEMS, plan.changed_items, _UPDATE_ITEMS_TAIL)
            unmet |= changed < len(plan.changed_items)
        if unmet:
            raise Unmet
        if plan.runs or plan.other_runs or plan.lost or plan.found_by:
            self._project(plan)

    def _project(self, plan: Plan) -> None:
        """Behind the conditions: a start that lost its seq has a row here that cannot stand beside the winner's."""
        connection = self._connection
        if plan.runs:
            execute_rows(connection, _UPSERT_RUNS, plan.runs, _UPSERT_RUNS_TAIL)
        if plan.other_runs:
            execute_rows(connection, _UPDATE_OTHER_RUNS, plan.other_runs, _UPDATE_OTHER_RUNS_TAIL)
        if plan.lost:
            execute_rows(connection, _DROP_FOUND_BY, plan.lost, "))")
        if found := [row for rows in plan.found_by.values() for row in rows]:
            execute_rows(connection, _INSERT_FOUND_BY, found)

    def _deadlines(self, plan: Plan) -> None:
        if plan.fired:
            execute_rows(self._connection, _DROP_FIRED, plan.fired, "))")
        if plan.woken:
            execute_rows(self._connection, _DROP_WOKEN, plan.woken, "))")
        if plan.armed:
            execute_rows(self._connection, "INSERT OR IGNORE INTO armed (fire_us, log)", plan.armed)
        if plan.wake_ups:
            execute_rows(self._connection, _ARM_WAKE_UPS, plan.wake_ups)


def _struck(commit: Commit) -> datetime | None:
    """A next run that needs the same time keeps it: it may have been armed before this write."""
    if commit.closed is not None:
        armed = commit.closed.state.armed
        return None if armed == commit.state.armed else armed
    return commit.state.armed if commit.state.close_time is not None and not commit.state.owed else None
