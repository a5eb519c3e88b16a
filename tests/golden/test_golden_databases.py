"""Every database file that a release has written is read, migrated and written on by this one."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from stepwell_server.adapters.embedded import embedded_backend, open_for_inspection
from stepwell_server.adapters.embedded.schema import SCHEMA_VERSION
from tests.golden.make_golden import DATABASES, found_in, make
from tests.support.sample_commits import SampleRun

GOLDEN = sorted(DATABASES.glob("*.db"))


def schema_version(path: Path) -> int:
    connection = sqlite3.connect(path)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return int(version)


async def check(golden: Path, folder: Path) -> None:
    path = folder / golden.name
    shutil.copy(golden, path)
    expected = json.loads(golden.with_suffix(".json").read_text(encoding="utf-8"))
    if schema_version(path) == SCHEMA_VERSION:
        reads = open_for_inspection(path)
        assert await found_in(reads) == expected
        reads.close()
    backend = embedded_backend(path)
    assert await found_in(backend.log) == expected  # type: ignore[arg-type]
    for commit in SampleRun(999_999, namespace="afterwards").commits():
        await backend.log.append(commit)
    await backend.close()
    assert schema_version(path) == SCHEMA_VERSION
    reads = open_for_inspection(path)
    assert await found_in(reads) == expected
    assert await reads.head(commit.key) == commit
    reads.close()


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
async def test_a_database_of_an_earlier_release(golden: Path, tmp_path: Path) -> None:
    await check(golden, tmp_path)


async def test_a_database_of_this_release(tmp_path: Path) -> None:
    """What the next release's golden files are made with works, and would pass."""
    databases = tmp_path / "databases"
    await make("0.0.0", [], databases)
    await make("0.0.1", [databases / "0.0.0-samples.db"], databases)
    names = ["0.0.0-samples", "0.0.1-0.0.0-samples", "0.0.1-samples"]
    assert sorted(entry.name for entry in databases.iterdir()) == sorted(
        name + suffix for name in names for suffix in (".db", ".json")
    )
    (tmp_path / "work").mkdir()
    for golden in sorted(databases.glob("*.db")):
        await check(golden, tmp_path / "work")
    with pytest.raises(SystemExit, match="never edited"):
        await make("0.0.0", [], databases)
