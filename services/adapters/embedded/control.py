"""Records of the control store, each write one transaction with the wake-up that it arms."""

import sqlite3
from datetime import datetime

from ...common.control import ControlConflict, ControlRecord, is_another, wake_up_id
from .values import to_us

GET = "SELECT version, value, incarnation FROM control WHERE kind = ? AND namespace = ? AND id = ?"


def put(connection: sqlite3.Connection, record: ControlRecord, arm: datetime | None) -> None:
    """Raises ControlConflict."""
    kind, namespace, id, version, value, incarnation = record
    if version == 1:
        changed = connection.execute("INSERT OR IGNORE INTO control VALUES (?, ?, ?, ?, ?, ?)", record)
    else:
        changed = connection.execute(
            "UPDATE control SET version = ?, value = ? "
            "WHERE kind = ? AND namespace = ? AND id = ? AND version = ? AND incarnation = ?",
            (version, value, kind, namespace, id, version - 1, incarnation),
        )
    if changed.rowcount != 1:
        raise ControlConflict(_find(connection, record))
    if arm is not None:
        connection.execute(
            "INSERT OR IGNORE INTO wake_ups VALUES (?, ?, ?)", (to_us(arm), namespace, wake_up_id(kind, id))
        )


def delete(connection: sqlite3.Connection, record: ControlRecord) -> None:
    """Raises ControlConflict."""
    existing = _find(connection, record)
    if existing is None or is_another(existing, record):
        return
    if (existing.version, existing.incarnation) != (record.version, record.incarnation):
        raise ControlConflict(existing)
    connection.execute("DELETE FROM control WHERE kind = ? AND namespace = ? AND id = ?", record[:3])


def _find(connection: sqlite3.Connection, record: ControlRecord) -> ControlRecord | None:
    row = connection.execute(GET, record[:3]).fetchone()
    return None if row is None else ControlRecord(*record[:3], *row)
