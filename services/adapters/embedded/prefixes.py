"""Prefixes: the history that a reset run begins with, kept in parts beside the commits (``ports.put_prefix``)."""

import sqlite3

from ...history.commit import ExecutionKey
from .values import to_run

PARTS_PER_BATCH = 8
"""Deleted in one transaction; a part has up to about half a megabyte."""

ORPHAN_AFTER_US = 24 * 60 * 60 * 1_000_000
"""From then on a part whose run is not there belongs to a reset that was never made."""

_LOG = "(SELECT id FROM logs WHERE namespace = ? AND workflow_id = ?)"
_PUT = (
    f"INSERT INTO prefixes (log, run, seq, events, orphan_us) VALUES ({_LOG}, ?, ?, ?, ?) "
    "ON CONFLICT (log, run, seq) DO NOTHING"
)

READ = (
    f"SELECT seq, events FROM prefixes WHERE log = {_LOG} AND run = ? AND seq > ? AND EXISTS "
    "(SELECT 1 FROM runs WHERE runs.log = prefixes.log AND runs.run = prefixes.run AND NOT expired) ORDER BY seq"
)


def put(connection: sqlite3.Connection, key: ExecutionKey, run_id: str, seq: int, events: bytes, now_us: int) -> None:
    connection.execute(_PUT, (*key, to_run(run_id), seq, events, now_us + ORPHAN_AFTER_US))


def delete(connection: sqlite3.Connection, log: int, run: bytes | str) -> bool:
    """Deletes one batch of a run's parts, first ones first; whether that was all."""
    deleted = connection.execute(
        "DELETE FROM prefixes WHERE rowid IN "
        "(SELECT rowid FROM prefixes WHERE log = ? AND run = ? ORDER BY seq LIMIT ?)",
        (log, run, PARTS_PER_BATCH),
    ).rowcount
    return deleted < PARTS_PER_BATCH


def delete_orphans(connection: sqlite3.Connection, before_us: int) -> bool:
    """Looks once at each part: one whose run is there stays for good, any other one goes. Whether there are more."""
    rows = connection.execute(
        "SELECT rowid, EXISTS (SELECT 1 FROM runs WHERE runs.log = prefixes.log AND runs.run = prefixes.run) "
        "FROM prefixes WHERE orphan_us < ? ORDER BY orphan_us LIMIT ?",
        (before_us, PARTS_PER_BATCH),
    ).fetchall()
    for rowid, claimed in rows:
        if claimed:
            connection.execute("UPDATE prefixes SET orphan_us = NULL WHERE rowid = ?", (rowid,))
        else:
            connection.execute("DELETE FROM prefixes WHERE rowid = ?", (rowid,))
    return len(rows) == PARTS_PER_BATCH
