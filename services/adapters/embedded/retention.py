"""Retention: closed runs are deleted once they are old enough (7 days, or what their namespace has), never an open one.

Each batch is one short transaction on the writer, between the engine's own. A run goes as a whole; one with very many
commits is hidden first and then goes oldest commit first, so that no reader is ever shown a history without its start.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...history import codec
from ...history.commit import ExecutionKey
from ...history.state import OwedArchive
from . import prefixes
from .markers import delete_expired
from .values import from_run
from .writes import WriteTables

COMMITS_PER_BATCH = 200
"""About 2 ms of work for the writer."""

_RUNS_PER_BATCH = 50
_LAST_SEQ = 2**62


class Swept(NamedTuple):
    """What one batch deleted; ``more`` when it did not get to the end."""

    runs: int
    keys: list[ExecutionKey]
    """Workflow ids that lost a run; what is cached of them may be outdated."""
    more: bool


def sweep_batch(
    connection: sqlite3.Connection, tables: WriteTables, closed_before_us: int, own_us: Mapping[str, int]
) -> Swept:
    """Deletes runs that closed before the given time (in some namespaces their ``own_us``), oldest first, up to about
    ``COMMITS_PER_BATCH`` commits."""
    runs, keys, budget = 0, [], COMMITS_PER_BATCH
    more = False
    for namespace in _namespaces(connection):
        swept, spent = _sweep(connection, tables, namespace, own_us.get(namespace, closed_before_us), budget)
        runs += swept.runs
        keys += swept.keys
        budget -= spent
        more |= swept.more
        if budget <= 0:
            more = True
            break
    if not more:
        # They are kept for as long again as they hold; readers know that they have expired.
        more = delete_expired(connection, closed_before_us)
        more |= prefixes.delete_orphans(connection, closed_before_us)
        # Deadlines of ids that are gone; they would find nothing to do.
        connection.execute(
            "DELETE FROM armed WHERE fire_us < ? AND NOT EXISTS (SELECT 1 FROM logs WHERE id = armed.log)",
            (closed_before_us,),
        )
    return Swept(runs, keys, more)


def _namespaces(connection: sqlite3.Connection) -> Iterator[str]:
    """Those that have closed runs; each is one step down the index."""
    query = "SELECT min(namespace) FROM runs WHERE close_us IS NOT NULL AND namespace > ?"
    namespace = ""
    while (row := connection.execute(query, (namespace,)).fetchone())[0] is not None:
        namespace = row[0]
        yield namespace


def _sweep(
    connection: sqlite3.Connection, tables: WriteTables, namespace: str, closed_before_us: int, budget: int
) -> tuple[Swept, int]:
    """With what it has spent of the budget.

    Of one workflow id the earlier run always goes first, also of two that closed at the same moment: a commit that ends
    one run and begins the next goes with the next one, so both are gone then. So what holds a run back holds back the
    later ones of its id too.
    """
    rows = _over(connection, namespace, closed_before_us)
    runs, keys, cut_off, left = 0, [], False, budget
    for number, log, first_seq, run in rows[:_RUNS_PER_BATCH]:
        if left <= 0:
            break
        if _follows(connection, log, first_seq):
            continue
        deleted, finished = _delete_commits(connection, log, first_seq, left)
        left -= max(1, deleted)
        if not (finished and prefixes.delete(connection, log, run)):
            connection.execute("UPDATE runs SET expired = 1 WHERE id = ?", (number,))
            cut_off = True
            break
        connection.execute("DELETE FROM activity_items WHERE log = ? AND run = ?", (log, run))
        connection.execute("DELETE FROM found_by WHERE number = ?", (number,))
        connection.execute("DELETE FROM runs WHERE id = ?", (number,))
        runs += 1
        keys.append(_forget_log(connection, tables, log))
    return Swept(runs, keys, cut_off or (runs > 0 and runs < len(rows))), budget - left


def _follows(connection: sqlite3.Connection, log: int, first_seq: int) -> bool:
    """Whether an earlier run of the id is kept, which may end in this one's first commit."""
    query = "SELECT 1 FROM runs WHERE log = ? AND first_seq < ? LIMIT 1"
    return connection.execute(query, (log, first_seq)).fetchone() is not None


def _over(connection: sqlite3.Connection, namespace: str, closed_before_us: int) -> list[tuple[int, int, int, bytes]]:
    """The oldest runs that may go, one more than a batch takes. What a run still owes to others is told in its events,
    so it stays until that is delivered, and all later ones of its id stay with it."""
    rows: list[tuple[int, int, int, bytes]] = []
    held: set[int] = set()
    after = (-(2**63), 0)
    while len(rows) <= _RUNS_PER_BATCH:
        page = connection.execute(
            "SELECT runs.id, log, first_seq, run, close_us, owes FROM runs JOIN logs ON logs.id = runs.log "
            "WHERE runs.namespace = ? AND close_us < ? AND status <> 'RUNNING' AND (close_us, runs.id) > (?, ?) "
            "ORDER BY close_us, runs.id LIMIT ?",
            (namespace, closed_before_us, *after, _RUNS_PER_BATCH + 1),
        ).fetchall()
        for *row, close_us, owes in page:
            number, log, first_seq, run = row
            if log in held or (owes and _run_owes(connection, log, first_seq, from_run(run))):
                held.add(log)
            else:
                rows.append(tuple(row))
            after = (close_us, number)
        if len(page) <= _RUNS_PER_BATCH:
            break
    return rows[: _RUNS_PER_BATCH + 1]


def _run_owes(connection: sqlite3.Connection, log: int, first_seq: int, run_id: str) -> bool:
    """Whether the newest state of the workflow id, the one that knows, has something of this run to deliver, or has to
    archive it."""
    row = connection.execute(
        "SELECT head, events FROM commits WHERE log = ? ORDER BY seq DESC LIMIT 1", (log,)
    ).fetchone()
    if row is None:
        return False
    for owed in codec.decode_commit(*row).state.owed:
        if isinstance(owed, OwedArchive):
            following = _next_run(connection, log, first_seq)
            if following is None or following > owed.after_seq:
                return True
        elif owed.run_id == run_id:
            return True
    return False


def _next_run(connection: sqlite3.Connection, log: int, first_seq: int) -> int | None:
    """Where the next run of the log begins: in the commit that closed this one, or behind that."""
    query = "SELECT min(first_seq) FROM runs WHERE log = ? AND first_seq > ?"
    following: int | None = connection.execute(query, (log, first_seq)).fetchone()[0]
    return following


def _delete_commits(connection: sqlite3.Connection, log: int, first_seq: int, limit: int) -> tuple[int, bool]:
    next_run = _next_run(connection, log, first_seq)
    deleted = connection.execute(
        "DELETE FROM commits WHERE rowid IN "
        "(SELECT rowid FROM commits WHERE log = ? AND seq >= ? AND seq < ? ORDER BY seq LIMIT ?)",
        (log, first_seq, next_run or _LAST_SEQ, limit),
    ).rowcount
    return deleted, deleted < limit


def _forget_log(connection: sqlite3.Connection, tables: WriteTables, log: int) -> ExecutionKey:
    """Deletes the log's own row when nothing of it is left."""
    key = ExecutionKey(*connection.execute("SELECT namespace, workflow_id FROM logs WHERE id = ?", (log,)).fetchone())
    tables.forget([key])
    connection.execute(
        "DELETE FROM logs WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM runs WHERE log = ?1) "
        "AND NOT EXISTS (SELECT 1 FROM commits WHERE log = ?1)",
        (log,),
    )
    return key
