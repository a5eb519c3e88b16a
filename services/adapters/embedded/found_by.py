"""What is projected of runs: the columns of ``runs``, and the rows of ``found_by``, by which they are searched for."""

import sqlite3
from collections.abc import Mapping
from datetime import datetime

from stepwell.api.payloads import Payload

from ...history import codec
from ...history.commit import Commit
from ...history.tasks import RecordVisibility
from ...history.visible import projected
from ...visibility.attributes import Value, ValueType, custom_values, words
from .plan import Row
from .values import from_us, to_run, to_us

FoundBy = tuple[tuple[str, str, object], ...]
"""Name, kind and value of each row of one run."""

_FILLED_TOGETHER = 500

KINDS: dict[ValueType, str] = {
    ValueType.BOOL: "b",
    ValueType.DATETIME: "d",
    ValueType.DOUBLE: "f",
    ValueType.INT: "i",
    ValueType.KEYWORD: "k",
    ValueType.KEYWORD_LIST: "l",
    ValueType.TEXT: "t",
}
TYPES = {kind: value_type for value_type, kind in KINDS.items()}


def to_column(value: Value) -> object:
    """As columns hold it: times as microseconds."""
    return to_us(value) if isinstance(value, datetime) else value


def from_column(kind: ValueType, value: str | int | float) -> Value:
    """The other way; SQLite has no truth values."""
    if kind is ValueType.DATETIME:
        return from_us(int(value))
    return bool(value) if kind is ValueType.BOOL else value


def found_by(payloads: Mapping[str, Payload]) -> FoundBy:
    rows: list[tuple[str, str, object]] = []
    for name, (kind, value) in custom_values(payloads).items():
        if isinstance(value, tuple):
            rows += [(name, KINDS[kind], each) for each in value]
        elif kind is ValueType.TEXT:
            rows += [(name, KINDS[kind], word) for word in ("", *words(str(value)))]
        else:
            rows.append((name, KINDS[kind], to_column(value)))
    return tuple(rows)


def visibility_row(commit: Commit, task: RecordVisibility) -> Row:
    more = projected(commit, task)
    return (
        task.status.value,
        task.workflow_type,
        task.task_queue,
        to_us(task.start_time),
        None if task.close_time is None else to_us(task.close_time),
        task.history_length,
        more.history_size,
        None if more.first_run_id == task.run_id else to_run(more.first_run_id),
        codec.encode_visible_attributes(task.memo, task.search_attributes),
        None if more.execution_time is None else to_us(more.execution_time),
        more.parent_workflow_id or None,
        to_run(more.parent_run_id) if more.parent_run_id else None,
        more.root_workflow_id or None,
        to_run(more.root_run_id) if more.root_run_id else None,
        more.transitions,
    )


def fill(connection: sqlite3.Connection) -> None:
    """For files of releases that kept search attributes with each run alone."""
    last = 0
    while rows := connection.execute(
        "SELECT id, namespace, start_us, run, attributes FROM runs "
        "WHERE id > ? AND attributes IS NOT NULL AND status IS NOT NULL ORDER BY id LIMIT ?",
        (last, _FILLED_TOGETHER),
    ).fetchall():
        for number, namespace, start_us, run, attributes in rows:
            _, search_attributes = codec.decode_visible_attributes(attributes)
            connection.executemany(
                "INSERT OR IGNORE INTO found_by VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(namespace, *row, start_us, run, number) for row in found_by(search_attributes)],
            )
        last = rows[-1][0]
