"""A file that is not ours, or cannot be used, is refused in words and left as it was."""

import os
import sqlite3
from pathlib import Path

import pytest

from stepwell_server.adapters.embedded import DatabaseRefused, embedded_backend, open_for_inspection
from stepwell_server.adapters.embedded.schema import APPLICATION_ID, SCHEMA_VERSION
from tests.integration.sqlite.helpers import append_runs, stored_seqs


def refused(path: Path) -> str:
    """The message; the folder must look as before."""
    before = {entry.name: entry.read_bytes() for entry in path.parent.glob("*") if entry.is_file()}
    with pytest.raises(DatabaseRefused) as refusal:
        embedded_backend(path)
    after = {entry.name: entry.read_bytes() for entry in path.parent.glob("*") if entry.is_file()}
    assert after == before
    assert str(path) in str(refusal.value)
    return str(refusal.value)


def test_a_text_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("shopping list\n" * 100)
    assert "not an SQLite database" in refused(path)


def test_a_short_file_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "one-byte"
    path.write_bytes(b"x")
    assert "not an SQLite database" in refused(path)


def test_a_database_of_another_application(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE customers (name)")
    connection.commit()
    connection.close()
    assert "of another application" in refused(path)


def test_a_marked_database_of_another_application(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id = 252006673")
    connection.close()
    assert "application_id 0xf055111" in refused(path)


def test_a_directory(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert "is a directory" in refused(tmp_path / "folder")


def test_a_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(DatabaseRefused, match="there is no directory"):
        embedded_backend(tmp_path / "nowhere" / "orders.db")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_no_permission(tmp_path: Path) -> None:
    path = tmp_path / "mine.db"
    path.write_bytes(b"")
    path.chmod(0)
    with pytest.raises(DatabaseRefused, match="may not read it"):
        embedded_backend(path)
    folder = tmp_path / "readonly"
    folder.mkdir(mode=0o500)
    with pytest.raises(DatabaseRefused, match="permission"):
        embedded_backend(folder / "new.db")


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="needs a device file")
def test_a_device(tmp_path: Path) -> None:
    with pytest.raises(DatabaseRefused, match="not a regular file"):
        embedded_backend("/dev/null")


async def test_a_file_of_a_newer_release(tmp_path: Path) -> None:
    path = tmp_path / "newer.db"
    backend = embedded_backend(path)
    await backend.close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    (tmp_path / "newer.db-lock").unlink()
    with pytest.raises(DatabaseRefused, match=f"schema version {SCHEMA_VERSION + 1}.*upgrade stepwell-server"):
        embedded_backend(path)
    with pytest.raises(DatabaseRefused, match="newer release"):
        open_for_inspection(path)
    assert not (tmp_path / "newer.db-lock").exists()


async def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    backend = embedded_backend(path)
    await append_runs(backend, [1])
    await backend.close()
    assert await stored_seqs(path) == {"order-000001": [1, 2, 3, 4, 5]}


async def test_a_file_whose_creation_was_cut_short_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "half.db"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.close()
    backend = embedded_backend(path)
    await append_runs(backend, [1])
    await backend.close()


async def test_a_file_keeps_its_secret_and_its_commits(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    backend = embedded_backend(path)
    key, runs = backend.token_key, await append_runs(backend, range(3))
    assert len(key) == 32
    await backend.close()
    await backend.close()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["orders.db", "orders.db-lock"]
    again = embedded_backend(path)
    assert again.token_key == key
    assert again.database == str(path)
    for commits in runs.values():
        assert await again.log.head(commits[0].key) == commits[-1]
    await again.close()
    other = embedded_backend(tmp_path / "other.db")
    assert other.token_key != key
    await other.close()


@pytest.mark.parametrize("name", ["with space.db", "percent%41.db", "question?.db", "hash#1.db", "日本.db"])
async def test_any_file_name_works(tmp_path: Path, name: str) -> None:
    backend = embedded_backend(tmp_path / name)
    await append_runs(backend, [1])
    await backend.close()
    assert (tmp_path / name).stat().st_size > 0
    assert await stored_seqs(tmp_path / name) == {"order-000001": [1, 2, 3, 4, 5]}


def test_inspecting_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DatabaseRefused, match="no such file"):
        open_for_inspection(tmp_path / "nothing.db")
    assert list(tmp_path.iterdir()) == []
