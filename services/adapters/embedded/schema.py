"""Tables of the embedded database, as a list of numbered steps that only goes forward.

- ``logs``: one row per workflow id that was ever used; gives it a small number, by which the others name it.
- ``runs``: one row per run; the run covers the seqs from ``first_seq`` up to the next run of the log, and ends in that
  one's first commit when it is a commit of both. It is the visibility record as well (NULL ``status`` until a
  RecordVisibility task came).
- ``commits``: append-only, in the order of arrival, so that commits which share a transaction share pages; the unique
  index on (log, seq) is the put-if-absent. None is taken that does not follow the newest one.
- ``activity_items``, ``armed``: as in the ports.
- ``prefixes``: the history that a reset run begins with, in parts; written before the run's first commit, so that for a
  part whose run is not there by ``orphan_us`` the commit never came. NULL once the run was seen.
- ``control``, ``wake_ups``: as in ``common.control``; wake-ups are no row of ``armed``, so that what is not a workflow
  has no log; ``incarnation`` is empty for records of before step 7.
- ``found_by``: custom search attributes, one row per value (of a text, per word, and an empty one), in the order that
  lists want. ``kind`` is a letter for how values are compared; ``number`` is the row of ``runs``.
- ``markers``: by workflow id and not by the log's number, which is given away again once a log is deleted.

Times are microseconds since 1970; run ids are 16 bytes when they are UUIDs.
"""

import sqlite3
from collections.abc import Callable

from .found_by import fill

APPLICATION_ID = 0x53747077
"""``Stpw``, in the header of every file of ours."""

_STEP_1 = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;

CREATE TABLE logs (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    owes INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX logs_by_key ON logs (namespace, workflow_id);
CREATE INDEX logs_that_owe ON logs (namespace, workflow_id) WHERE owes;

CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    log INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    run NOT NULL,
    namespace TEXT NOT NULL,
    status TEXT,
    workflow_type TEXT,
    task_queue TEXT,
    start_us INTEGER,
    close_us INTEGER,
    history_length INTEGER,
    history_size INTEGER,
    first_run,
    attributes BLOB,
    expired INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX runs_by_log ON runs (log, first_seq);
CREATE INDEX runs_by_start ON runs (namespace, start_us, run) WHERE status IS NOT NULL;
CREATE INDEX runs_not_completed ON runs (namespace, status, start_us, run) WHERE status <> 'COMPLETED';
CREATE INDEX runs_by_close ON runs (close_us) WHERE close_us IS NOT NULL;

CREATE TABLE commits (
    log INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    events BLOB,
    head BLOB NOT NULL
);
CREATE UNIQUE INDEX commits_by_seq ON commits (log, seq);

CREATE TABLE activity_items (
    log INTEGER NOT NULL,
    run NOT NULL,
    scheduled_event_id INTEGER NOT NULL,
    version INTEGER NOT NULL,
    item BLOB NOT NULL,
    PRIMARY KEY (log, run, scheduled_event_id)
) WITHOUT ROWID;

CREATE TABLE armed (
    fire_us INTEGER NOT NULL,
    log INTEGER NOT NULL,
    PRIMARY KEY (fire_us, log)
) WITHOUT ROWID;

INSERT INTO meta VALUES ('token_key', randomblob(32)), ('opened', 0);
"""

_STEP_2 = """
CREATE TABLE markers (
    namespace TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    name TEXT NOT NULL,
    value BLOB NOT NULL,
    expires_us INTEGER NOT NULL,
    PRIMARY KEY (namespace, workflow_id, name)
) WITHOUT ROWID;
CREATE INDEX markers_by_expiry ON markers (expires_us);
"""

_STEP_3 = """
CREATE TABLE prefixes (
    log INTEGER NOT NULL,
    run NOT NULL,
    seq INTEGER NOT NULL,
    events BLOB NOT NULL,
    orphan_us INTEGER
);
CREATE UNIQUE INDEX prefixes_by_seq ON prefixes (log, run, seq);
CREATE INDEX prefixes_unclaimed ON prefixes (orphan_us) WHERE orphan_us IS NOT NULL;
"""

_STEP_4 = """
CREATE TABLE control (
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    id TEXT NOT NULL,
    version INTEGER NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (kind, namespace, id)
) WITHOUT ROWID;

CREATE TABLE wake_ups (
    fire_us INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    PRIMARY KEY (fire_us, namespace, workflow_id)
) WITHOUT ROWID;
"""

_STEP_5 = """
DROP INDEX runs_by_close;
CREATE INDEX runs_by_close ON runs (namespace, close_us) WHERE close_us IS NOT NULL;
"""

_STEP_6 = """
ALTER TABLE runs ADD COLUMN execution_us INTEGER;
ALTER TABLE runs ADD COLUMN parent_id TEXT;
ALTER TABLE runs ADD COLUMN parent_run;
ALTER TABLE runs ADD COLUMN root_id TEXT;
ALTER TABLE runs ADD COLUMN root_run;
ALTER TABLE runs ADD COLUMN transitions INTEGER;
CREATE INDEX runs_by_type ON runs (namespace, workflow_type, start_us, run) WHERE status IS NOT NULL;
CREATE INDEX runs_by_parent ON runs (namespace, parent_id, start_us, run) WHERE parent_id IS NOT NULL;
CREATE INDEX runs_by_end ON runs (namespace, close_us, start_us, run) WHERE close_us IS NOT NULL;
CREATE TABLE found_by (
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    value NOT NULL,
    start_us INTEGER NOT NULL,
    run NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (namespace, name, kind, value, start_us, run)
) WITHOUT ROWID;
CREATE INDEX found_by_run ON found_by (number);
"""

_STEP_7 = """
ALTER TABLE control ADD COLUMN incarnation TEXT NOT NULL DEFAULT '';
"""

Step = str | tuple[str, Callable[[sqlite3.Connection], None]]
"""Statements, and what fills a new table from old rows where statements cannot read them."""

MIGRATIONS: tuple[Step, ...] = (_STEP_1, _STEP_2, _STEP_3, _STEP_4, _STEP_5, (_STEP_6, fill), _STEP_7)
"""Step n brings schema version n - 1 to n. Released steps are never edited."""

SCHEMA_VERSION = len(MIGRATIONS)


def migrate(connection: sqlite3.Connection, migrations: tuple[Step, ...] = MIGRATIONS) -> None:
    """Runs the steps that the file lacks, each in a transaction of its own with its new version number."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    for number, step in enumerate(migrations[version:], start=version + 1):
        script, work = step if isinstance(step, tuple) else (step, None)
        try:
            connection.executescript(f"BEGIN IMMEDIATE;\n{script}")
            if work is not None:
                work(connection)
            connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
