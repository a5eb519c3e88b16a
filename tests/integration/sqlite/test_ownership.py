"""One process owns the file; others may look."""

import multiprocessing
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from stepwell_server.adapters.embedded import DatabaseInUse, embedded_backend, open_for_inspection
from stepwell_server.history.ports import StoreUnavailable
from tests.integration.sqlite.helpers import acknowledged, append_runs, start_process, stored_seqs
from tests.support.sample_commits import SampleRun

SCRIPT = Path(__file__).with_name("store_process.py")


def owner_process(path: Path) -> "subprocess.Popen[str]":
    """A running owner that writes."""
    process = start_process(SCRIPT, path, 1)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


async def test_a_second_process_is_told_who_owns_the_file(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    process = owner_process(path)
    try:
        with pytest.raises(DatabaseInUse, match=f"in use by process {process.pid}.*stop that process") as refused:
            embedded_backend(path)
        assert refused.value.pid == process.pid
    finally:
        end(process)
    backend = embedded_backend(path)  # the lock died with its process
    await backend.close()


async def test_a_second_opening_in_one_process_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    (tmp_path / "alias.db").symlink_to(path)
    backend = embedded_backend(path)
    for name in (path, tmp_path / "alias.db", str(path)):
        with pytest.raises(DatabaseInUse, match="in use by this process"):
            embedded_backend(name)
    await append_runs(backend, [1])  # the refusals did no harm
    await backend.close()
    again = embedded_backend(tmp_path / "alias.db")
    await again.close()


async def test_a_refusal_does_not_free_the_owners_lock(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    backend = embedded_backend(path)
    with pytest.raises(DatabaseInUse):
        embedded_backend(path)
    process = start_process(SCRIPT, path, 1)
    _, errors = process.communicate(timeout=30)
    assert process.returncode != 0
    assert f"in use by process {os.getpid()}" in errors
    await backend.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # the child does nothing that needs a thread
async def test_a_forked_child_does_not_keep_the_file(tmp_path: Path) -> None:
    """As a process-pool activity does that outlives its killed parent."""
    path = tmp_path / "orders.db"
    backend = embedded_backend(path)
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    child.start()
    try:
        await backend.close()
        process = owner_process(path)
        end(process)
    finally:
        child.kill()
        child.join()


async def test_inspection_beside_a_running_owner(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    process = owner_process(path)
    try:
        time.sleep(0.3)
        for _ in range(5):
            for seqs in (await stored_seqs(path, in_use=True)).values():
                assert seqs == list(range(1, len(seqs) + 1))
        assert process.poll() is None
    finally:
        end(process)


async def test_inspection_after_a_kill_sees_what_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    process = owner_process(path)
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    output, _ = process.communicate()
    seqs = await stored_seqs(path)
    for workflow_id, seq in acknowledged(output).items():
        assert seqs[workflow_id][:seq] == list(range(1, seq + 1))


async def test_inspection_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    backend = embedded_backend(path)
    await append_runs(backend, [1])
    reads = open_for_inspection(path)
    assert not hasattr(reads, "append")
    reads.close()
    assert (await backend.log.head(next(SampleRun(1).commits()).key)) is not None
    await backend.close()


@pytest.mark.parametrize("path", [":memory:", "orders.db"])
async def test_a_closed_store_says_so(tmp_path: Path, path: str) -> None:
    backend = embedded_backend(path if path == ":memory:" else tmp_path / path)
    await backend.close()
    commit = next(SampleRun(1).commits())
    with pytest.raises(StoreUnavailable, match="closed"):
        await backend.log.append(commit)
    # no connection is left to the garbage collector, which Python 3.13 warns of
    with pytest.raises(StoreUnavailable, match="closed"):
        await backend.log.head(commit.key)
    await backend.close()
