"""The schema goes forward by numbered steps, each whole or not at all."""

import sqlite3
from pathlib import Path
from random import Random

import pytest

from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.adapters.embedded.schema import APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION, migrate
from stepwell_server.common.control import ControlConflict, ControlRecord
from stepwell_server.visibility.evaluate import matches
from stepwell_server.visibility.filters import Query
from stepwell_server.visibility.query import parse
from tests.integration.sqlite.helpers import append_runs
from tests.support import queries
from tests.support.queries import TYPES, seen

BEFORE_SEARCH = 5
"""The last schema version in which search attributes were kept with their runs alone."""

BEFORE_INCARNATIONS = 6


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


async def test_control_records_of_an_older_file_are_read_written_and_deleted(tmp_path: Path) -> None:
    """They have no incarnation, and get none; one that is made anew is another all the same."""
    path = tmp_path / "orders.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    migrate(connection, MIGRATIONS[:BEFORE_INCARNATIONS])
    connection.execute("INSERT INTO control VALUES ('thing', 'default', 't', 1, X'00')")
    connection.close()
    backend = embedded_backend(path)
    control, first = backend.control, ControlRecord("thing", "default", "t", 1, b"\0")
    assert await control.get(*first[:3]) == first and await control.list("thing", "default", limit=9) == [first]
    second = await control.put(first._replace(version=2))
    with pytest.raises(ControlConflict):
        await control.put(second._replace(version=3, incarnation="of another"))
    await control.delete(second)
    there = await control.put(first)
    with pytest.raises(ControlConflict):
        await control.put(second)
    await control.delete(first)
    assert await control.get(*first[:3]) == there
    await backend.close()


async def test_runs_of_an_older_file_are_found_by_their_attributes(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    backend = embedded_backend(path)
    runs = queries.runs(Random(1), 30)
    for commit in (commit for run in runs for commit in run.commits):
        await backend.log.append(commit)
    await backend.close()
    connection = sqlite3.connect(path, isolation_level=None)
    for index in ("runs_by_type", "runs_by_parent", "runs_by_end"):
        connection.execute(f"DROP INDEX {index}")
    for column in ("execution_us", "parent_id", "parent_run", "root_id", "root_run", "transitions"):
        connection.execute(f"ALTER TABLE runs DROP COLUMN {column}")
    connection.execute("DROP TABLE found_by")
    connection.execute("ALTER TABLE control DROP COLUMN incarnation")
    connection.execute(f"PRAGMA user_version = {BEFORE_SEARCH}")
    connection.close()
    again = embedded_backend(path)
    for text in ("Customer = 'acme'", "Tags = 'red'", "Note = 'glass'", "Amount > 0", "Due IS NULL"):
        page = await again.visibility.search("default", Query(parse(text, TYPES).filter), after=None, limit=100)
        expected = {run.values["RunId"] for run in runs if matches(parse(text, TYPES).filter, seen(run))}
        assert {info.execution.run_id for info in page.executions} == expected
    await again.close()
