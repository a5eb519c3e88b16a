"""Erasing single runs (``ports.erase_run``), as retention does it: hidden first, then oldest commit first, in batches
that are short transactions on the writer.

A commit that ends one run and begins the next goes with the next one. A run that has an earlier one before it keeps its
row, hidden, since the earlier one is read up to there; and the newest keeps the log's newest commit. Retention takes
what is left in its time.
"""

import sqlite3

from ...history import codec
from ...history.claims import claimed_at
from ...history.commit import ExecutionKey
from . import prefixes
from .retention import COMMITS_PER_BATCH
from .values import to_run
from .writes import WriteTables

_LAST_SEQ = 2**62


def erase_batch(connection: sqlite3.Connection, tables: WriteTables, key: ExecutionKey, run_id: str) -> bool:
    """Whether there is more to do."""
    row = connection.execute(
        "SELECT runs.id, log, first_seq FROM runs JOIN logs ON logs.id = runs.log "
        "WHERE logs.namespace = ? AND logs.workflow_id = ? AND run = ?",
        (*key, to_run(run_id)),
    ).fetchone()
    if row is None:
        return False
    number, log, first_seq = row
    connection.execute("UPDATE runs SET expired = 1, attributes = NULL WHERE id = ?", (number,))
    connection.execute("DELETE FROM found_by WHERE number = ?", (number,))
    next_seq = connection.execute(
        "SELECT min(first_seq) FROM runs WHERE log = ? AND first_seq > ?", (log, first_seq)
    ).fetchone()[0]
    follows = connection.execute(
        "SELECT 1 FROM runs WHERE log = ? AND first_seq < ? LIMIT 1", (log, first_seq)
    ).fetchone()
    head = connection.execute("SELECT max(seq) FROM commits WHERE log = ?", (log,)).fetchone()[0]
    before = next_seq or head or _LAST_SEQ
    first = first_seq + 1 if follows and _is_shared(connection, log, first_seq) else first_seq
    deleted = connection.execute(
        "DELETE FROM commits WHERE rowid IN "
        "(SELECT rowid FROM commits WHERE log = ? AND seq >= ? AND seq < ? ORDER BY seq LIMIT ?)",
        (log, first, before, COMMITS_PER_BATCH),
    ).rowcount
    if deleted == COMMITS_PER_BATCH or not prefixes.delete(connection, log, to_run(run_id)):
        return True
    connection.execute("DELETE FROM activity_items WHERE log = ? AND run = ?", (log, to_run(run_id)))
    if next_seq is None:
        _delete_markers(connection, key, first_seq - 1, before)
    elif not follows:
        connection.execute("DELETE FROM runs WHERE id = ?", (number,))
        tables.forget([key])
    return False


def forget(connection: sqlite3.Connection, tables: WriteTables, key: ExecutionKey, seq: int) -> None:
    row = connection.execute("SELECT id FROM logs WHERE namespace = ? AND workflow_id = ?", key).fetchone()
    if row is None:
        return
    log = row[0]
    kept = connection.execute("SELECT 1 FROM runs WHERE log = ? AND NOT expired LIMIT 1", (log,)).fetchone()
    seqs = connection.execute("SELECT max(seq), count(*) FROM commits WHERE log = ?", (log,)).fetchone()
    if kept or seqs[0] != seq or seqs[1] > COMMITS_PER_BATCH:
        return
    for table in ("commits", "runs", "activity_items", "prefixes", "armed"):
        connection.execute(f"DELETE FROM {table} WHERE log = ?", (log,))
    connection.execute("DELETE FROM markers WHERE namespace = ? AND workflow_id = ?", key)
    connection.execute("DELETE FROM logs WHERE id = ?", (log,))
    tables.forget([key])


def _is_shared(connection: sqlite3.Connection, log: int, seq: int) -> bool:
    """Whether that commit ends a run as well."""
    row = connection.execute("SELECT events FROM commits WHERE log = ? AND seq = ?", (log, seq)).fetchone()
    return row is not None and row[0] is not None and bytes(row[0][:1]) == bytes([codec.FORMAT_TWO_RUNS])


def _delete_markers(connection: sqlite3.Connection, key: ExecutionKey, first: int, last: int) -> None:
    """Claims of what the run was asked."""
    rows = connection.execute("SELECT name, value FROM markers WHERE namespace = ? AND workflow_id = ?", key).fetchall()
    names = [(*key, name) for name, value in rows if first <= claimed_at(bytes(value)) <= last]
    connection.executemany("DELETE FROM markers WHERE namespace = ? AND workflow_id = ? AND name = ?", names)
