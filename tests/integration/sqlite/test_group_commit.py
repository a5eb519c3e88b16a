"""Waiting writes share a transaction; one that fails spoils no other; the write-ahead log stays short."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.adapters.embedded.checkpoint import Checkpointer
from stepwell_server.adapters.embedded.connection import open_writable
from stepwell_server.adapters.embedded.group_commit import BatchCommitter
from stepwell_server.adapters.embedded.writes import AppendCommit, Arm, Write
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.ports import Conflict
from tests.integration.sqlite.helpers import append_runs, on_writer, stored_seqs
from tests.support.sample_commits import SampleRun, sample_item


async def test_items_of_two_versions_that_wait_together_go_in_order() -> None:
    """Of this store alone: where each write is a request of its own, the second may be there first, and is refused."""
    run = SampleRun(16)
    backend = embedded_backend(":memory:")
    await asyncio.gather(*(backend.log.put_activity(sample_item(run, version=version)) for version in (1, 2)))
    item = await backend.log.get_activity(ExecutionKey(run.namespace, run.workflow_id), run.run_id, 5)
    assert item == sample_item(run, version=2)
    await backend.close()


@pytest.mark.parametrize("name", ["orders.db", ":memory:"])
async def test_all_that_waits_is_committed_together(tmp_path: Path, name: str) -> None:
    backend = embedded_backend(name if name == ":memory:" else tmp_path / name)
    statements: list[str] = []
    await on_writer(backend, lambda connection: connection.set_trace_callback(statements.append))
    statements.clear()
    await asyncio.gather(*(backend.log.append(next(SampleRun(number).commits())) for number in range(200)))
    commits = sum(statement == "COMMIT" for statement in statements)
    assert 1 <= commits <= 12  # the thread begins with the first write; the others wait for it
    await on_writer(backend, lambda connection: connection.set_trace_callback(None))
    await backend.close()


async def test_a_batch_costs_few_statements(tmp_path: Path) -> None:
    """Rows go many to a statement, whatever the batch holds."""
    connection = open_writable(tmp_path / "orders.db")
    batches = BatchCommitter(connection)
    writes = [AppendCommit.of(commit, commit.deadline) for commit in (next(SampleRun(n).commits()) for n in range(64))]
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    assert batches.commit(writes) == [None] * 64
    assert len(statements) == 7  # BEGIN, look-up, logs, runs, armed, commits, COMMIT
    connection.close()


async def test_a_write_that_sqlite_cannot_take_fails_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    connection = open_writable(tmp_path / "orders.db")
    batches = BatchCommitter(connection)
    good = [AppendCommit.of(next(SampleRun(number).commits()), None) for number in range(2)]
    taken = AppendCommit.of(next(SampleRun(0).commits()), None)
    impossible = Arm(ExecutionKey("default", "x"), 2**70)
    outcomes = batches.commit([good[0], impossible, good[1], taken])
    assert outcomes[0] is None
    assert outcomes[2] is None
    assert isinstance(outcomes[1], OverflowError)
    assert isinstance(outcomes[3], Conflict)
    connection.close()


async def test_the_loop_takes_commits_back_from_the_thread_when_the_disk_is_fast_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what the thread takes, which on a busy loop is mostly waiting for its turn, it would keep them for ever."""
    by: list[str] = []
    slow = True
    commit = BatchCommitter.commit

    def timed(self: BatchCommitter, writes: list[Write]) -> list[Exception | None]:
        here = threading.current_thread().name
        by.append(here)
        if slow or here == "stepwell-writer":
            time.sleep(0.02)
        return commit(self, writes)

    monkeypatch.setattr(BatchCommitter, "commit", timed)
    backend = embedded_backend(tmp_path / "orders.db")
    await append_runs(backend, range(8))
    assert by[-1] == "stepwell-writer"
    slow = False
    by.clear()
    await append_runs(backend, range(8, 40))
    await backend.close()
    assert "MainThread" in by[:18]


async def test_a_store_belongs_to_one_event_loop(tmp_path: Path) -> None:
    backend = embedded_backend(tmp_path / "orders.db")
    await append_runs(backend, range(1))
    commit = next(SampleRun(1).commits())

    async def append() -> None:
        await backend.log.append(commit)

    def in_another_loop() -> None:
        asyncio.run(append())

    with pytest.raises(RuntimeError, match="belongs to another event loop"):
        await asyncio.to_thread(in_another_loop)
    await backend.close()
    assert len(await stored_seqs(tmp_path / "orders.db")) == 1


async def test_closing_commits_what_was_submitted_before(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    backend = embedded_backend(path)
    writes = [asyncio.ensure_future(backend.log.append(next(SampleRun(number).commits()))) for number in range(300)]
    await asyncio.sleep(0)
    await backend.close()
    await asyncio.gather(*writes)
    assert len(await stored_seqs(path)) == 300


@pytest.mark.slow
async def test_the_write_ahead_log_stays_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepwell_server.adapters.embedded.checkpoint._FRAMES", 500)
    path = tmp_path / "orders.db"
    backend = embedded_backend(path)

    async def worker(numbers: range) -> None:
        for number in numbers:
            for commit in SampleRun(number).commits():
                await backend.log.append(commit)

    await asyncio.gather(*(worker(range(first * 1_000, first * 1_000 + 60)) for first in range(20)))
    written = 1_200 * 1_900
    assert Path(f"{path}-wal").stat().st_size < min(5_000 * 4_096, 6 * written)
    assert path.stat().st_size > written / 2  # most of it has been copied into the database
    await backend.close()
    assert not Path(f"{path}-wal").exists()


def test_a_checkpoint_thread_ends_when_told(tmp_path: Path) -> None:
    writer, own = open_writable(tmp_path / "orders.db"), open_writable(tmp_path / "orders.db")
    checkpointer = Checkpointer(writer, own)
    checkpointer.close()
    writer.close()
