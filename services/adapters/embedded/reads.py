"""Reads: each is one short query on a connection of its own, which never waits for the writer (WAL)."""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.events import HistoryEvent
from stepwell.api.requests import WorkflowExecutionInfo

from ...common.control import ControlRecord
from ...history import codec
from ...history.activity_item import ActivityItem
from ...history.commit import Commit, ExecutionKey
from ...history.ports import EventsPage, Marker, StoreUnavailable
from ...visibility.attributes import ValueType
from ...visibility.filters import Query
from ...visibility.pages import MAX_GROUPS, Counted, Group, Page, Position, TooManyGroups, phases
from . import control, markers, prefixes, searching
from .found_by import TYPES
from .values import from_run, from_us, select_rows, to_run, to_us

_LOG = "(SELECT id FROM logs WHERE namespace = ? AND workflow_id = ?)"
_RUN_BEGINS = (
    "(SELECT first_seq FROM runs WHERE log = (SELECT id FROM log) AND run = ?3 AND NOT expired "
    "ORDER BY first_seq DESC LIMIT 1)"
)
_NEXT_BEGINS = (
    f"coalesce((SELECT min(first_seq) FROM runs WHERE log = (SELECT id FROM log) AND first_seq > {_RUN_BEGINS}), "
    f"{2**62})"
)
# A run's seqs end where the next run of the log begins: before that commit, or with it when it is a commit of both.
# One statement, so that all of it sees one moment.
_COMMITS_OF_RUN = (
    "WITH log AS (SELECT id FROM logs WHERE namespace = ?1 AND workflow_id = ?2) "
    "SELECT {columns} FROM commits WHERE log = (SELECT id FROM log) "
    f"AND seq >= max(?4, {_RUN_BEGINS}) AND seq <= {_NEXT_BEGINS} "
    f"AND (seq < {_NEXT_BEGINS} OR substr(events, 1, 1) = x'{codec.FORMAT_TWO_RUNS:02x}') ORDER BY seq "
)
_EVENTS_OF_RUN = _COMMITS_OF_RUN.format(columns=f"seq, events, seq = {_NEXT_BEGINS}")
_NEWEST_OF_RUN = _COMMITS_OF_RUN.format(columns="head, events") + "DESC LIMIT 1"
_FIRST_NAME = "SELECT name, kind FROM found_by WHERE namespace = ? AND name > ? ORDER BY name, kind LIMIT 1"

# Deadlines of workflows and wake-ups, each in the order of its own index.
_DUE = (
    "SELECT * FROM (SELECT fire_us, logs.namespace, logs.workflow_id FROM armed JOIN logs ON logs.id = armed.log "
    "WHERE fire_us <= ?1 ORDER BY fire_us LIMIT ?2) "
    "UNION ALL SELECT * FROM (SELECT fire_us, namespace, workflow_id FROM wake_ups "
    "WHERE fire_us <= ?1 ORDER BY fire_us LIMIT ?2) ORDER BY fire_us LIMIT ?2"
)
_NEXT_FIRE = (
    "SELECT * FROM (SELECT fire_us FROM armed JOIN logs ON logs.id = armed.log ORDER BY fire_us LIMIT 1) "
    "UNION ALL SELECT * FROM (SELECT fire_us FROM wake_ups ORDER BY fire_us LIMIT 1) ORDER BY fire_us LIMIT 1"
)


class Reader:
    """Queries on one connection; threads take turns."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        connection.create_function("run_text", 1, searching.run_text, deterministic=True)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def head(self, key: ExecutionKey) -> Commit | None:
        return self._commit(f"SELECT head, events FROM commits WHERE log = {_LOG} ORDER BY seq DESC LIMIT 1", key)

    def commit(self, key: ExecutionKey, seq: int) -> Commit | None:
        return self._commit(f"SELECT head, events FROM commits WHERE log = {_LOG} AND seq = ?", (*key, seq))

    def newest_of_run(self, key: ExecutionKey, run_id: str) -> Commit | None:
        return self._commit(_NEWEST_OF_RUN, (*key, to_run(run_id), 0))

    def events(self, key: ExecutionKey, run_id: str, after_seq: int, limit: int) -> EventsPage:
        events: list[HistoryEvent] = []
        last_seq = after_seq
        with self._reading():
            if after_seq < 0:
                last_seq = self._prefix(events, key, run_id, after_seq, limit)
                if len(events) >= limit:
                    return EventsPage(tuple(events), last_seq)
            cursor = self._connection.execute(_EVENTS_OF_RUN, (*key, to_run(run_id), after_seq + 1))
            for seq, part, opens_next in cursor:
                last_seq = seq
                if part is not None:
                    events += codec.decode_closed_events(part) if opens_next else codec.decode_events(part)
                    if len(events) >= limit:
                        break
            cursor.close()
        return EventsPage(tuple(events), last_seq)

    def _prefix(self, events: list[HistoryEvent], key: ExecutionKey, run_id: str, after_seq: int, limit: int) -> int:
        """Adds events of the run's prefix; the seq of the last part read."""
        cursor = self._connection.execute(prefixes.READ, (*key, to_run(run_id), after_seq))
        for seq, part in cursor:
            after_seq = seq
            events += codec.decode_events(part)
            if len(events) >= limit:
                break
        cursor.close()
        return after_seq

    def activity(self, key: ExecutionKey, run_id: str, scheduled_event_id: int) -> ActivityItem | None:
        row = self._one(
            f"SELECT item FROM activity_items WHERE log = {_LOG} AND run = ? AND scheduled_event_id = ?",
            (*key, to_run(run_id), scheduled_event_id),
        )
        return None if row is None else codec.decode_activity_item(row[0])

    def activities(self, key: ExecutionKey, run_id: str, scheduled_event_ids: Sequence[int]) -> list[ActivityItem]:
        run = to_run(run_id)
        log = self._one("SELECT id FROM logs WHERE namespace = ? AND workflow_id = ?", key)
        if log is None or not scheduled_event_ids:
            return []
        with self._reading():
            rows = list(
                select_rows(
                    self._connection,
                    "SELECT item FROM (",
                    [(log[0], run, scheduled_event_id) for scheduled_event_id in scheduled_event_ids],
                    ") JOIN activity_items ON log = column1 AND run = column2 AND scheduled_event_id = column3",
                )
            )
        return [codec.decode_activity_item(item) for (item,) in rows]

    def marker(self, key: ExecutionKey, name: str) -> Marker | None:
        row = self._one(markers.GET, (*key, name))
        return None if row is None else markers.found(row)

    def due(self, now: datetime, limit: int) -> list[tuple[datetime, ExecutionKey]]:
        rows = self._all(_DUE, (to_us(now), limit))
        return [(from_us(fire_us), ExecutionKey(namespace, workflow_id)) for fire_us, namespace, workflow_id in rows]

    def next_fire(self) -> datetime | None:
        row = self._one(_NEXT_FIRE, ())
        return None if row is None else from_us(row[0])

    def control_record(self, kind: str, namespace: str, id: str) -> ControlRecord | None:
        row = self._one(control.GET, (kind, namespace, id))
        return None if row is None else ControlRecord(kind, namespace, id, *row)

    def control_records(self, kind: str, namespace: str, after: str, limit: int) -> list[ControlRecord]:
        rows = self._all(
            "SELECT id, version, value, incarnation FROM control "
            "WHERE kind = ? AND namespace = ? AND id > ? ORDER BY id LIMIT ?",
            (kind, namespace, after, limit),
        )
        return [ControlRecord(kind, namespace, *row) for row in rows]

    def search(self, namespace: str, query: Query, after: Position | None, limit: int) -> Page:
        found: list[WorkflowExecutionInfo] = []
        reached = after
        for phase in phases(query, after):
            statement = searching.page(namespace, phase, limit + 1 - len(found))
            for *row, value in self._all(*statement):
                if len(found) == limit:
                    return Page(found, reached)
                found.append(_execution_info(tuple(row)))
                if len(found) == limit:
                    reached = searching.position(found[-1], phase, value)
        return Page(found, None)

    def count(self, namespace: str, query: Query) -> Counted:
        rows = self._all(*searching.count(namespace, query.filter, query.group_by, MAX_GROUPS + 1))
        if query.group_by is None:
            return Counted(rows[0][0])
        if len(rows) > MAX_GROUPS:
            raise TooManyGroups
        groups = [Group(value, number) for value, number in rows]
        return Counted(sum(group.count for group in groups), tuple(groups))

    def attribute_types(self, namespace: str) -> dict[str, ValueType]:
        """A seek for each name: the table may be large, the names are few."""
        types: dict[str, ValueType] = {}
        row = self._one(_FIRST_NAME, (namespace, ""))
        while row is not None:
            types[row[0]] = TYPES[row[1]]
            row = self._one(_FIRST_NAME, (namespace, row[0]))
        return types

    def owing(self, after: ExecutionKey | None, limit: int) -> list[ExecutionKey]:
        rows = self._all(
            "SELECT namespace, workflow_id FROM logs WHERE owes AND (namespace, workflow_id) > (?, ?) "
            "ORDER BY namespace, workflow_id LIMIT ?",
            (*(after or ("", "")), limit),
        )
        return [ExecutionKey(*row) for row in rows]

    def token_key(self) -> bytes:
        row = self._one("SELECT value FROM meta WHERE key = 'token_key'", ())
        return bytes(row[0]) if row else b""

    def _commit(self, query: str, parameters: Sequence[object]) -> Commit | None:
        row = self._one(query, parameters)
        return None if row is None else codec.decode_commit(*row)

    def _one(self, query: str, parameters: Sequence[object]) -> tuple[Any, ...] | None:
        with self._lock:
            try:
                row: tuple[Any, ...] | None = self._connection.execute(query, parameters).fetchone()
            except sqlite3.Error as error:
                raise _unavailable(error) from error
            return row

    def _all(self, query: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        with self._reading():
            return self._connection.execute(query, parameters).fetchall()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """A damaged file may show with any row, not only with the first."""
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise _unavailable(error) from error


def _unavailable(error: sqlite3.Error) -> StoreUnavailable:
    return StoreUnavailable(f"the database cannot be read: {error}")


def _execution_info(row: tuple[Any, ...]) -> WorkflowExecutionInfo:
    workflow_id, run, first_run, workflow_type, task_queue, status, start_us, close_us = row[:8]
    history_length, history_size, attributes = row[8:]
    memo, search_attributes = codec.decode_visible_attributes(attributes)
    return WorkflowExecutionInfo(
        execution=WorkflowExecution(workflow_id=workflow_id, run_id=from_run(run)),
        workflow_type=workflow_type,
        task_queue=task_queue,
        status=WorkflowExecutionStatus(status),
        start_time=from_us(start_us),
        close_time=None if close_us is None else from_us(close_us),
        history_length=history_length,
        history_size_bytes=history_size,
        first_run_id=from_run(run if first_run is None else first_run),
        memo=memo,
        search_attributes=search_attributes,
    )
