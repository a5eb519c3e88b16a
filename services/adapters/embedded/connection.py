"""Opening the database file: refuse what is not ours, before anything is written to it."""

import os
import sqlite3
import sys
from pathlib import Path

from .errors import DatabaseRefused
from .schema import APPLICATION_ID, SCHEMA_VERSION, migrate

MEMORY = ":memory:"
_BUSY_TIMEOUT_SECONDS = 5.0
"""Waits for an inspecting process that holds a lock for a moment; no other process writes."""

_CACHED_STATEMENTS = 256
_SMALLEST_DATABASE = 512
_WAL_KEPT_BYTES = 64 * 1024 * 1024
_CACHE_KIB = 8 * 1024
"""Pages that the writer keeps; readers keep SQLite's default of 2 MB, and the system caches the file."""


def open_writable(path: Path | str) -> sqlite3.Connection:
    """The file, made when there is none, migrated to this release's schema. Raises :class:`DatabaseRefused`.

    The caller owns the file (``ownership``); ``:memory:`` needs no owner.
    """
    connection = _connect(path, "rwc")
    try:
        _check_identity(connection, path, may_be_new=True)
        _prepare(connection)
    except sqlite3.Error as error:
        connection.close()
        raise _refusal(path, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def refuse_foreign(path: Path) -> None:
    """Raises :class:`DatabaseRefused` for a file that cannot be ours, before a lock file is put beside it."""
    _check_path(path)
    size = path.stat().st_size if path.exists() else 0
    if size == 0:
        return
    if size < _SMALLEST_DATABASE and not path.with_name(path.name + "-journal").exists():
        # SQLite would take it for an empty database and overwrite it.
        raise DatabaseRefused(f"{path} is not an SQLite database; it was left untouched, choose another path")
    connection = _connect(path, "ro")
    try:
        _check_identity(connection, path, may_be_new=True)
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_NOTADB:
            raise _refusal(path, error) from error
        # Anything else may need what only the owner may do, such as recovery; opening it for good will tell.
    finally:
        connection.close()


def open_read_only(path: Path) -> sqlite3.Connection:
    """A second connection for reads, of this process or of one that only inspects. Raises :class:`DatabaseRefused`."""
    if not path.exists():
        raise DatabaseRefused(f"cannot open {path}: there is no such file; check the path")
    _check_path(path)
    connection = _connect(path, "ro")
    try:
        _check_identity(connection, path, may_be_new=False)
        connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        connection.close()
        raise _refusal(path, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def open_for_checkpoints(path: Path) -> sqlite3.Connection:
    """One more connection of the owner; it writes to the file only what the log already holds."""
    connection = _connect(path, "rw")
    connection.execute("PRAGMA synchronous = FULL")
    _sync_to_the_medium(connection)
    return connection


def _connect(path: Path | str, mode: str) -> sqlite3.Connection:
    name = MEMORY if path == MEMORY else f"{Path(path).as_uri()}?mode={mode}"
    try:
        return sqlite3.connect(
            name,
            uri=path != MEMORY,
            isolation_level=None,
            check_same_thread=False,
            timeout=_BUSY_TIMEOUT_SECONDS,
            cached_statements=_CACHED_STATEMENTS,
        )
    except sqlite3.Error as error:
        raise _refusal(path, error) from error


def _check_path(path: Path) -> None:
    try:
        _look_at(path)
    except OSError as error:  # such as a name that is too long
        raise DatabaseRefused(f"cannot open {path}: {error.strerror}; choose another path") from error


def _look_at(path: Path) -> None:
    if path.is_dir():
        raise DatabaseRefused(f"cannot open {path}: it is a directory; name a file, such as {path / 'stepwell.db'}")
    if not path.parent.is_dir():
        raise DatabaseRefused(f"cannot open {path}: there is no directory {path.parent}; make it, or fix the path")
    if path.exists() and not path.is_file():
        raise DatabaseRefused(f"cannot open {path}: it is not a regular file; name a file")
    if path.exists() and not os.access(path, os.R_OK):
        raise DatabaseRefused(f"cannot open {path}: this user may not read it; change its permissions")


def _check_identity(connection: sqlite3.Connection, path: Path | str, *, may_be_new: bool) -> None:
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    application_id = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    new = tables == 0 and version == 0 and application_id in (0, APPLICATION_ID)
    if application_id != APPLICATION_ID and not (new and may_be_new):
        raise DatabaseRefused(
            f"{path} is an SQLite database of another application (application_id {application_id:#x}, "
            f"Stepwell's is {APPLICATION_ID:#x}); it was left untouched, choose another path"
        )
    if version > SCHEMA_VERSION:
        raise DatabaseRefused(
            f"{path} was written by a newer release of Stepwell (schema version {version}, this release knows "
            f"{SCHEMA_VERSION}); upgrade stepwell-server, or restore a backup made by this release"
        )
    if version < SCHEMA_VERSION and not may_be_new:
        raise DatabaseRefused(
            f"{path} has schema version {version} and can be inspected from version {SCHEMA_VERSION} on; "
            "open it once with 'stepwell dev --db', which migrates it"
        )


def _prepare(connection: sqlite3.Connection) -> None:
    """Order matters on a new file: it is marked as ours before it holds anything."""
    if connection.execute("PRAGMA application_id").fetchone()[0] == 0:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    _sync_to_the_medium(connection)
    # Checkpoints are made behind the back of waiting callers (``checkpoint``).
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT_BYTES}")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute("PRAGMA temp_store = MEMORY")
    migrate(connection)


def _sync_to_the_medium(connection: sqlite3.Connection) -> None:
    """On macOS a plain fsync stops at the drive's cache."""
    if sys.platform == "darwin":
        connection.execute("PRAGMA fullfsync = ON")


def _refusal(path: Path | str, error: sqlite3.Error) -> DatabaseRefused:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_NOTADB:
        return DatabaseRefused(f"{path} is not an SQLite database; it was left untouched, choose another path")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return DatabaseRefused(
            f"cannot open {path}: {error}; this user needs write permission on the file and on its folder, "
            "where its -wal and -shm files lie"
        )
    return DatabaseRefused(f"cannot open {path}: {error}; check the disk, or restore a backup")
