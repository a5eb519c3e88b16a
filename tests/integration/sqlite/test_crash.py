"""kill -9 and power loss at any byte: what was acknowledged is there, and whatever is there has no gaps."""

import random
import shutil
import signal
import struct
import time
from pathlib import Path

import pytest

from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.history.commit import ExecutionKey
from tests.integration.sqlite.helpers import acknowledged, append_runs, on_writer, start_process, stored_seqs
from tests.support.sample_commits import SampleRun

SCRIPT = Path(__file__).with_name("store_process.py")
WAL_HEADER, FRAME_HEADER, PAGE = 32, 24, 4_096


async def crashed_copy(folder: Path, numbers: range, *, checkpointed: int = 0) -> Path:
    """Database and log as the disk had them after the last acknowledgement; no close, no checkpoint behind it.

    The first ``checkpointed`` runs were copied from the log into the database before.
    """
    path = folder / "live" / "orders.db"
    path.parent.mkdir()
    backend = embedded_backend(path)
    if checkpointed:
        await append_runs(backend, numbers[:checkpointed])
        busy, in_log, copied = checkpoint(backend)
        assert (busy, in_log) == (0, copied)
    await append_runs(backend, numbers[checkpointed:])
    copy = folder / "crashed" / "orders.db"
    copy.parent.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    await backend.close()
    return copy


def checkpoint(backend: Backend) -> tuple[int, int, int]:
    """Copies the whole log into the database, which SQLite does not allow inside a transaction."""
    writer = backend.close.__self__._writer  # type: ignore[attr-defined]
    result: tuple[int, int, int] = writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return result


def valid_frames(log: bytes) -> list[int]:
    """Page numbers of the frames that count, in order: those with the salt of the header."""
    pages = []
    for offset in range(WAL_HEADER, len(log) - FRAME_HEADER, FRAME_HEADER + PAGE):
        if log[offset + 8 : offset + 16] != log[16:24]:
            break
        pages.append(struct.unpack_from(">I", log, offset)[0])
    return pages


async def reopened(crashed: Path, folder: Path, log: bytes) -> dict[str, list[int]]:
    """What the engine finds in the crashed database when this is left of its log; it must be able to go on."""
    folder.mkdir()
    path = folder / "orders.db"
    shutil.copy(crashed, path)
    Path(f"{path}-wal").write_bytes(log)
    backend = embedded_backend(path)
    start = next(SampleRun(999_999).commits())
    await backend.log.append(start)
    await backend.close()
    seqs = await stored_seqs(path)
    assert seqs.pop(start.workflow_id) == [1]
    shutil.rmtree(folder)
    return seqs


def assert_prefix(seqs: dict[str, list[int]], numbers: range) -> int:
    """One run after the other was written: all but the newest of those found are whole. The number of commits found."""
    ids = [f"order-{number:06d}" for number in numbers][: len(seqs)]
    assert sorted(seqs) == ids
    for workflow_id in ids[:-1]:
        assert seqs[workflow_id] == [1, 2, 3, 4, 5]
    if ids:
        assert seqs[ids[-1]] == list(range(1, len(seqs[ids[-1]]) + 1))
    return sum(map(len, seqs.values()))


@pytest.mark.parametrize("checkpointed", [0, 4])
async def test_a_log_cut_anywhere_leaves_a_prefix(tmp_path: Path, checkpointed: int) -> None:
    numbers = range(1, 9)
    crashed = await crashed_copy(tmp_path, numbers, checkpointed=checkpointed)
    log = Path(f"{crashed}-wal").read_bytes()
    frame, frames = FRAME_HEADER + PAGE, len(valid_frames(log))
    assert frames > 20
    end = WAL_HEADER + frame * frames
    chance = random.Random(checkpointed)
    cuts = {0, 1, WAL_HEADER - 1, WAL_HEADER, end - 1, end, end + 1, len(log)}
    cuts |= {WAL_HEADER + frame * number + chance.choice([-1, 0, 1, 25]) for number in range(1, frames, 4)}
    cuts |= {chance.randrange(end) for _ in range(15)}
    found = [
        assert_prefix(await reopened(crashed, tmp_path / f"cut-{cut}", log[:cut]), numbers) for cut in sorted(cuts)
    ]
    assert found == sorted(found)
    assert found[-1] == 40
    assert found[0] == 0 or checkpointed


async def test_a_log_damaged_anywhere_leaves_a_prefix(tmp_path: Path) -> None:
    numbers = range(1, 9)
    crashed = await crashed_copy(tmp_path, numbers)
    log = Path(f"{crashed}-wal").read_bytes()
    end = WAL_HEADER + (FRAME_HEADER + PAGE) * len(valid_frames(log))
    chance = random.Random(3)
    for number in range(25):
        position, length = chance.randrange(end), chance.choice([1, 8, 512, 4_096])
        damaged = log[:position] + chance.randbytes(len(log[position : position + length])) + log[position + length :]
        assert_prefix(await reopened(crashed, tmp_path / f"damage-{number}", damaged), numbers)


async def test_power_loss_amid_a_checkpoint(tmp_path: Path) -> None:
    """Every page that a checkpoint was about to overwrite may be torn: the log has them all."""
    numbers = range(1, 9)
    crashed = await crashed_copy(tmp_path, numbers, checkpointed=4)
    log = Path(f"{crashed}-wal").read_bytes()
    pages = set(valid_frames(log)) - {1}
    assert len(pages) > 5
    database = bytearray(crashed.read_bytes())
    chance = random.Random(4)
    for page in pages:
        begin = (page - 1) * PAGE
        torn = chance.choice([512, 2_048, PAGE])
        if begin < len(database):
            database[begin : begin + torn] = chance.randbytes(torn)
    crashed.write_bytes(bytes(database))
    assert assert_prefix(await reopened(crashed, tmp_path / "torn", log), numbers) == 40


async def test_a_batch_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    """A commit, its deadline, its visibility record and ``owes`` share one transaction, and a close takes what the run
    had armed with it.
    """
    crashed = await crashed_copy(tmp_path, range(1, 4))
    log = Path(f"{crashed}-wal").read_bytes()
    end = WAL_HEADER + (FRAME_HEADER + PAGE) * len(valid_frames(log))
    for cut in range(0, end, 5_001):
        path = tmp_path / f"cut-{cut}" / "orders.db"
        path.parent.mkdir()
        shutil.copy(crashed, path)
        Path(f"{path}-wal").write_bytes(log[:cut])
        backend = embedded_backend(path)
        armed = {(time, key) for time, key in await backend.timers.due(SampleRun(9).start_time.replace(year=2030), 99)}
        owing = await backend.visibility.owing(None, 99)
        for workflow_id, seqs in (await stored_seqs(path)).items():
            key = ExecutionKey("default", workflow_id)
            closed = seqs[-1] == 5
            assert (key in owing) == (not closed)
            for seq in seqs[:4]:
                commit = await backend.log.get(key, seq)
                assert commit is not None
                if not closed:
                    assert (commit.deadline, key) in armed
            if closed:
                newest = await backend.log.get(key, 5)
                assert newest is not None
                assert (newest.state.armed, key) not in armed
        await backend.close()


@pytest.mark.slow
async def test_kill_9_at_random_moments(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    chance = random.Random(5)
    newest: dict[str, int] = {}
    for round_number in range(4):
        process = start_process(SCRIPT, path, round_number * 100_000)
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        time.sleep(chance.uniform(0.0, 0.4))
        process.send_signal(signal.SIGKILL)
        output, _ = process.communicate()
        newest |= acknowledged(output)
    backend = embedded_backend(path)
    assert await on_writer(backend, lambda connection: connection.execute("PRAGMA integrity_check").fetchall()) == [
        ("ok",)
    ]
    await backend.close()
    seqs = await stored_seqs(path)
    assert len(newest) > 10
    for workflow_id, seq in newest.items():
        assert seqs[workflow_id][:seq] == list(range(1, seq + 1))
    for found in seqs.values():
        assert found == list(range(1, len(found) + 1))
