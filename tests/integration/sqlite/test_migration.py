"""The schema goes forward by numbered steps, each whole or not at all."""

import sqlite3
from pathlib import Path

import pytest

from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.adapters.embedded.schema import MIGRATIONS, SCHEMA_VERSION, migrate
from tests.integration.sqlite.helpers import append_runs


def version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


async def test_a_file_is_brought_forward_and_keeps_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    backend = embedded_backend(path)
    runs = await append_runs(backend, range(3))
    await backend.close()
    connection = sqlite3.connect(path, isolation_level=None)
    assert version(connection) == SCHEMA_VERSION
    later = (
        *MIGRATIONS,
        "CREATE TABLE invented (a);",
        "ALTER TABLE invented ADD COLUMN b; INSERT INTO invented VALUES (1, 2);",
    )
    migrate(connection, later)
    migrate(connection, later)
    assert version(connection) == SCHEMA_VERSION + 2
    assert connection.execute("SELECT a, b FROM invented").fetchall() == [(1, 2)]
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.close()
    again = embedded_backend(path)
    for commits in runs.values():
        assert await again.log.head(commits[0].key) == commits[-1]
    await again.close()


def test_a_step_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection)
    before = tables(connection)
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, (*MIGRATIONS, "CREATE TABLE invented (a); CREATE TABLE broken (;"))
    connection.close()
    connection = sqlite3.connect(path)
    assert (version(connection), tables(connection)) == (SCHEMA_VERSION, before)
    connection.close()


def test_each_step_counts_one() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for number in range(1, len(MIGRATIONS) + 1):
        migrate(connection, MIGRATIONS[:number])
        assert version(connection) == number
    connection.close()
