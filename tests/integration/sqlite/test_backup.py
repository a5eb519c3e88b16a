"""Online backup: a consistent copy while the engine writes."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from stepwell_server.adapters.embedded import DatabaseRefused, embedded_backend
from tests.integration.sqlite.helpers import append_runs, stored_seqs
from tests.support.sample_commits import SampleRun


async def test_a_backup_under_load_is_a_prefix(tmp_path: Path) -> None:
    path, target = tmp_path / "orders.db", tmp_path / "backup.db"
    backend = embedded_backend(path)
    runs = await append_runs(backend, range(200))
    stop = False

    async def keep_writing(number: int) -> int:
        while not stop:
            for commit in SampleRun(number).commits():
                await backend.log.append(commit)
            number += 10
        return number

    writers = [asyncio.ensure_future(keep_writing(1_000 + number)) for number in range(10)]
    await asyncio.sleep(0.05)
    await backend.backup(target)
    stop = True
    await asyncio.gather(*writers)
    await backend.close()
    seqs = await stored_seqs(target)
    for found in seqs.values():
        assert found == list(range(1, len(found) + 1))
    assert all(seqs[commits[0].workflow_id] == [1, 2, 3, 4, 5] for commits in runs.values())
    with closing(sqlite3.connect(target)) as copy:
        assert copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("name", ["orders.db", ":memory:"])
async def test_a_backup_is_one_file_that_opens_as_a_database(tmp_path: Path, name: str) -> None:
    backend = embedded_backend(name if name == ":memory:" else tmp_path / name)
    runs = await append_runs(backend, range(3))
    folder = tmp_path / "backups"
    folder.mkdir()
    await backend.backup(folder / "copy.db")
    await backend.close()
    assert [entry.name for entry in folder.iterdir()] == ["copy.db"]
    restored = embedded_backend(folder / "copy.db")
    assert restored.token_key == backend.token_key
    for commits in runs.values():
        assert await restored.log.head(commits[0].key) == commits[-1]
    await append_runs(restored, [7])
    await restored.close()


async def test_a_backup_overwrites_nothing(tmp_path: Path) -> None:
    path, target = tmp_path / "orders.db", tmp_path / "precious.db"
    target.write_text("precious")
    backend = embedded_backend(path)
    with pytest.raises(DatabaseRefused, match="it exists; name a new file"):
        await backend.backup(target)
    with pytest.raises(DatabaseRefused, match="to itself"):
        await backend.backup(path)
    with pytest.raises(DatabaseRefused, match="folder exists"):
        await backend.backup(tmp_path / "nowhere" / "copy.db")
    assert target.read_text() == "precious"
    await append_runs(backend, [1])
    await backend.close()
