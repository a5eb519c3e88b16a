"""A full disk: waiting writes fail in words, what was acknowledged stays, and the engine goes on when there is room."""

import asyncio
import sys
from pathlib import Path

import pytest

from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.history.ports import StoreUnavailable
from tests.integration.sqlite.helpers import append_runs, on_writer, start_process, stored_seqs
from tests.support.sample_commits import SampleRun


async def limit_pages(backend: Backend, pages: int) -> None:
    await on_writer(backend, lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchall())


async def fill(backend: Backend, first_number: int) -> dict[str, int]:
    """Appends until the store is full; the newest acknowledged seq of each workflow."""
    acknowledged: dict[str, int] = {}
    for number in range(first_number, first_number + 10_000):
        for commit in SampleRun(number).commits():
            try:
                await backend.log.append(commit, arm=commit.deadline)
            except StoreUnavailable as error:
                if "full" not in str(error):
                    raise
                return acknowledged
            acknowledged[commit.workflow_id] = commit.seq
    raise AssertionError("the store never filled up")


@pytest.mark.parametrize("name", ["orders.db", ":memory:"])
async def test_full_and_free_again(tmp_path: Path, name: str) -> None:
    backend = embedded_backend(name if name == ":memory:" else tmp_path / name)
    await append_runs(backend, range(5))
    for round_number in (1, 2):
        await limit_pages(backend, 30 * round_number)
        acknowledged = await fill(backend, round_number * 1_000)
        results = await asyncio.gather(
            *(backend.log.append(next(SampleRun(5_000 + number).commits())) for number in range(100)),
            return_exceptions=True,
        )
        assert all(isinstance(result, StoreUnavailable) for result in results)
        for workflow_id, seq in acknowledged.items():  # reads go on
            head = await backend.log.head(next(SampleRun(int(workflow_id[-6:])).commits()).key)
            assert head is not None
            assert head.seq == seq
        await limit_pages(backend, 1_000_000)
        workflow_id, seq = list(acknowledged.items())[-1]
        for commit in list(SampleRun(int(workflow_id[-6:])).commits())[seq:]:
            await backend.log.append(commit)  # goes on exactly behind what was acknowledged
    await backend.close()
    if name != ":memory:":
        assert all(seqs == list(range(1, len(seqs) + 1)) for seqs in (await stored_seqs(tmp_path / name)).values())


FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.history.ports import StoreUnavailable
from tests.support.sample_commits import SampleRun

async def main(path):
    backend = embedded_backend(path)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    acknowledged, refusals = {}, 0
    for number in range(120):
        if number % 40 == 20:
            resource.setrlimit(resource.RLIMIT_FSIZE, (Path(path + "-wal").stat().st_size + 10_000, hard))
        if number % 40 == 35:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))
        for commit in SampleRun(number).commits():
            try:
                await backend.log.append(commit)
            except StoreUnavailable:
                refusals += 1
                break
            acknowledged[commit.key] = commit
    assert refusals >= 3, refusals
    for key, commit in acknowledged.items():
        assert await backend.log.head(key) == commit
    await backend.close()
    resource.setrlimit(resource.RLIMIT_FSIZE, (Path(path).stat().st_size + 10_000, hard))
    again = embedded_backend(path)
    for key, commit in acknowledged.items():
        assert await again.log.head(key) == commit
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))
    await again.log.append(next(SampleRun(5_000).commits()))
    await again.close()
    print("refusals", refusals, "kept", len(acknowledged))

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs file size limits")
async def test_writes_that_the_system_refuses(tmp_path: Path) -> None:
    """The operating system itself refuses to let the log grow, in the middle of a write."""
    script = tmp_path / "full_disk.py"
    script.write_text(FULL_DISK)
    process = start_process(script, tmp_path / "orders.db")
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert output.startswith("refusals")
